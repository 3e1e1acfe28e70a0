// Package stream opens connections to containers through the API server: commands with their input, output and terminal, and connections to ports.
// client-go connects to the server over WebSockets, or over SPDY if a proxy doesn't pass WebSockets on. In: a cluster, a container. Out: bytes,
// and the exit code of a command.
package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/openpai/paictl/pkg/kube"
)

// Size is the width and height of a terminal in characters.
type Size struct{ Width, Height uint16 }

// Command is a command to run in a running container.
type Command struct {
	Namespace, Pod, Container string
	Args                      []string
	Stdin                     io.Reader // nil: the command has no input
	Stdout, Stderr            io.Writer // with a terminal, all output goes to Stdout
	TTY                       bool
	Sizes                     <-chan Size // of the terminal, the first at once
}

// ExitError is returned for a command that ended with an exit code other than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.Code) }

// Exec runs a command and returns when it has ended.
func Exec(ctx context.Context, c *kube.Cluster, cmd Command) error {
	r := c.Client.CoreV1().RESTClient().Post().Namespace(cmd.Namespace).Resource("pods").Name(cmd.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: cmd.Container, Command: cmd.Args, TTY: cmd.TTY,
			Stdin: cmd.Stdin != nil, Stdout: true, Stderr: !cmd.TTY}, scheme.ParameterCodec)
	return ExecAt(ctx, c.Config, r.URL(), cmd)
}

// ExecAt runs a command over a connection to a URL, whose query contains the command.
func ExecAt(ctx context.Context, config *rest.Config, to *url.URL, cmd Command) error {
	e, err := executor(heeding(config), to)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(quiet(ctx))
	defer cancel(nil)
	o := remotecommand.StreamOptions{Stdin: cmd.Stdin, Tty: cmd.TTY, Stdout: &output{cmd.Stdout, cancel}}
	if !cmd.TTY {
		o.Stderr = &output{cmd.Stderr, cancel}
	}
	if cmd.Sizes != nil {
		o.TerminalSizeQueue = &sizes{ctx, cmd.Sizes}
	}
	err = e.StreamWithContext(ctx, o)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return told(err)
}

func executor(config *rest.Config, to *url.URL) (remotecommand.Executor, error) {
	ws, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, to.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, to)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(ws, spdy, noWebSockets)
}

// noWebSockets reports whether to try SPDY after this error of WebSockets. If the API server itself rejected the request, a second try would
// fail, too, and its error wouldn't contain the reason.
func noWebSockets(err error) bool {
	if s := refusal(err); s != nil && (apierrors.IsNotFound(s) || apierrors.IsForbidden(s) || apierrors.IsUnauthorized(s)) {
		return false
	}
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// refusal returns the API server's own error if it rejected a connection, and otherwise nil.
func refusal(err error) *apierrors.StatusError {
	if failure, ok := errors.AsType[*httpstream.UpgradeFailureError](err); ok { // it has no Unwrap
		if s, ok := errors.AsType[*apierrors.StatusError](failure.Cause); ok {
			return s
		}
	}
	return nil
}

// told returns the ExitError or the API server's error that an error of client-go contains. It returns other errors unchanged.
func told(err error) error {
	if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		return &ExitError{exit.Code}
	}
	if s := refusal(err); s != nil {
		return s
	}
	return err
}

// quiet returns a context in which client-go doesn't log, because the terminal belongs to the command. No error is lost, because client-go also
// returns the errors that it logs.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// output passes on a command's output, and stops the command if the output can't be written. Otherwise client-go would read the output to its
// end, which may take hours.
type output struct {
	to  io.Writer
	end context.CancelCauseFunc
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if o.to == nil {
		return len(p), nil
	}
	n, err := o.to.Write(p)
	if err != nil {
		o.end(err)
	}
	return n, err
}

// sizes passes on the sizes of a terminal until the command ends.
type sizes struct {
	ctx  context.Context
	from <-chan Size
}

// Next implements remotecommand.TerminalSizeQueue. It waits for the next size, and returns nil when no further sizes follow.
func (s *sizes) Next() *remotecommand.TerminalSize {
	select {
	case size, ok := <-s.from:
		if ok {
			return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
		}
	case <-s.ctx.Done():
	}
	return nil
}
