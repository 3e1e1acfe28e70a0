package jobtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	clientforward "k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// Process is a command that runs in a simulated container.
type Process struct {
	Query  url.Values // as the client asked: container, tty and so on
	Args   []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Sizes  io.Reader // JSON, one after the other
}

// Kubelet serves commands and ports of containers, like an API server with a kubelet behind it. It implements the protocols with Kubernetes' own
// libraries.
type Kubelet struct {
	Exec func(*Process) *metav1.Status
	// Port serves a connection to a port. It returns the error that the client receives.
	Port func(number string, conn io.ReadWriter) error
	// NoWebSockets allows only SPDY, like some proxies.
	NoWebSockets bool
}

// Exited returns the status of a command that ended with an exit code.
func Exited(code int) *metav1.Status {
	if code == 0 {
		return &metav1.Status{Status: metav1.StatusSuccess}
	}
	return &metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}}}}
}

// NotStarted returns the status of a command that couldn't be started.
func NotStarted(why string) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: why}
}

// Before returns a handler that serves requests for commands and ports, and passes all other requests to next.
func (k *Kubelet) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exec, port := strings.HasSuffix(r.URL.Path, "/exec"), strings.HasSuffix(r.URL.Path, "/portforward")
		ws := wsstream.IsWebSocketRequest(r)
		switch {
		case !exec && !port:
			next.ServeHTTP(w, r)
		case ws && k.NoWebSockets:
			http.Error(w, "no WebSockets here", http.StatusBadRequest)
		case exec && ws:
			k.execWebSocket(w, r)
		case exec:
			k.execSPDY(w, r)
		case ws:
			k.forwardWebSocket(w, r)
		default:
			k.forwardSPDY(w, r)
		}
	})
}

func process(r *http.Request) *Process {
	q := r.URL.Query()
	return &Process{Query: q, Args: q["command"], Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Sizes: strings.NewReader("")}
}

func (k *Kubelet) execWebSocket(w http.ResponseWriter, r *http.Request) {
	in, out := wsstream.ReadChannel, wsstream.WriteChannel
	c := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		remotecommand.StreamProtocolV5Name: {Binary: true, Channels: []wsstream.ChannelType{in, out, out, out, in}}})
	_, s, err := c.Open(w, r)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	p := process(r)
	p.Stdin, p.Stdout, p.Stderr, p.Sizes = s[remotecommand.StreamStdIn], s[remotecommand.StreamStdOut], s[remotecommand.StreamStdErr], s[remotecommand.StreamResize]
	if status := k.Exec(p); status != nil { // nil: the connection breaks
		_ = json.NewEncoder(s[remotecommand.StreamErr]).Encode(status)
	}
}

// upgraded upgrades a request to a SPDY connection, and returns the connection with a channel of its streams.
func upgraded(w http.ResponseWriter, r *http.Request, protocol string) (httpstream.Connection, <-chan httpstream.Stream) {
	if _, err := httpstream.Handshake(r, w, []string{protocol}); err != nil {
		return nil, nil
	}
	streams := make(chan httpstream.Stream, 16)
	return spdy.NewResponseUpgrader().UpgradeResponse(w, r, accept(streams)), streams
}

// accept returns a handler that sends each stream to the channel, but only after the client received the response. A kubelet does the same,
// because a client that closes the connection earlier resets the stream. The order of the streams may vary.
func accept(streams chan<- httpstream.Stream) httpstream.NewStreamHandler {
	return func(s httpstream.Stream, answered <-chan struct{}) error {
		go func() {
			<-answered
			streams <- s
		}()
		return nil
	}
}

func (k *Kubelet) execSPDY(w http.ResponseWriter, r *http.Request) {
	c, streams := upgraded(w, r, remotecommand.StreamProtocolV4Name)
	if c == nil {
		return
	}
	defer func() { _ = c.Close() }()
	p := process(r)
	wanted := 1
	for _, name := range []string{"stdin", "stdout", "stderr", "tty"} { // a terminal has a stream of sizes
		if p.Query.Get(name) == "true" {
			wanted++
		}
	}
	var failure httpstream.Stream
	for ; wanted > 0; wanted-- {
		select {
		case s := <-streams:
			switch s.Headers().Get(corev1.StreamType) {
			case corev1.StreamTypeStdin:
				p.Stdin = s
			case corev1.StreamTypeStdout:
				p.Stdout = s
			case corev1.StreamTypeStderr:
				p.Stderr = s
			case corev1.StreamTypeResize:
				p.Sizes = s
			default:
				failure = s
			}
		case <-c.CloseChan():
			return
		}
	}
	if status := k.Exec(p); status != nil {
		_ = json.NewEncoder(failure).Encode(status)
	}
}

func (k *Kubelet) forwardSPDY(w http.ResponseWriter, r *http.Request) {
	if c, streams := upgraded(w, r, portforward.PortForwardV1Name); c != nil {
		k.forward(r.Context(), c, streams)
	}
}

func (k *Kubelet) forwardWebSocket(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{Subprotocols: []string{portforward.WebsocketsSPDYTunnelingPortForwardV1}}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 16)
	c, err := spdy.NewServerConnection(clientforward.NewTunnelingConnection("server", ws), accept(streams))
	if err != nil {
		return
	}
	k.forward(r.Context(), c, streams)
}

// forward serves the forwarded connections. Each of them is a pair of streams with the same number.
func (k *Kubelet) forward(ctx context.Context, c httpstream.Connection, streams <-chan httpstream.Stream) {
	defer func() { _ = c.Close() }()
	first := map[string]httpstream.Stream{}
	for {
		select {
		case s := <-streams:
			number := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			failure, paired := first[number]
			if !paired {
				first[number] = s
				continue
			}
			delete(first, number)
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				failure, s = s, failure
			}
			go func() {
				if err := k.Port(s.Headers().Get(corev1.PortHeader), s); err != nil {
					_, _ = io.WriteString(failure, err.Error())
				}
				_, _ = failure.Close(), s.Close()
			}()
		case <-c.CloseChan():
			return
		case <-ctx.Done():
			return
		}
	}
}
