package server

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Route is one operation of the API. The router, the documents and the tests use the same Routes.
type Route struct {
	// Method is GET, POST or another method. "" means any method. A route for GET also serves HEAD.
	Method string
	// Path is a pattern of net/http's ServeMux, such as /api/v2/jobs/{job}.
	Path string
	// Aliases are other paths of the same operation.
	Aliases []string
	// Rule is the id of a rule in rules.Table. Before the handler runs, the server checks the part of the rule that doesn't depend on the object.
	Rule string
	// In and Out are the types of the request and the response. They may be nil.
	In, Out reflect.Type
	// Or lists other types of the response.
	Or []reflect.Type
	// Media is the media type of the response. "" means JSON.
	Media string
	// Status is the status of a successful response. 0 means 200.
	Status int
	// Accepts also allows the status 202, for operations that may take longer than a response.
	Accepts bool
	// Link is the name of the path parameter with a link. It is "" if the route accepts no links. A link replaces a token.
	Link string
	// Limit limits the requests of the route.
	Limit Limit
	// Errors lists the error codes of the route's responses, in addition to the codes of all routes.
	Errors []string
	// Browser makes the route accept the cookie of a browser's session. The route redirects a browser without a session to the sign-in page if the
	// browser requests a page. Without an Authorization header, only pages of the same origin may send such a request. Routes without Browser ignore
	// the cookie.
	Browser bool
	// Navigation allows pages of other origins to link to this route. It requires Browser. A page with such a link can't read the response.
	Navigation bool
	// Caller returns the caller of a request without an Authorization header. It replaces the cookie of the session. It may be nil.
	Caller func(*app.App, *http.Request) (app.Caller, error)
	// SignIn is called for a browser without a session, instead of the redirect to the sign-in page. It may be nil.
	SignIn func(http.ResponseWriter, *http.Request)
	// Summary describes the operation in one sentence.
	Summary string
	// Serve handles a request. The server converts its error to a response.
	Serve func(*Call) error
}

// Limit limits the requests of a route.
type Limit struct {
	// Body is the maximum size of the body in bytes. 0 means 100 kB, as in OpenPAI.
	Body int64
	// Time limits the duration of the response. 0 means 30 seconds. It doesn't limit streams.
	Time   time.Duration
	Stream bool
	// Submit counts the requests as submissions.
	Submit bool
	// Template counts the requests as changes of job templates.
	Template bool
	// Address counts a request without an Authorization header by its address before the caller is known. Caller sends a request to the API server,
	// which must be limited.
	Address bool
	// Each is the maximum number of simultaneous requests of a person. Further requests wait. 0 means no limit.
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
	// read releases the rows of a list after they have been encoded. It is nil if the request has no rows.
	read func()
}

// Meaning converts an error to the form that streams send after the status.
func (c *Call) Meaning(err error) *wire.Error { return c.meaning(err) }

// Context returns the context of the request.
func (c *Call) Context() context.Context { return c.Request.Context() }

// Decode decodes the request into a struct; see wire.Decode.
func (c *Call) Decode(in any) error { return wire.Decode(c.Request, in) }

// JSON responds with a value, and with the route's status.
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

// Accepted responds with the status 202, because the operation is still in progress.
func (c *Call) Accepted(value any) error {
	return wire.JSON(c.Writer, c.Request, http.StatusAccepted, value)
}

// Text responds with a text in the route's media type.
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

// Option changes a route.
type Option func(*Route)

// Also adds other paths of the same operation.
func Also(paths ...string) Option { return func(r *Route) { r.Aliases = append(r.Aliases, paths...) } }

// Status sets the status of successful responses.
func Status(code int) Option { return func(r *Route) { r.Status = code } }

// Body sets the maximum size of the request's body, in bytes.
func Body(n int64) Option { return func(r *Route) { r.Limit.Body = n } }

// Each sets the maximum number of simultaneous requests of a person.
func Each(n int) Option { return func(r *Route) { r.Limit.Each = n } }

// Within sets the maximum duration of a response.
func Within(d time.Duration) Option { return func(r *Route) { r.Limit.Time = d } }

// Submits counts requests for the operation as submissions.
func Submits() Option { return func(r *Route) { r.Limit.Submit = true } }

// Templates counts requests for the operation as changes of job templates.
func Templates() Option { return func(r *Route) { r.Limit.Template = true } }

// Browser makes the route accept the cookie of a browser's session; see Route.
func Browser() Option { return func(r *Route) { r.Browser = true } }

// Errors adds error codes of the operation's responses.
func Errors(codes ...string) Option { return func(r *Route) { r.Errors = append(r.Errors, codes...) } }

// JSON returns a route whose handler gets a decoded request. The route sends the result of the handler as JSON.
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
