// Package server is the HTTP API of the job controller: history, logs of finished tasks, code; and health and metrics.
// In: an archive. Out: a handler, and a server that uses it.
//
// A replica that doesn't lead serves requests as well: if there are several replicas, they share one database. It forwards requests for
// live jobs to the leading replica.
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
	// readTime bounds a response of the API, except for code.
	readTime = 30 * time.Second
	// codeTime bounds one upload or download of code: 256 MiB at 150 KiB/s.
	codeTime = 30 * time.Minute
	// exportTime bounds an export and an import of the whole archive.
	exportTime = 2 * time.Hour
	// pageTime bounds a page of a log: 8 MiB to a slow reader, after a wait for lines.
	pageTime = 5 * time.Minute
	// uploads is how many may be received at a time, and userUploads how many of one user; each has a MiB in memory.
	uploads, userUploads = 16, 2
	// downloads is how much code may be sent at a time, and jobDownloads how much of it to one job, or to one address.
	downloads, jobDownloads = 512, 64
	// placeTime is how long a transfer of code waits for other transfers. It is shorter than a task's wait for the first byte.
	placeTime = 20 * time.Second
	// stopTime is how long responses in progress may take when the program ends.
	stopTime = 10 * time.Second
)

// Options specify what is served.
type Options struct {
	Store archive.Store
	// Ready returns why this replica isn't ready, or nil if this replica is ready.
	Ready   func(context.Context) error
	Metrics prometheus.Gatherer
	// MetricsAccess is the file with the password for the metrics; empty: everyone may read them.
	MetricsAccess string
	// Token returns the token of the API, or "" if it isn't known yet. Pods can reach the API, but don't have the token.
	Token func() string
	// AuditToken returns the token of the audit, or "" if it isn't known yet. If AuditToken is nil, requests for the audit are rejected.
	AuditToken func() string
	// Peers are the addresses of jobs.
	Peers Peers
	// Logs reads the logs of the machines; nil if machines don't keep logs.
	Logs Logs
	// Use reads the measurements of a machine's containers; nil if they aren't measured.
	Use Use
	// GPUs reads the measurements of a machine's GPUs; nil if they aren't measured.
	GPUs GPUs
	// Jobs lists live jobs; nil if they aren't known.
	Jobs Jobs
	// Imported is called after a history was imported; it may be nil.
	Imported func()
	Log      *slog.Logger
}

// Server serves the API.
type Server struct {
	o                  Options
	uploads, downloads *httpserver.Places
	// toLeader carries the requests that are forwarded to another replica.
	toLeader *http.Transport
}

// New returns a server.
func New(o Options) *Server {
	return &Server{
		o: o, uploads: httpserver.NewPlaces(uploads, userUploads), downloads: httpserver.NewPlaces(downloads, jobDownloads), toLeader: newTransport(),
	}
}

// Handler serves paictl, Prometheus and the kubelet.
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
	// These endpoints have limits, too, because a connection keeps the deadlines of its last response.
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

// TaskHandler sends tasks the code and the addresses of their job, which the job's tokens open.
func (s *Server) TaskHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/peers/{framework}", within(peersTime, s.servePeers))
	mux.Handle("GET /v1/code/{sha256}", within(codeTime, s.serveTaskCode))
	return jsonErrors(mux)
}

// within bounds the duration of a response, and how long the connection may read and write.
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

// readyz reports whether this replica can serve requests and could become the leader.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.o.Ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil
	}
	_, _ = w.Write([]byte("ok\n")) // a client that is gone
	return nil
}

// The maximum numbers of simultaneous connections: of services that request jobs, and of tasks, which wait for each other.
const (
	jobConnections  = 1000
	taskConnections = 8000
)

// ServeJobs serves the services of the platform until the context ends.
func (s *Server) ServeJobs(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, s.Handler(), jobConnections)
}

// ServeTasks serves tasks until the context ends.
func (s *Server) ServeTasks(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, s.TaskHandler(), taskConnections)
}

func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler, connections int) error {
	return httpserver.Serve(ctx, l, h, httpserver.Options{Connections: connections, Grace: stopTime, Log: s.o.Log})
}
