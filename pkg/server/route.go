package server

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Route is one operation of the API. The router, the documents and the tests use the same table of routes.
type Route struct {
	// Method is GET, POST and so on; "" means any method. Routes for GET serve HEAD, too.
	Method string
	// Path is a pattern of net/http's ServeMux: /api/v2/jobs/{job}.
	Path string
	// Aliases are other paths of the same operation.
	Aliases []string
	// Rule is the id of a rule in rules.Table. The part of the rule that doesn't need the object is checked before the handler
	// runs.
	Rule string
	// In and Out are the types of the request and the response; they may be nil.
	In, Out reflect.Type
	// Or are other types of the response.
	Or []reflect.Type
	// Media is the media type of the response; "" is JSON.
	Media string
	// Status is the status of success; 0 is 200.
	Status int
	// Accepts also allows the status 202, if the operation takes longer than a response may.
	Accepts bool
	// Link is the parameter of the path that holds a link, which replaces a token; "" if the route needs a token.
	Link string
	// Limit bounds the request.
	Limit Limit
	// Errors are the error codes of the route's responses, in addition to the codes of all routes.
	Errors []string
	// Browser also accepts the cookie of a browser's session, and redirects requests for a page without one to the sign-in page.
	// Without an Authorization header, only pages of the same origin may send such a request. Other routes ignore the cookie.
	Browser bool
	// Navigation allows links of pages of other origins to this route of Browser: such a page doesn't get the response.
	Navigation bool
	// Caller returns the caller of a request without an Authorization header, instead of the caller of the session's cookie.
	// It may be nil.
	Caller func(*app.App, *http.Request) (app.Caller, error)
	// SignIn redirects a browser without a session, instead of to the sign-in page. It may be nil.
	SignIn func(http.ResponseWriter, *http.Request)
	// Summary describes the operation in one sentence.
	Summary string
	// Serve handles a request. Its error is converted to a response in one place.
	Serve func(*Call) error
}

// Limit bounds a request.
type Limit struct {
	// Body is in bytes; 0 is 100 kB, as in OpenPAI.
	Body int64
	// Time bounds the time of the response; 0 is 30 seconds. Streams have no such bound.
	Time   time.Duration
	Stream bool
	// Submit counts the request as a submission.
	Submit bool
	// Template counts the request as a change of a job template.
	Template bool
	// Address counts a request without an Authorization header against its address before its caller is known, because Caller sends
	// a request to the API server.
	Address bool
	// Each is how many such requests of a person are processed at a time; further requests wait. 0 means no limit.
	Each int
}

// Call is one request that is being served.
type Call struct {
	Writer  http.ResponseWriter
	Request *http.Request
	Actions *app.Actions
	Route   *Route
	meaning func(error) *wire.Error
	rows    func(n int) (give func(), err error)
	unsent  func(bytes int) (give func(), err error)
	place   func(kind string, most int) (give func(), err error)
	// read is called when the rows of a list are no longer in memory; nil if the request has no rows.
	read func()
}

// Meaning converts an error that a stream sends after its status.
func (c *Call) Meaning(err error) *wire.Error { return c.meaning(err) }

// Context returns the context of the request.
func (c *Call) Context() context.Context { return c.Request.Context() }

// Decode fills a struct from the request; see wire.Decode.
func (c *Call) Decode(in any) error { return wire.Decode(c.Request, in) }

// JSON responds with a value and the route's status.
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

// Accepted responds that the operation is in progress.
func (c *Call) Accepted(value any) error {
	return wire.JSON(c.Writer, c.Request, http.StatusAccepted, value)
}

// Text sends a text of the route's media type.
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

// Status sets the status of success.
func Status(code int) Option { return func(r *Route) { r.Status = code } }

// Body bounds the body of the request, in bytes.
func Body(n int64) Option { return func(r *Route) { r.Limit.Body = n } }

// Each bounds how many requests of the operation are processed for a person at a time.
func Each(n int) Option { return func(r *Route) { r.Limit.Each = n } }

// Within bounds the time of a response.
func Within(d time.Duration) Option { return func(r *Route) { r.Limit.Time = d } }

// Submits counts the operation as a submission.
func Submits() Option { return func(r *Route) { r.Limit.Submit = true } }

// Templates counts the operation as a change of a job template.
func Templates() Option { return func(r *Route) { r.Limit.Template = true } }

// Browser allows the cookie of a browser's session; see Route.
func Browser() Option { return func(r *Route) { r.Browser = true } }

// Errors adds error codes of the operation's responses.
func Errors(codes ...string) Option { return func(r *Route) { r.Errors = append(r.Errors, codes...) } }

// JSON returns a route whose handler takes a decoded request and returns a value that is sent as JSON.
func JSON[In, Out any](method, path, rule, summary string, h func(context.Context, *app.Actions, *In) (*Out, error), o ...Option) Route {
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
		out, err := h(c.Context(), c.Actions, in)
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

// Text returns a route that responds with a fixed text.
func Text(method, path, rule, summary, text string, o ...Option) Route {
	r := Route{Method: method, Path: path, Rule: rule, Summary: summary, Media: "text/plain; charset=utf-8", Serve: func(c *Call) error { return c.Text(text) }}
	for _, change := range o {
		change(&r)
	}
	return r
}
