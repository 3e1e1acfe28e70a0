package app

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Targets returns the running tasks of the job that the caller can enter.
func (j *Job) Targets(ctx context.Context) ([]*job.Target, error) {
	if err := j.decide("job.enter"); err != nil {
		return nil, err
	}
	return j.actions.app.Jobs.Targets(ctx, j.job)
}

// Exec describes a command to run in a task, and the streams of the command.
type Exec struct {
	Command            []string
	TTY                bool
	Stdin, Stdout, Err bool
}

// maxCommand limits the length of a command line, in bytes.
const maxCommand = 64 << 10

// Exec proxies an upgraded connection to a command in a task, and returns when the connection ends. It creates a new request to the API server, and
// copies only the headers of the protocol from the client's request.
func (j *Job) Exec(ctx context.Context, role string, index int32, e Exec, w http.ResponseWriter, r *http.Request) error {
	size := 0
	for _, c := range e.Command {
		size += len(c)
	}
	if len(e.Command) == 0 || size > maxCommand {
		return wire.Bad("command: name a command, of at most 64 KiB")
	}
	q := url.Values{"command": e.Command}
	for name, wanted := range map[string]bool{"tty": e.TTY, "stdin": e.Stdin, "stdout": e.Stdout, "stderr": e.Err && !e.TTY} {
		if wanted {
			q.Set(name, "true")
		}
	}
	return j.enter(ctx, role, index, "exec", q, w, r)
}

// Forward proxies an upgraded connection to ports of a task, and returns when the connection ends.
func (j *Job) Forward(ctx context.Context, role string, index int32, w http.ResponseWriter, r *http.Request) error {
	return j.enter(ctx, role, index, "portforward", url.Values{}, w, r)
}

// Enter writes to the audit log that the caller enters a task, by exec or portforward, and returns the task. check returns an error for an invalid
// connection. It may be nil.
func (j *Job) Enter(ctx context.Context, role string, index int32, way string, command []string, check func() error) (target *job.Target, err error) {
	detail := map[string]string{"way": way, "task": job.TaskName(role, index)}
	if len(command) > 0 {
		detail["program"] = wire.Shown(command[0]) // its arguments may hold secrets
	}
	err = j.change(ctx, "job.enter", detail, func(ctx context.Context) (err error) {
		if target, err = j.target(ctx, role, index); err != nil || check == nil {
			return err
		}
		return check()
	})
	return target, err
}

func (j *Job) enter(ctx context.Context, role string, index int32, way string, q url.Values, w http.ResponseWriter, r *http.Request) error {
	target, err := j.Enter(ctx, role, index, way, q["command"], func() error { return upgrades(r) })
	if err != nil {
		return err
	}
	if way == "exec" {
		q.Set("container", target.Container)
	}
	h, to, err := j.actions.app.upstream(target, way, q)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go j.guard(ctx, "job.enter", end)
	h.ServeHTTP(&entered{w, ctx}, clean(ctx, r, to))
	return nil
}

// guardEvery is the interval at which the server checks again whether an open connection is allowed. The server also checks when people or groups
// change.
const guardEvery = 5 * time.Second

// guard calls end when a rule no longer allows the connection, because connections can outlast grants. It returns when the context ends.
func (j *Job) guard(ctx context.Context, rule string, end func()) {
	changed, stop := j.actions.app.People.Changed()
	defer stop()
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
		if j.still(rule) != nil {
			end()
			return
		}
	}
}

// entered is a ResponseWriter that closes its hijacked connection when a context ends.
type entered struct {
	http.ResponseWriter
	until context.Context
}

// Unwrap returns the wrapped ResponseWriter for http.ResponseController.
func (e *entered) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// Hijack implements http.Hijacker, and closes the connection when the context ends.
func (e *entered) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(e.ResponseWriter).Hijack()
	if err == nil {
		context.AfterFunc(e.until, func() { _ = conn.Close() })
	}
	return conn, rw, err
}

// target finds a task in the API server's list of the job's pods. role is the role's name in the job file or in the Framework.
func (j *Job) target(ctx context.Context, role string, index int32) (*job.Target, error) {
	all, err := j.actions.app.Jobs.Targets(ctx, j.job)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if name, _, _ := job.ParseTask(t.Task); t.Index == index && (name == role || t.Role == role) {
			return t, nil
		}
	}
	return job.PickOf(j.job, all, role, index)
}

