package logstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	"github.com/openpai/paictl/pkg/node/meter"
)

const (
	// pageMost limits the size of a response, so that a client doesn't lose much after an interruption.
	pageMost = 8 << 20
	// waitMost is how long a request may wait for lines.
	waitMost = 30 * time.Second
	// waitStep is the interval between checks of the kubelet's file during a wait.
	waitStep = 250 * time.Millisecond
	// writeTime limits the time for sending a response to a slow client.
	writeTime = 5 * time.Minute
	// searches is the maximum number of concurrent searches. Further searches wait.
	searches = 2
)

// Server serves requests for logs and for the resource use of job containers.
type Server struct {
	store      *Store
	meter      *meter.Meter
	tokenFile  string
	accessFile string
	// searching limits the number of concurrent searches, because the machine's processors are reserved for jobs.
	searching chan struct{}
}

// NewServer returns a server. The server reads the token from tokenFile for each request, because the kubelet updates the file. The server also reads
// the password for its metrics from accessFile for each request. If accessFile is "", the metrics require no password.
func NewServer(s *Store, m *meter.Meter, tokenFile, accessFile string) *Server {
	return &Server{s, m, tokenFile, accessFile, make(chan struct{}, searches)}
}

// Handler returns a handler for /v1/logs/UID/CONTAINER, /v1/use, health checks and metrics.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /metrics", access.Metrics(s.accessFile, http.HandlerFunc(s.metrics)))
	mux.Handle("GET /v1/logs/{uid}/{container}", s.guard(s.serveLog))
	mux.Handle("GET "+logapi.UsePath, s.guard(s.serveUse))
	return mux
}

// guard rejects requests that aren't signed with the token, because every pod in the cluster can connect to the server.
func (s *Server) guard(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(s.tokenFile)
		token := bytes.TrimSpace(text)
		if err != nil || !logapi.Signed(r, string(token), time.Now()) {
			http.Error(w, "the request isn't signed with the token, or the clocks of the two machines differ by more than five minutes", http.StatusForbidden)
			return
		}
		h(w, r)
	})
}

func (s *Server) serveLog(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Query().Get("view") {
	case "":
		s.servePage(w, r)
	case logapi.ViewWindow:
		s.serveWindow(w, r)
	case logapi.ViewMatches:
		s.serveMatches(w, r)
	default:
		http.Error(w, "there is no such view", http.StatusBadRequest)
	}
}

// found returns the requested log. found limits the time for the wait and the response, because the proxy in front of the server has its own limits.
// If the log doesn't exist, found sends an error response and returns nil.
func (s *Server) found(w http.ResponseWriter, r *http.Request, wait time.Duration) *stream {
	x := s.store.find(r.PathValue("uid"), r.PathValue("container"))
	if x == nil {
		http.Error(w, "this machine has no such log", http.StatusNotFound)
		return nil
	}
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return nil
	}
	return x
}

// badQuery sends the error response to an invalid query, with a remedy.
func badQuery(w http.ResponseWriter, err error) {
	text := err.Error()
	if remedy := hint.Of(err); remedy != "" {
		text += ": " + remedy
	}
	http.Error(w, text, http.StatusBadRequest)
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	q, wait, err := s.query(r.URL.Query())
	if err != nil {
		badQuery(w, err)
		return
	}
	x := s.found(w, r, wait)
	if x == nil {
		return
	}
	p, err := s.store.await(r.Context(), x, q, wait)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.answer(w, q, p)
}

// await waits until the log continues after the offset of a query, and returns the page that the query selects.
func (s *Store) await(ctx context.Context, x *stream, q Query, wait time.Duration) (*Page, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		s.catchUp(ctx, x)
		p, err := x.page(q)
		if err != nil || x.finished() {
			return p, err
		}
		if wait > 0 {
			p.hold()
		}
		if p.End > q.Offset || waiting.Err() != nil {
			return p, nil
		}
		pause(waiting, s.step)
	}
}

// settleTries is the maximum number of checks of a file that still grows after rotation.
const settleTries = 8

// catchUp stores all lines that a container has written so far. catchUp ignores read errors, because the next round reports read errors. The request
// then gets the lines that were read earlier.
func (s *Store) catchUp(ctx context.Context, x *stream) {
	for range settleTries {
		if x.finished() || x.ingest(true) != nil || !x.isUnsettled() {
			return
		}
		pause(ctx, s.step)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (s *Server) answer(w http.ResponseWriter, q Query, p *Page) {
	h := w.Header()
	// A program wrote the log, so a browser must not render it as a web page.
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	for name, v := range map[string]int64{logapi.HeaderStart: p.Start, logapi.HeaderNext: p.Next, logapi.HeaderEnd: p.End, logapi.HeaderGaps: int64(p.Gaps), logapi.HeaderLimit: s.store.limits.PerTask} {
		h.Set(name, strconv.FormatInt(v, 10))
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var b []byte
	err := p.each(q, func(l logapi.Line) error {
		b = l.Append(b[:0], q.Times)
		_, err := out.Write(b)
		return err
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		panic(http.ErrAbortHandler) // so that the client doesn't mistake it for the whole page
	}
}

// query parses the parameters of a request for a page. query rejects unknown parameters.
func (s *Server) query(v url.Values) (q Query, wait time.Duration, err error) {
	q = Query{Tail: -1, Most: pageMost, Times: true}
	now := s.store.now()
	for name := range v {
		text := v.Get(name)
		switch name {
		case "offset":
			q.Offset, err = whole(text)
		case "tail":
			q.Tail, err = whole(text)
		case "most":
			q.Most, err = whole(text)
			q.Most = min(q.Most, pageMost)
		case "since":
			var d time.Duration
			if d, err = time.ParseDuration(text); err == nil {
				q.Since = now.Add(-d)
			}
		case "wait":
			wait, err = time.ParseDuration(text)
			wait = min(wait, waitMost)
		case "match":
			q.Match, err = logapi.Expression(text)
		case "stream":
			if q.Stream = text; text != "stdout" && text != "stderr" {
				err = errors.New("there are stdout and stderr")
			}
		case "times":
			q.Times, err = strconv.ParseBool(text)
		default:
			err = errors.New("there is no such parameter")
		}
		if err != nil {
			return q, 0, fmt.Errorf("%s=%s: %w", name, strings.ToValidUTF8(text, ""), err)
		}
	}
	return q, wait, nil
}

func whole(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n < 0 {
		err = errors.New("it is below zero")
	}
	return n, err
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	s.store.mu.Lock()
	used, logs, bad := s.store.used, len(s.store.streams), len(s.store.told)
	s.store.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, m := range []struct {
		name, help string
		value      int64
	}{
		{"pai_logs_disk_bytes", "How much room the kept logs take.", used},
		{"pai_logs_disk_limit_bytes", "How much they may take.", s.store.limits.Total},
		{"pai_logs_kept", "How many containers' logs are kept.", int64(logs)},
		{"pai_logs_problems", "How many logs can't be read or kept just now.", int64(bad)},
	} {
		fmt.Fprintf(w, "# HELP %[1]s %[2]s\n# TYPE %[1]s gauge\n%[1]s %[3]d\n", m.name, m.help, m.value)
	}
}
