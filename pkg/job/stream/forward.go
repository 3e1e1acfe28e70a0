package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // deprecated for k8s.io/streaming, which client-go's port-forward doesn't take yet
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"

	"github.com/openpai/paictl/pkg/kube"
)

// Port identifies one port of a pod.
type Port struct {
	Namespace, Pod string
	Number         int
}

// Serve forwards the connections that a listener accepts to a port of a pod, until ctx ends. It calls problem with the error if a connection
// can't be forwarded. Each forwarded connection has a separate connection to the API server. client-go's PortForwarder shares one connection, and
// closes its listeners if a single forwarded connection fails because the program in the pod doesn't listen yet.
func Serve(ctx context.Context, c *kube.Cluster, l net.Listener, p Port, problem func(error)) error {
	return ServeAt(ctx, c.Config, portURL(c, p), l, p, problem)
}

func portURL(c *kube.Cluster, p Port) *url.URL {
	return c.Client.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name(p.Pod).SubResource("portforward").URL()
}

// ServeAt is like Serve, but connects to a URL.
func ServeAt(ctx context.Context, config *rest.Config, to *url.URL, l net.Listener, p Port, problem func(error)) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		from, err := l.Accept()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("listen at %s: %w", l.Addr(), err)
		}
		wg.Go(func() {
			defer func() { _ = from.Close() }()
			if err := connect(ctx, config, to, from, p); err != nil && ctx.Err() == nil {
				problem(fmt.Errorf("forward a connection to port %d of %s: %w", p.Number, p.Pod, err))
			}
		})
	}
}

// Dial returns a connection to a port of a pod. If it can't connect, the first Read of the connection returns the error. The connection stays
// open until it is closed.
func Dial(c *kube.Cluster, p Port) net.Conn {
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	out := &conn{Conn: near, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer func() { _ = far.Close() }()
		out.err = connect(ctx, c.Config, portURL(c, p), far, p)
		close(out.ended)
	}()
	return out
}

// conn is the local end of a forwarded connection.
type conn struct {
	net.Conn
	cancel context.CancelFunc
	ended  chan struct{} // closed when err is set
	err    error
}

// Read reads from the connection. At its end, Read returns the error that ended the connection, or io.EOF if there was no error.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		select {
		case <-c.ended:
			if c.err != nil {
				err = c.err
			}
		default:
		}
	}
	return n, err
}

// closing is how long to wait for a connection to close. If the program exits before the API server knows that the connection has ended, the
// kubelet logs an error.
const closing = 200 * time.Millisecond

// Close closes both ends of the connection.
func (c *conn) Close() error {
	c.cancel()
	err := c.Conn.Close()
	late := time.NewTimer(closing)
	defer late.Stop()
	select {
	case <-c.ended:
	case <-late.C:
	}
	return err
}

// connect forwards one connection until it ends. It returns an error if the connection can't be forwarded.
func connect(ctx context.Context, config *rest.Config, at *url.URL, from net.Conn, p Port) error {
	to, err := dial(ctx, config, at)
	if err != nil {
		return told(err)
	}
	end := sync.OnceFunc(func() {
		_ = to.Close()
		select {
		case <-to.CloseChan(): // the API server has closed it
		case <-time.After(closing):
		}
	})
	defer end()
	stop := context.AfterFunc(ctx, end)
	defer stop()
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(p.Number))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failed, err := to.CreateStream(headers)
	if err != nil {
		return err
	}
	_ = failed.Close() // nothing is written to it
	problem := make(chan error, 1)
	go func() {
		text, err := io.ReadAll(failed)
		if len(text) > 0 {
			err = errors.New(string(text))
		}
		problem <- err
	}()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := to.CreateStream(headers)
	if err != nil {
		return err
	}
	exchange(from, data)
	_ = data.Reset() // unsent data would keep the other stream from ending
	select {
	case err := <-problem:
		return err
	case <-to.CloseChan():
		return nil
	}
}

// exchange copies bytes in both directions until the pod has sent everything, or the client stops reading.
func exchange(from net.Conn, data httpstream.Stream) {
	go func() {
		_, _ = io.Copy(data, from) // a broken connection ends the other direction too
		_ = data.Close()           // the pod reads the end of the client's data, and may still answer
	}()
	_, _ = io.Copy(from, data)
}

// dial opens a connection to a pod, and returns when ctx ends. client-go's dialers don't accept a context, so a dialer may return later, at the
// latest when the API server fails to respond in time.
func dial(ctx context.Context, config *rest.Config, at *url.URL) (httpstream.Connection, error) {
	d, err := dialer(ctx, heeding(config), at)
	if err != nil {
		return nil, err
	}
	type result struct {
		to  httpstream.Connection
		err error
	}
	dialled := make(chan result, 1)
	go func() {
		to, protocol, err := d.Dial(portforward.PortForwardProtocolV1Name)
		if err == nil && protocol != portforward.PortForwardProtocolV1Name {
			_ = to.Close()
			err = fmt.Errorf("the API server forwards ports in an unknown way: %q", protocol)
		}
		dialled <- result{to, err}
	}()
	select {
	case r := <-dialled:
		return r.to, r.err
	case <-ctx.Done():
		go func() {
			if r := <-dialled; r.err == nil {
				_ = r.to.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func dialer(ctx context.Context, config *rest.Config, at *url.URL) (httpstream.Dialer, error) {
	ws, err := portforward.NewSPDYOverWebsocketDialerWithLogger(klog.FromContext(quiet(ctx)), at, config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialer(ws, spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at), noWebSockets), nil
}
