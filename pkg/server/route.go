package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/server/desk"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Route is one operation of the API, as a value: the router, the documents and the tests read the same table.
type Route struct {
	// Method is GET, POST and so on; "" is any. Who answers GET answers HEAD.
	Method string
	// Path is a pattern of net/http's ServeMux: /api/v2/jobs/{job}.
	Path string
	// Aliases are other paths of the same operation.
	Aliases []string
	// Rule is the id of a rule in rules.Table. What is known before the thing itself is loaded is checked before the handler runs.
	Rule string
	// In and Out are the types of the request and of the answer; nil is none.
	In, Out reflect.Type
	// Media is the answer's; "" is JSON.
	Media string
	// Status is that of success; 0 is 200.
	Status int
	// Limit bounds the request.
	Limit Limit
	// Errors are the codes that it answers with, beside those that all do.
	Errors []string
	// Browser: the cookie of a browser's session counts, too, and who has none and asks for a page is sent to sign in. Elsewhere no cookie counts:
	// a page of another origin could ask with it in its person's name.
	Browser bool
	// Summary says what it does, in one sentence.
	Summary string
	// Serve answers. An error becomes an answer in the one place that does so.
	Serve func(*Call) error
}

// Limit bounds a request.
type Limit struct {
	// Body is in bytes; 0 is 100 kB, as in OpenPAI.
	Body int64
	// Time bounds the answer; 0 is 30 seconds. Streams have none.
	Time   time.Duration
	Stream bool
	// Submit: it counts as a submission.
	Submit bool
	// Each is how many of it a person has at a time; 0 is any number.
	Each int
}

// Call is one request on its way.
type Call struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Desk    *desk.Desk
	Route   *Route
	rows    func(n int) error
}

// Context is the request's.
func (c *Call) Context() context.Context { return c.Request.Context() }

// Decode fills a struct from the request; see wire.Decode.
func (c *Call) Decode(in any) error { return wire.Decode(c.Request, in) }

// JSON answers with a value and the route's status.
func (c *Call) JSON(value any) error {
	return wire.JSON(c.Writer, c.Request, c.Route.status(), value)
}

// Text answers with a text of the route's media type.
func (c *Call) Text(body string) error {
	wire.Bytes(c.Writer, c.Request, c.Route.status(), c.Route.Media, []byte(body))
	return nil
}

func (r *Route) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

// Option changes a route that JSON makes.
type Option func(*Route)

// Also adds other paths of the same operation.
func Also(paths ...string) Option { return func(r *Route) { r.Aliases = append(r.Aliases, paths...) } }

// Status is that of success.
func Status(code int) Option { return func(r *Route) { r.Status = code } }

// Body bounds the request's, in bytes.
func Body(n int64) Option { return func(r *Route) { r.Limit.Body = n } }

// Within bounds the time of an answer.
func Within(d time.Duration) Option { return func(r *Route) { r.Limit.Time = d } }

// Submits counts the operation as a submission.
func Submits() Option { return func(r *Route) { r.Limit.Submit = true } }

// Errors are codes that the operation answers with.
func Errors(codes ...string) Option { return func(r *Route) { r.Errors = append(r.Errors, codes...) } }

// JSON is a route whose handler takes a decoded request and returns what is answered as JSON.
func JSON[In, Out any](method, path, rule, summary string, h func(context.Context, *desk.Desk, *In) (*Out, error), o ...Option) Route {
	r := Route{Method: method, Path: path, Rule: rule, Summary: summary, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out]()}
	r.Serve = func(c *Call) error {
		in := new(In)
		if err := c.Decode(in); err != nil {
			return err
		}
		if list, ok := any(in).(weighed); ok {
			if err := c.Rows(list.Rows()); err != nil {
				return err
			}
		}
		out, err := h(c.Context(), c.Desk, in)
		if err != nil {
			return err
		}
		return c.JSON(out)
	}
	for _, change := range o {
		change(&r)
	}
	return r
}

// Text is a route whose answer is a fixed text.
func Text(method, path, rule, summary, text string, o ...Option) Route {
	r := Route{Method: method, Path: path, Rule: rule, Summary: summary, Media: "text/plain; charset=utf-8", Serve: func(c *Call) error { return c.Text(text) }}
	for _, change := range o {
		change(&r)
	}
	return r
}

// Lines answers with a stream of lines of JSON, application/x-ndjson. Its Send may be called by several at a time. A line "{}" goes out
// whenever nothing else did for some time, so that both ends know that the other is there; alive, which may be nil, is called then, and ends the
// stream by an error.
type Lines struct {
	call *Call
	mu   sync.Mutex
	last time.Time
	err  error
	stop context.CancelCauseFunc
	ctx  context.Context
	done chan struct{}
}

// aliveEvery is how often a line goes out at least, writeTime how long a reader may take for one.
const (
	aliveEvery = 15 * time.Second
	writeTime  = 30 * time.Second
)

// Lines begins the answer.
func (c *Call) Lines(alive func() error) *Lines {
	h := c.Writer.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	l := &Lines{call: c, last: time.Now(), done: make(chan struct{})}
	l.ctx, l.stop = context.WithCancelCause(c.Context())
	c.Writer.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(c.Writer).Flush()
	go l.keep(alive)
	return l
}

// Context ends when the reader is gone, or when alive has returned an error, which is its cause.
func (l *Lines) Context() context.Context { return l.ctx }

// End stops what Lines has begun.
func (l *Lines) End() {
	l.stop(nil)
	<-l.done
}

func (l *Lines) keep(alive func() error) {
	defer close(l.done)
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		if alive != nil {
			if err := alive(); err != nil {
				l.stop(err)
				return
			}
		}
		l.mu.Lock()
		quiet := time.Since(l.last) >= aliveEvery/2
		l.mu.Unlock()
		if quiet {
			_ = l.Send(struct{}{}) // a reader that is gone ends the context
		}
	}
}

// Send sends a line.
func (l *Lines) Send(value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	control := http.NewResponseController(l.call.Writer)
	if err := control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	l.last = time.Now()
	if _, l.err = l.call.Writer.Write(append(data, '\n')); l.err == nil {
		l.err = control.Flush()
	}
	if l.err != nil {
		l.stop(l.err)
	}
	return l.err
}
