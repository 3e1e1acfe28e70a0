// Package server is the HTTP API of the job controller: history, logs of ended tasks, code; health and
// metrics beside it.
// In: an archive. Out: a handler, and the server around it.
//
// A replica that doesn't lead answers as well: where there are several, they share one database. What is asked about jobs that live
// it passes on to the one that leads.
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

	"github.com/openpai/paictl/pkg/access"
	"github.com/openpai/paictl/pkg/bounded"
	"github.com/openpai/paictl/pkg/framework/archive"
)

const (
	// readTime bounds an answer of the API, except for code.
	readTime = 30 * time.Second
	// codeTime bounds one upload or download of code: 256 MiB at 150 KiB/s.
	codeTime = 30 * time.Minute
	// exportTime bounds a copy of the whole archive, and how long one takes to be put back.
	exportTime = 2 * time.Hour
	// pageTime bounds a page of a log: 8 MiB to a slow reader, after a wait for lines.
	pageTime = 5 * time.Minute
	// uploads is how many may be received at a time, and userUploads how many of one user; each has a MiB in memory.
	uploads, userUploads = 16, 2
	// downloads is how much code may be sent at a time, and jobDownloads how much of it to one job, or to one address.
	downloads, jobDownloads = 512, 64
	// placeTime is how long a transfer of code waits for others. It is less than a task waits for the first byte.
	placeTime = 20 * time.Second
	// stopTime is how long answers that are under way may take when the program ends.
	stopTime = 10 * time.Second
)

// Options say what is served.
type Options struct {
	Store archive.Store
	// Ready says why this replica isn't ready, nil where it is.
	Ready   func(context.Context) error
	Metrics prometheus.Gatherer
	// MetricsAccess is the file with the password that opens them; empty: everyone may read them.
	MetricsAccess string
	// Token returns what opens the API, or "" while that isn't known; pods know the way to the API, and not the token.
	Token func() string
	// AuditToken returns what opens the audit, or "" while that isn't known; nil: no one has it.
	AuditToken func() string
	// Peers are the addresses of jobs.
	Peers Peers
	// Logs keep the logs of the machines; nil where nothing does.
	Logs Logs
	// Use asks what measures the containers of a machine; nil where nothing does.
	Use Use
	// GPUs asks what measures them; nil where nothing does.
	GPUs GPUs
	// Jobs lists jobs that live; nil where nothing knows them.
	Jobs Jobs
	// Imported is called when a history was put back; it may be nil.
	Imported func()
	Log      *slog.Logger
}

// Server answers.
type Server struct {
	o                  Options
	uploads, downloads *bounded.Places
	// toLeader carries what is passed on to another replica.
	toLeader *http.Transport
}

// New makes a server.
func New(o Options) *Server {
	return &Server{
		o: o, uploads: bounded.NewPlaces(uploads, userUploads), downloads: bounded.NewPlaces(downloads, jobDownloads), toLeader: newTransport(),
	}
}

// Handler is all that is served to paictl, Prometheus and the kubelet.
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
	// These have limits, too: a connection keeps those of its last answer.
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

// within bounds an answer: its context, and how long the connection may read and write.
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

// readyz says whether this replica can answer and could lead.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.o.Ready(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil
	}
	_, _ = w.Write([]byte("ok\n")) // a client that is gone
	return nil
}

// Connections that there may be at a time: of the services that ask for jobs, and of tasks, which wait for each other.
const (
	jobConnections  = 1000
	taskConnections = 8000
)

// ServeJobs answers the services of the platform until the context ends.
func (s *Server) ServeJobs(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, s.Handler(), jobConnections)
}

// ServeTasks answers tasks until the context ends.
func (s *Server) ServeTasks(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, s.TaskHandler(), taskConnections)
}

func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler, connections int) error {
	return bounded.Serve(ctx, l, h, bounded.Options{Connections: connections, Grace: stopTime, Log: s.o.Log})
}
