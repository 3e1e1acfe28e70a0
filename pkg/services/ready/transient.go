package ready

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/openpai/paictl/pkg/hint"
)

// These are the pauses before a failed request is repeated. Each pause is twice as long as the previous pause.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 5 * time.Second
	// lastWord is the time limit of the final check of a wait.
	lastWord = 10 * time.Second
)

// UnknownError is the error of a wait if the API is unreachable at the end. The objects may work, so callers should not roll back because of this
// error.
type UnknownError struct {
	// Waited is the duration of the wait.
	Waited time.Duration
	Err    error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the state is unknown: the cluster's API did not answer at the end of a wait of %s: %v", e.Waited.Round(time.Second), e.Err)
}

func (e *UnknownError) Unwrap() error { return e.Err }

// transient reports whether a retry may succeed because the API server is unavailable, starting or overloaded.
func transient(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	}
	var timeout net.Error // a url.Error is one, too: it reports whether its cause is a timeout
	var op *net.OpError
	return errors.As(err, &timeout) && timeout.Timeout() || errors.As(err, &op) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// begin reads the generations of the workloads. begin retries until the API responds.
func (w *waiter) begin(ctx context.Context) error {
	limit := ctx
	if w.o.Timeout > 0 {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, w.o.Timeout)
		defer cancel()
	}
	var last error
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := w.readFloor(limit)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !transient(err) {
			return err
		}
		if last == nil || limit.Err() == nil { // the timeout alone explains less
			last = err
		}
		pause(limit, wait)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case limit.Err() != nil:
			return w.unknown(last)
		}
	}
}

func (w *waiter) unknown(err error) error {
	return hint.Wrap(&UnknownError{Waited: time.Since(w.began), Err: err}, "run the same command again once the cluster's API answers")
}

// conclude reads the objects from the API before a wait fails, because the feeds may be outdated. conclude returns true if the objects work. waited
// is 0 if the wait ends because of a final problem.
func (w *waiter) conclude(ctx context.Context, waited time.Duration) (bool, error) {
	limit, cancel := context.WithTimeout(ctx, lastWord)
	defer cancel()
	s, err := take(limit, w.client, w.targets)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil && transient(err):
		return false, w.unknown(err)
	case err != nil:
		return false, err
	}
	if !w.stale(s) {
		state, causes := stateOf(limit, w.targets, s, w.details)
		w.tell(state, s.now)
		if state.Ready {
			return true, nil
		}
		if waited == 0 && !slices.ContainsFunc(causes, func(c cause) bool { return c.Final }) {
			return false, nil // the feeds will report it soon
		}
	}
	return false, w.giveUp(waited)
}
