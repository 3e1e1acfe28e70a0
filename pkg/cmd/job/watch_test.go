package job

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// pipes listens for connections within the process. A bubble of synctest waits for such connections.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{} }

// serve returns a client of jobs. mux handles the requests of the client.
func serve(t *testing.T, mux *http.ServeMux) *client.Jobs {
	t.Helper()
	return serveInside(t, mux, &client.Inside{})
}

// serveInside returns a client of jobs. mux handles the requests of the client, and the functions of in connect to tasks.
func serveInside(t *testing.T, mux *http.ServeMux, in *client.Inside) *client.Jobs {
	t.Helper()
	l, srv := pipes{conns: make(chan net.Conn), closed: make(chan struct{})}, &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() {
		close(l.closed)
		assert.NoError(t, srv.Close())
	})
	in.Dial = func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case l.conns <- there:
			return here, nil
		case <-l.closed: // the client may connect ahead of a request that never comes
			return nil, net.ErrClosed
		}
	}
	s, err := client.New(client.Options{Inside: in})
	require.NoError(t, err)
	return &client.Jobs{Server: s}
}

// send writes each value as a line of JSON.
func send[T any](w http.ResponseWriter, values ...T) {
	for _, v := range values {
		_ = json.NewEncoder(w).Encode(v) // a client that is gone fails the test itself
	}
	_ = http.NewResponseController(w).Flush()
}

// stateOf returns a frame with the name and the state of a job.
func stateOf(name string, state job.Phase) v3.Frame {
	return v3.Frame{Detail: &job.Detail{Row: job.Row{Job: api.Job{User: "ann", Name: name, State: string(state)}}}}
}

// late is a terminal that receives no output until the job finishes.
type late struct {
	ended chan struct{}
	out   bytes.Buffer
}

func (l *late) Write(p []byte) (int, error) {
	<-l.ended
	return l.out.Write(p)
}

func TestWatchShowsAllThatWasPrintedHoweverSlowTheTerminal(t *testing.T) {
	const lines = 5000
	out, stderr := &late{ended: make(chan struct{})}, &bytes.Buffer{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v3/jobs/ann/train/follow", func(w http.ResponseWriter, _ *http.Request) {
		defer close(out.ended)
		send(w, stateOf("train", job.Succeeded), v3.Frame{End: true})
	})
	mux.HandleFunc("GET /api/v3/jobs/ann/train/logs", func(w http.ResponseWriter, _ *http.Request) {
		for i := range lines {
			send(w, v3.Frame{Line: &logs.Line{Task: "worker[0]", Line: logapi.Line{Stamp: fmt.Sprintf("2026-01-02T03:04:05.%09dZ", i), Text: fmt.Appendf(nil, "line %d", i)}, Single: true}})
		}
		send(w, v3.Frame{End: true})
	})
	j := &job.Job{User: "ann", Name: "train", Roles: []job.Role{{Name: "worker", Tasks: 1}}}
	f := &cmdutil.Factory{IO: &iostreams.IOStreams{Out: out, Err: stderr}}
	require.NoError(t, watch(t.Context(), f, serve(t, mux), j, followOptions{until: job.Phase.Done}, false))
	got := strings.Split(strings.TrimSpace(out.out.String()), "\n")
	assert.Len(t, got, lines)
	assert.Equal(t, "line 4999", got[len(got)-1])
	assert.NotContains(t, stderr.String(), "warning")
}
