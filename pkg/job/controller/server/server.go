// Package server is the HTTP API of the job controller: history, logs of finished tasks, code; and health and metrics.
// In: an archive. Out: a handler, and a server that uses it.
//
// A replica that doesn't lead also serves requests, because all replicas share one database. It forwards requests for live jobs to the leading
// replica.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/openpai/paictl/pkg/httpserver"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/archive"
)

const (
	// readTime is how long a response may take, except for transfers.
	readTime = 30 * time.Second
	// codeTime is how long an upload or download of code may take. It is enough for 256 MiB at 150 KiB/s.
	codeTime = 30 * time.Minute
	// exportTime is how long an export or import of the whole archive may take.
	exportTime = 2 * time.Hour
	// pageTime is how long a page of a log may take. It is enough to wait for lines and then send 8 MiB to a slow client.
	pageTime = 5 * time.Minute
	// uploads is the maximum number of uploads at a time, and userUploads that of one user. Each upload takes 1 MiB of memory.
	uploads, userUploads = 16, 2
	// downloads is the maximum number of downloads of code at a time. jobDownloads is the maximum for one job and for one address.
	downloads, jobDownloads = 512, 64
	// placeTime is how long a transfer of code waits for other transfers to end. It is shorter than a task's wait for the first byte.
	placeTime = 20 * time.Second
	// stopTime is how long responses in progress may take when the program ends.
	stopTime = 10 * time.Second
)

// Options specify what the server serves.
type Options struct {
	Store archive.Store
	// Ready returns an error that says why this replica isn't ready, or nil if it is ready.
	Ready   func(context.Context) error
	Metrics prometheus.Gatherer
	// MetricsAccess is the name of the file with the password for the metrics. If it is empty, all clients may read the metrics.
	MetricsAccess string
	// Token returns the token for the API, or "" if the token isn't known yet. All pods can connect to the API, but they don't have the token.
	Token func() string
	// AuditToken returns the token for the audit, or "" if the token isn't known yet. If AuditToken is nil, requests for the audit are rejected.
	AuditToken func() string
	// Peers provides the addresses of jobs' tasks.
	Peers Peers
	// Logs reads logs from the machines. It is nil if the machines don't keep logs.
	Logs Logs
	// Use reads the measurements of a machine's containers. It is nil if containers aren't measured.
	Use Use
	// GPUs reads the measurements of a machine's GPUs. It is nil if GPUs aren't measured.
	GPUs GPUs
	// Jobs lists live jobs. It is nil if live jobs aren't available.
	Jobs Jobs
	// Imported is called after a history was imported. It may be nil.
	Imported func()
	Log      *slog.Logger
}

// Server serves the API.
type Server struct {
	o                  Options
	uploads, downloads *httpserver.Places
	// toLeader is the transport for requests that are forwarded to the leading replica.
	toLeader *http.Transport
}

// New returns a server with the given options. It doesn't listen yet.
func New(o Options) *Server {
	return &Server{
		o: o, uploads: httpserver.NewPlaces(uploads, userUploads), downloads: httpserver.NewPlaces(downloads, jobDownloads), toLeader: newTransport(),
	}
}

// Handler returns the handler for paictl, Prometheus and the kubelet.
func (s *Server) Handler() http.Handler {
	api := http.NewServeMux()
	api.Handle("GET /v1/jobs", within(readTime, s.serveJobs))
	api.Handle("GET /v1/jobs/{framework}", within(readTime, s.serveJob))
	api.Handle("DELETE /v1/jobs/{framework}", within(readTime, s.deleteJob))
	api.Handle("PUT /v1/jobs/{uid}/tags", within(readTime, s.tag))
	api.Handle("DELETE /v1/jobs/{uid}/tags", within(readTime, s.tag))
	api.Handle("GET /v1/jobs/{framework}/events", within(readTime, s.serveEvents))
	api.Handle("GET /v1/jobs/{framework}/logs", within(readTime, s.serveLog))
	api.Handle("GET /v1/usage", within(readTime, s.serveUsage))
	api.Handle("GET /v1/machines/{node}/gpus", within(readTime, s.serveGPUs))
	api.Handle("GET /v1/machines/{node}/use", within(readTime, s.serveUse))
	api.Handle("GET /v1/machines/{node}/logs/{uid}/{container}", within(pageTime, s.servePage))
	api.Handle("GET /v1/code/{sha256}", within(codeTime, s.serveCode)) // HEAD, too
	api.Handle("PUT /v1/code/{sha256}", within(codeTime, s.receiveCode))
	api.Handle("GET /v1/archive", within(exportTime, s.serveArchive))
	api.Handle("PUT /v1/archive", within(exportTime, s.receiveArchive))

	records := http.NewServeMux()
	records.Handle("GET /v1/audit", within(readTime, s.serveAudit))
	records.Handle("POST /v1/audit", within(readTime, s.receiveAudit))

	mux := http.NewServeMux()
	mux.Handle("/v1/", s.guard(jsonErrors(api)))
	mux.Handle("/v1/audit", s.guardAudit(jsonErrors(records)))
	// These endpoints also use within, because otherwise the deadlines of an earlier response would still apply to the connection.
	metrics := access.Metrics(s.o.MetricsAccess, promhttp.HandlerFor(s.o.Metrics, promhttp.HandlerOpts{}))
	mux.Handle("GET /healthz", within(readTime, func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = w.Write([]byte("ok\n")) // a client that is gone
		return nil
	}))
	mux.Handle("GET /readyz", within(readTime, s.readyz))
	mux.Handle("GET /metrics", within(readTime, func(w http.ResponseWriter, r *http.Request) error {
		metrics.ServeHTTP(w, r)
		return nil
	}))
	mux.Handle("/", jsonErrors(http.NotFoundHandler()))
	return mux
}

// TaskHandler returns the handler that sends tasks the code and the addresses of their job. Tasks send the job's tokens for these.
func (s *Server) TaskHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/peers/{framework}", within(peersTime, s.servePeers))
	mux.Handle("GET /v1/code/{sha256}", within(codeTime, s.serveTaskCode))
	return jsonErrors(mux)
}

// within returns a handler that limits how long a response may take, and how long the connection may be read and written.
func within(limit time.Duration, serve func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		control, end := http.NewResponseController(w), time.Now().Add(limit+time.Second)
		if err := errors.Join(control.SetReadDeadline(end), control.SetWriteDeadline(end)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			writeError(w, err)
			return
		}
		if err := serve(w, r.WithContext(ctx)); err != nil {
			writeError(w, err)
		}
	})
}

// readyz responds with success if this replica can serve requests and could become the leader.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.o.Ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil
	}
	_, _ = w.Write([]byte("ok\n")) // a client that is gone
	return nil
}

// The maximum numbers of simultaneous connections: from services that request jobs, and from tasks, which wait for each other.
const (
	jobConnections  = 1000
	taskConnections = 8000
)

// ServeJobs serves requests of the platform's services until the context ends.
func (s *Server) ServeJobs(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, s.Handler(), jobConnections)
}

// ServeTasks serves requests of tasks until the context ends.
func (s *Server) ServeTasks(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, s.TaskHandler(), taskConnections)
}

func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler, connections int) error {
	return httpserver.Serve(ctx, l, h, httpserver.Options{Connections: connections, Grace: stopTime, Log: s.o.Log})
}