// upgrades returns an error unless a request upgrades the connection to WebSocket or SPDY/3.1, which are the two protocols of the kubelet.
func upgrades(r *http.Request) error {
	if r.ProtoMajor != 1 || !strings.EqualFold(strings.TrimSpace(r.Header.Get("Connection")), "upgrade") {
		return wire.Bad("this operation needs an upgrade of the connection, over HTTP/1.1")
	}
	switch up := strings.ToLower(r.Header.Get("Upgrade")); {
	case up == "websocket" && r.Method == http.MethodGet, up == "spdy/3.1" && len(r.Header.Values("Upgrade")) == 1:
		return nil
	}
	return wire.Bad("the connection can be upgraded to websocket or to SPDY/3.1")
}

// passed lists the headers that are forwarded to the API server. They describe the protocol, and don't identify the client.
var passed = []string{"Upgrade", "X-Stream-Protocol-Version", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions"}

// clean returns the request to the API server, with only the passed headers of the client's request.
func clean(ctx context.Context, r *http.Request, to *url.URL) *http.Request {
	out := (&http.Request{Method: r.Method, URL: to, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: to.Host, Header: http.Header{}, Body: http.NoBody}).WithContext(ctx)
	for _, name := range passed {
		for _, v := range r.Header.Values(name) {
			out.Header.Add(name, v)
		}
	}
	out.Header.Set("Connection", "Upgrade")
	for _, line := range r.Header.Values("Sec-Websocket-Protocol") {
		for one := range strings.SplitSeq(line, ",") {
			// A browser would send a token as a subprotocol. The server doesn't accept such a token, and doesn't forward it. Tickets aren't forwarded
			// either.
			if one = strings.TrimSpace(one); one != "" && !strings.HasPrefix(one, "base64url.bearer.") && !strings.HasPrefix(one, TicketProtocol) {
				out.Header.Add("Sec-Websocket-Protocol", one)
			}
		}
	}
	return out
}

// upstream returns a handler that proxies a connection to a pod, and the exec or portforward URL of the pod in the API server.
func (s *App) upstream(t *job.Target, way string, q url.Values) (http.Handler, *url.URL, error) {
	config := rest.CopyConfig(s.Jobs.Config)
	config.WrapTransport = nil // it limits the duration of requests, and this connection lasts longer
	config.NextProtos = []string{"http/1.1"}
	settings, err := config.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	tls, err := transport.TLSConfigFor(settings)
	if err != nil {
		return nil, nil, err
	}
	wrapped, err := transport.HTTPWrappersForConfig(settings, proxy.MirrorRequest)
	if err != nil {
		return nil, nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, err
	}
	to := base.JoinPath("api", "v1", "namespaces", t.Namespace, "pods", t.Pod, way)
	to.RawQuery = q.Encode()
	h := proxy.NewUpgradeAwareHandler(to, nil, false, true, responder{s})
	h.UseLocationHost = true
	through := &http.Transport{TLSClientConfig: tls}
	if settings.DialHolder != nil {
		through.DialContext = settings.DialHolder.Dial
	}
	h.UpgradeTransport = proxy.NewUpgradeRequestRoundTripper(through, wrapped)
	return h, to, nil
}

// responder responds to the client if the API server can't be reached.
type responder struct{ app *App }

// Error implements proxy.ErrorResponder.
func (responder) Error(w http.ResponseWriter, r *http.Request, err error) {
	wire.Fail(w, r, &wire.Error{Status: http.StatusBadGateway, Code: wire.CodeUnavailable, Message: "the task can't be reached: " + reason(err)})
}

// reason describes an error without internal addresses of the cluster.
func reason(err error) string {
	if strings.Contains(err.Error(), "refused") {
		return "the connection was refused"
	}
	return "the connection was lost"
}

// Index parses the index of a task. It returns an error for a text that isn't a number, or for a negative number.
func Index(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, wire.Bad("the index of a task is a number")
	}
	return int32(n), nil
}
