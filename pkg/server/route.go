package server

import (
	"context"
	"net/http"
	"reflect"
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
	// Or are other forms of the answer.
	Or []reflect.Type
	// Media is the answer's; "" is JSON.
	Media string
	// Status is that of success; 0 is 200.
	Status int
	// Accepts: 202 is an answer, too, where what is asked for takes longer than the answer may.
	Accepts bool
	// Link is the part of the path that has a link, which stands for a token; "" where a token is asked for.
	Link string
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
	// Template: it counts as a change of a job template.
	Template bool
	// Each is how many of it a person has at a time, one more waits; 0 is any number.
	Each int
}

// Call is one request on its way.
type Call struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Desk    *desk.Desk
	Route   *Route
	rows    func(n int) (give func(), err error)
	unsent  func(bytes int) (give func(), err error)
	place   func(kind string, most int) (give func(), err error)
	// read is called when the rows of a list aren't in memory any longer; nil where there are none.
	read func()
}

// Context is the request's.
func (c *Call) Context() context.Context { return c.Request.Context() }

// Decode fills a struct from the request; see wire.Decode.
func (c *Call) Decode(in any) error { return wire.Decode(c.Request, in) }

// JSON answers with a value and the route's status.
func (c *Call) JSON(value any) error {
	if c.read == nil {
		return wire.JSON(c.Writer, c.Request, c.Route.status(), value)
	}
	body, err := wire.Pack(value)
	if err != nil {
		return err
	}
	return c.packed(body)
}

// Accepted answers that what is asked for is under way.
func (c *Call) Accepted(value any) error {
	return wire.JSON(c.Writer, c.Request, http.StatusAccepted, value)
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

// Each is how many of the operation a person has at a time.
func Each(n int) Option { return func(r *Route) { r.Limit.Each = n } }

// Within bounds the time of an answer.
func Within(d time.Duration) Option { return func(r *Route) { r.Limit.Time = d } }

// Submits counts the operation as a submission.
func Submits() Option { return func(r *Route) { r.Limit.Submit = true } }

// Templates counts the operation as a change of a job template.
func Templates() Option { return func(r *Route) { r.Limit.Template = true } }

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
