package stream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/kube"
)

// open returns a connection to a cluster with the timeout that paictl uses.
func open(t *testing.T, h http.Handler) *kube.Cluster {
	t.Helper()
	c, err := kube.Open(kube.Options{Kubeconfig: jobtest.Kubeconfig(t, h)})
	require.NoError(t, err)
	return c
}

// both runs a test twice: with WebSockets and without them.
func both(t *testing.T, k jobtest.Kubelet, test func(*testing.T, *kube.Cluster)) {
	t.Helper()
	for name, without := range map[string]bool{"WebSockets": false, "SPDY": true} {
		t.Run(name, func(t *testing.T) {
			k := k
			k.NoWebSockets = without
			test(t, open(t, k.Before(http.NotFoundHandler())))
		})
	}
}

func TestACommandGetsItsInputAndGivesItsOutputAndExitCode(t *testing.T) {
	large := strings.Repeat("x", 300_000)
	k := jobtest.Kubelet{Exec: func(p *jobtest.Process) *metav1.Status {
		assert.Equal(t, []string{"cat", "-"}, p.Args)
		assert.Equal(t, "app", p.Query.Get("container"))
		input, err := io.ReadAll(p.Stdin)
		assert.NoError(t, err)
		_, _ = p.Stdout.Write(input)
		_, _ = io.WriteString(p.Stderr, "oh")
		return jobtest.Exited(3)
	}}
	both(t, k, func(t *testing.T, c *kube.Cluster) {
		var out, errOut bytes.Buffer
		err := stream.Exec(t.Context(), c, stream.Command{Namespace: "n", Pod: "p", Container: "app", Args: []string{"cat", "-"},
			Stdin: strings.NewReader(large), Stdout: &out, Stderr: &errOut})
		var exit *stream.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 3, exit.Code)
		assert.Equal(t, large, out.String())
		assert.Equal(t, "oh", errOut.String())
	})
}

func TestATerminalTellsItsSizes(t *testing.T) {
	k := jobtest.Kubelet{Exec: func(p *jobtest.Process) *metav1.Status {
		assert.Equal(t, "true", p.Query.Get("tty"))
		sizes := json.NewDecoder(p.Sizes)
		for _, want := range []stream.Size{{Width: 80, Height: 24}, {Width: 100, Height: 30}} {
			var s stream.Size
			assert.NoError(t, sizes.Decode(&s))
			assert.Equal(t, want, s)
		}
		return jobtest.Exited(0)
	}}
	both(t, k, func(t *testing.T, c *kube.Cluster) {
		sizes := make(chan stream.Size, 2)
		sizes <- stream.Size{Width: 80, Height: 24}
		sizes <- stream.Size{Width: 100, Height: 30}
		require.NoError(t, stream.Exec(t.Context(), c, stream.Command{Namespace: "n", Pod: "p", Args: []string{"sh"}, TTY: true, Sizes: sizes}))
	})
}

func TestACommandThatCannotStartSaysWhy(t *testing.T) {
	k := jobtest.Kubelet{Exec: func(*jobtest.Process) *metav1.Status { return jobtest.NotStarted("no such container") }}
	both(t, k, func(t *testing.T, c *kube.Cluster) {
		require.EqualError(t, stream.Exec(t.Context(), c, stream.Command{Namespace: "n", Pod: "p"}), "no such container")
	})
}

func TestTheAPIServersRefusalKeepsItsReasonAndIsNotAskedForTwice(t *testing.T) {
	for reason, is := range map[metav1.StatusReason]func(error) bool{metav1.StatusReasonNotFound: apierrors.IsNotFound, metav1.StatusReasonForbidden: apierrors.IsForbidden} {
		asked := 0
		s := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Message: "pods \"p\": no"}
		c := open(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(s)
		}))
		err := stream.Exec(t.Context(), c, stream.Command{Namespace: "n", Pod: "p"})
		require.EqualError(t, err, `pods "p": no`)
		assert.True(t, is(err))
		assert.Equal(t, 1, asked)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		told := serve(t, c, l)
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		err = <-told
		assert.True(t, is(err), err)
		assert.Equal(t, 2, asked)
		require.NoError(t, conn.Close())
	}
}

func TestAConnectionThatBreaksIsAnError(t *testing.T) {
	c := open(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }))
	require.Error(t, stream.Exec(t.Context(), c, stream.Command{Namespace: "n", Pod: "p"}))
}

func TestCancellingEndsACommand(t *testing.T) {
	started := make(chan struct{}, 1)
	k := jobtest.Kubelet{Exec: func(p *jobtest.Process) *metav1.Status {
		started <- struct{}{}
		_, _ = io.ReadAll(p.Sizes) // until the client hangs up
		return nil
	}}
	both(t, k, func(t *testing.T, c *kube.Cluster) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-started
			cancel()
		}()
		sizes := make(chan stream.Size)
		require.ErrorIs(t, stream.Exec(ctx, c, stream.Command{Namespace: "n", Pod: "p", Stdout: io.Discard, TTY: true, Sizes: sizes}), context.Canceled)
	})
}

// full is a writer whose Write always fails.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestACommandEndsWhenNobodyTakesItsOutput(t *testing.T) {
	k := jobtest.Kubelet{Exec: func(p *jobtest.Process) *metav1.Status {
		for {
			if _, err := p.Stdout.Write(make([]byte, 1000)); err != nil {
				return nil
			}
		}
	}}
	both(t, k, func(t *testing.T, c *kube.Cluster) {
		require.ErrorIs(t, stream.Exec(t.Context(), c, stream.Command{Namespace: "n", Pod: "p", Stdout: full{}}), errFull)
	})
}

// serve forwards connections to port 8080 of a pod until the test ends. It returns a channel of the errors.
func serve(t *testing.T, c *kube.Cluster, l net.Listener) <-chan error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(chan error, 8), make(chan error, 1)
	go func() {
		done <- stream.Serve(ctx, c, l, stream.Port{Namespace: "n", Pod: "p", Number: 8080}, func(err error) { told <- err })
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return told
}

func TestAPortIsForwardedAndTheAnswerComesAfterTheClientHasSaidAll(t *testing.T) {
	k := jobtest.Kubelet{Port: func(number string, conn io.ReadWriter) error {
		assert.Equal(t, "8080", number)
		asked, err := io.ReadAll(conn)
		assert.NoError(t, err)
		_, err = io.WriteString(conn, strings.ToUpper(string(asked)))
		return err
	}}
	both(t, k, func(t *testing.T, c *kube.Cluster) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		told := serve(t, c, l)
		for range 2 {
			conn, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			_, err = io.WriteString(conn, "ping")
			require.NoError(t, err)
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
			answer, err := io.ReadAll(conn)
			require.NoError(t, err)
			assert.Equal(t, "PING", string(answer))
		}
		assert.Empty(t, told)
	})
}

func TestAPortThatNobodyServesIsToldAndTheNextConnectionIsTried(t *testing.T) {
	k := jobtest.Kubelet{Port: func(string, io.ReadWriter) error { return errors.New("connection refused") }}
	both(t, k, func(t *testing.T, c *kube.Cluster) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		told := serve(t, c, l)
		for range 2 {
			conn, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			require.EqualError(t, <-told, "forward a connection to port 8080 of p: connection refused")
			require.NoError(t, conn.Close())
		}
	})
}

func TestCancellingEndsAnUpgradeThatIsNotAnswered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan struct{})
	c := open(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-end
	}))
	t.Cleanup(func() { close(end) })
	require.ErrorIs(t, stream.Exec(ctx, c, stream.Command{Namespace: "n", Pod: "p"}), context.Canceled)
}
