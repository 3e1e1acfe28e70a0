package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/kube"
)

// Channels of a forwarded port. The first message of each is the port's number.
const (
	channelData  = 0
	channelError = 1
)

// Port is one port of a pod.
type Port struct {
	Namespace, Pod string
	Number         int
}

// Serve forwards the connections that a listener accepts to a port of a pod, each over a WebSocket of
// its own, until ctx ends. problem is told why a connection can't be forwarded.
func Serve(ctx context.Context, c *kube.Cluster, l net.Listener, p Port, problem func(error)) error {
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
			if err := connect(ctx, c, from, p); err != nil && ctx.Err() == nil {
				problem(fmt.Errorf("forward a connection to port %d of %s: %w", p.Number, p.Pod, err))
			}
		})
	}
}

// halfClosed is how long the pod may go on to answer a client that has said all. The API has no way to
// tell the pod so.
const halfClosed = 2 * time.Second

// connect forwards one connection.
func connect(ctx context.Context, c *kube.Cluster, from net.Conn, p Port) error {
	r := c.Client.CoreV1().RESTClient().Get().Namespace(p.Namespace).Resource("pods").Name(p.Pod).SubResource("portforward").
		Param("ports", strconv.Itoa(p.Number))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ws, err := dial(ctx, c.Config, r, channelsV4)
	if err != nil {
		return err
	}
	defer ws.close()
	go ws.stayAlive(ctx)
	go func() {
		ws.sendConnection(from)
		time.AfterFunc(halfClosed, cancel) // closes the WebSocket, which ends receiving
	}()
	err = ws.receiveConnection(from)
	if ctx.Err() != nil {
		return nil // the client has hung up
	}
	return err
}

func (c *conn) sendConnection(from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && c.write(opBinary, []byte{channelData}, buffer[:n]) != nil || err != nil {
			return
		}
	}
}

func (c *conn) receiveConnection(to net.Conn) error {
	opened := [2]bool{}
	for {
		message, err := c.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(message) < 1 || message[0] > channelError {
			continue
		}
		channel, body := message[0], message[1:]
		if !opened[channel] && len(body) >= 2 {
			opened[channel], body = true, body[2:] // the port's number
		}
		switch {
		case len(body) == 0:
		case channel == channelError:
			return errors.New(string(body))
		default:
			if _, err := to.Write(body); err != nil {
				return nil // the client has hung up
			}
		}
	}
}
