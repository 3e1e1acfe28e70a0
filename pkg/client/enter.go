package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// task returns the URL for connecting to a task of a job. The server finds the task's pod.
func (c *Jobs) task(t *job.Target, way string, q url.Values) *url.URL {
	path := one(&job.Job{User: t.User, Name: t.Job}, "/tasks/"+url.PathEscape(t.Role)+"/"+strconv.Itoa(int(t.Index))+"/"+way)
	to := *c.base
	to.Path, _ = url.PathUnescape(path) // it was escaped here
	to.RawPath, to.RawQuery = path, q.Encode()
	return &to
}

// config returns a client-go configuration for the server, as if it were an API server. Each connection uses the token that is current when it
// opens.
func (c *Jobs) config() *rest.Config {
	return &rest.Config{Host: c.base.String(), UserAgent: "paictl/" + c.version, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca}, Proxy: http.ProxyFromEnvironment,
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { return authorized{next, c.tokens} }}
}

// authorized is a transport that adds the current token to requests.
type authorized struct {
	next   http.RoundTripper
	tokens Tokens
}

// RoundTrip implements http.RoundTripper.
func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := a.tokens.Access(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token.Reveal())
	return a.next.RoundTrip(r)
}

// Exec runs a command in a task, with the command's input and output connected to cmd.
func (c *Jobs) Exec(ctx context.Context, t *job.Target, cmd stream.Command) error {
	if c.inside != nil {
		return c.inside.Exec(ctx, t, cmd)
	}
	q := url.Values{"command": cmd.Args, "stdout": {"true"}}
	for name, yes := range map[string]bool{"stdin": cmd.Stdin != nil, "stderr": !cmd.TTY, "tty": cmd.TTY} {
		if yes {
			q.Set(name, "true")
		}
	}
	return c.refusal(stream.ExecAt(ctx, c.config(), c.task(t, "exec", q), cmd))
}

// Forward forwards the connections that a listener accepts to a port of a task, until ctx ends.
func (c *Jobs) Forward(ctx context.Context, t *job.Target, port int, l net.Listener, problem func(error)) error {
	if c.inside != nil {
		return c.inside.Forward(ctx, t, port, l, problem)
	}
	p := stream.Port{Namespace: t.Namespace, Pod: t.Pod, Number: port}
	return stream.ServeAt(ctx, c.config(), c.task(t, "portforward", nil), l, p, func(err error) { problem(c.refusal(err)) })
}

// refusal extracts the server's own message from client-go's error for a rejected connection. It returns other errors unchanged.
func (c *Jobs) refusal(err error) error {
	if err == nil {
		return nil
	}
	if _, exit := errors.AsType[*stream.ExitError](err); exit {
		return err
	}
	_, body, ok := strings.Cut(err.Error(), "{")
	if !ok {
		return err
	}
	said := api.Error{}
	if json.NewDecoder(strings.NewReader("{"+body)).Decode(&said) != nil || said.Code == "" || said.Message == "" {
		return err
	}
	return explained(&Error{Body: said, Host: c.base.Host, Status: statusOf(said.Code)})
}
