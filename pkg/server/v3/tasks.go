package v3

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

const oneTask = one + "/tasks/{role}/{index}"

// taskRoutes returns the routes that enter a task. They accept a ticket instead of the cookie of a session, because pages of other origins can't get
// a ticket.
func taskRoutes() []server.Route {
	stream := server.Limit{Stream: true, Address: true}
	var out []server.Route
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		out = append(out,
			server.Route{Method: method, Path: oneTask + "/exec", Rule: "job.enter", Summary: "Runs a command in a task, over an upgraded connection", Serve: exec, Caller: ticketHolder, In: reflect.TypeFor[execIn](), Status: http.StatusSwitchingProtocols, Limit: stream, Errors: []string{"NoJobError"}},
			server.Route{Method: method, Path: oneTask + "/portforward", Rule: "job.enter", Summary: "Connects to ports of a task, over an upgraded connection", Serve: forward, Caller: ticketHolder, Status: http.StatusSwitchingProtocols, Limit: stream, Errors: []string{"NoJobError"}})
	}
	for _, way := range []string{"/exec", "/portforward"} {
		out = append(out, server.Route{Method: http.MethodPost, Path: oneTask + way + ticketPath, Rule: "job.enter", Summary: "Returns a ticket with which a browser opens a WebSocket to " + oneTask[len(api.Prefix):] + way + ", once, within 30 seconds",
			Serve: ticket, Out: reflect.TypeFor[api.Ticket](), Errors: []string{"NoJobError"}})
	}
	return out
}

// ticketPath is the suffix of the path that creates a ticket for a task's path.
const ticketPath = "/ticket"

func ticket(c *server.Call) error {
	j, _, _, err := enter(c)
	if err != nil {
		return err
	}
	text, err := j.TicketTo(c.Context(), strings.TrimSuffix(c.Request.URL.Path, ticketPath))
	if err != nil {
		return err
	}
	c.Writer.Header().Set("Cache-Control", "no-store")
	return c.JSON(api.Ticket{Protocol: app.TicketProtocol + text.Reveal(), ExpiresIn: int(app.TicketTime.Seconds())})
}

// ticketHolder returns the caller of a ticket. A subprotocol of the WebSocket contains the ticket, because proxies log addresses, but not
// subprotocols. Without a ticket, the caller is a guest.
func ticketHolder(a *app.App, r *http.Request) (app.Caller, error) {
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for protocol := range strings.SplitSeq(line, ",") {
			text, found := strings.CutPrefix(strings.TrimSpace(protocol), app.TicketProtocol)
			switch {
			case !found:
			case r.Header.Get("Origin") == "":
				return app.Caller{}, wire.Bad("a ticket is for a browser, which sends an Origin; send a token instead")
			default:
				return a.AdmitTo(r.Context(), text, r.URL.Path)
			}
		}
	}
	return app.Caller{}, nil
}

type enterIn struct {
	User   string `path:"user"`
	Name   string `path:"name"`
	Role   string `path:"role"`
	Index  string `path:"index"`
	Stdin  bool   `query:"stdin"`
	Stdout bool   `query:"stdout"`
	Stderr bool   `query:"stderr"`
	TTY    bool   `query:"tty"`
}

// execIn describes a request for the OpenAPI document. The handler reads the words of the command unchanged.
type execIn struct {
	Command []string `query:"command"`
	Stdin   bool     `query:"stdin"`
	Stdout  bool     `query:"stdout"`
	Stderr  bool     `query:"stderr"`
	TTY     bool     `query:"tty"`
}

func exec(c *server.Call) error {
	j, in, index, err := enter(c)
	if err != nil {
		return err
	}
	e := app.Exec{Command: c.Request.URL.Query()["command"], TTY: in.TTY, Stdin: in.Stdin, Stdout: in.Stdout, Err: in.Stderr}
	return j.Exec(c.Context(), in.Role, index, e, c.Writer, c.Request)
}

func forward(c *server.Call) error {
	j, in, index, err := enter(c)
	if err != nil {
		return err
	}
	return j.Forward(c.Context(), in.Role, index, c.Writer, c.Request)
}

func enter(c *server.Call) (*app.Job, *enterIn, int32, error) {
	in := &enterIn{}
	if err := c.Decode(in); err != nil {
		return nil, nil, 0, err
	}
	index, err := app.Index(in.Index)
	if err != nil {
		return nil, nil, 0, err
	}
	j, err := c.Actions.Job(c.Context(), "job.enter", in.User, in.Name)
	return j, in, index, err
}
