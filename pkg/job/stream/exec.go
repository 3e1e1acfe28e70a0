// Package stream opens what flows to and from containers through the API server: commands with their
// input, output and terminal, and connections to ports. It speaks Kubernetes' channels over WebSocket
// (v5.channel.k8s.io), which proxies let pass.
// In: a cluster, a container. Out: bytes, and the exit code of a command.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/openpai/paictl/pkg/kube"
)

// Channels of a command: the first byte of each message.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelStatus = 3
	channelSize   = 4
	channelClose  = 255 // since v5: the second byte is the channel that ends
)

const (
	channelsV5 = "v5.channel.k8s.io"
	channelsV4 = "v4.channel.k8s.io"
)

// keepAlive is how often an idle connection is used, so that nothing between drops it.
const keepAlive = 20 * time.Second

// Size is that of a terminal.
type Size struct{ Width, Height uint16 }

// Command is run in a container that runs.
type Command struct {
	Namespace, Pod, Container string
	Args                      []string
	Stdin                     io.Reader // nil: the command has none
	Stdout, Stderr            io.Writer // with a terminal all comes to Stdout
	TTY                       bool
	Sizes                     <-chan Size // of the terminal, the first at once
}

// ExitError is a command that ended with another code than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.Code) }

// Exec runs a command and returns when it has ended.
func Exec(ctx context.Context, c *kube.Cluster, cmd Command) error {
	r := c.Client.CoreV1().RESTClient().Get().Namespace(cmd.Namespace).Resource("pods").Name(cmd.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: cmd.Container, Command: cmd.Args, TTY: cmd.TTY,
			Stdin: cmd.Stdin != nil, Stdout: true, Stderr: !cmd.TTY}, scheme.ParameterCodec)
	ws, err := dial(ctx, c.Config, r, channelsV5, channelsV4)
	if err != nil {
		return err
	}
	defer ws.close()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { ws.stayAlive(ctx) })
	if cmd.Sizes != nil {
		wg.Go(func() { ws.sendSizes(ctx, cmd.Sizes) })
	}
	if cmd.Stdin != nil {
		go ws.sendInput(cmd.Stdin) // a terminal can't be told to stop being read
	}
	err = ws.receive(cmd.Stdout, cmd.Stderr)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// receive hands out what the command writes, until its status comes.
func (c *conn) receive(stdout, stderr io.Writer) error {
	for {
		message, err := c.read()
		if errors.Is(err, io.EOF) {
			return errLost
		}
		if err != nil {
			return err
		}
		if len(message) < 2 {
			continue // the server opens each channel with an empty message
		}
		switch message[0] {
		case channelStdout:
			err = writeTo(stdout, message[1:])
		case channelStderr:
			err = writeTo(stderr, message[1:])
		case channelStatus:
			return status(message[1:])
		}
		if err != nil {
			return err
		}
	}
}

func writeTo(w io.Writer, b []byte) error {
	if w == nil {
		return nil
	}
	_, err := w.Write(b)
	return err
}

// status is how a command ended, in the words of the API.
func status(body []byte) error {
	var s metav1.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return fmt.Errorf("the command's status isn't understood: %w", err)
	}
	if s.Status == metav1.StatusSuccess {
		return nil
	}
	if s.Reason == "NonZeroExitCode" && s.Details != nil {
		for _, c := range s.Details.Causes {
			if code, err := strconv.Atoi(c.Message); err == nil && c.Type == "ExitCode" {
				return &ExitError{code}
			}
		}
	}
	return errors.New(s.Message)
}

func (c *conn) sendInput(stdin io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := stdin.Read(buffer)
		if n > 0 && c.write(opBinary, []byte{channelStdin}, buffer[:n]) != nil {
			return
		}
		if err != nil {
			break
		}
	}
	if c.protocol == channelsV5 {
		_ = c.write(opBinary, []byte{channelClose, channelStdin}) // receive tells of a lost connection
	}
}

func (c *conn) sendSizes(ctx context.Context, sizes <-chan Size) {
	for {
		select {
		case s, ok := <-sizes:
			if !ok {
				return
			}
			body, _ := json.Marshal(s) // two numbers
			if c.write(opBinary, []byte{channelSize}, body) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (c *conn) stayAlive(ctx context.Context) {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if c.write(opPing) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
