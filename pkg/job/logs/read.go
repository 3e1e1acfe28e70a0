package logs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// errNotStarted is returned for the log of a program that hasn't started.
var errNotStarted = errors.New("it hasn't started")

// errTogether means that one stream of a log was requested, but the log can't be split into streams.
var errTogether = errors.New("no agent keeps its log, and the other sources don't separate stdout from stderr")

// read passes on the lines of a source. It tries three places in this order: the agent that keeps the logs of the machine, the kubelet, and the
// archive, which has only the end of the log.
func (r *reader) read(ctx context.Context, s *source, o *corev1.PodLogOptions, give func(logapi.Line) error) error {
	if err := r.readKept(ctx, s, o, give); !errors.Is(err, errNotKept) {
		return err
	}
	if r.stream != "" {
		return errTogether
	}
	n := 0
	err := r.readElsewhere(ctx, s, o, func(l logapi.Line) error {
		n++
		return give(l)
	})
	if err == nil && n == 0 && s.pod != nil && o.SinceSeconds == nil {
		r.problem(fmt.Errorf("%s: its machine has no line of it: it printed nothing, or the machine removed its log to free space; log-manager keeps complete logs (paictl service start -n log-manager)", s.name))
	}
	return err
}

func (r *reader) readElsewhere(ctx context.Context, s *source, o *corev1.PodLogOptions, give func(logapi.Line) error) error {
	if s.pod == nil {
		return r.readArchive(ctx, s, o, give)
	}
	own := o.DeepCopy()
	own.Container, own.Timestamps = ContainerOf(s.pod), true
	body, err := r.client.Client.CoreV1().Pods(s.pod.Namespace).GetLogs(s.pod.Name, own).Stream(ctx)
	switch {
	case apierrors.IsNotFound(err) && !notYet(err):
		return r.readArchive(ctx, s, o, give) // its pod was removed in the meantime
	case notYet(err):
		return errNotStarted
	case err != nil:
		return err
	}
	defer func() { _ = body.Close() }() // opened for reading only
	return logapi.Read(body, true, give)
}

// notYet reports whether an error of the kubelet means that the container has not started yet.
func notYet(err error) bool {
	if err == nil || !apierrors.IsBadRequest(err) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "waiting to start") || strings.Contains(text, "not available") || strings.Contains(text, "does not have a host assigned") ||
		strings.Contains(text, "is terminated") || strings.Contains(text, "PodInitializing") || strings.Contains(text, "ContainerCreating")
}

func (r *reader) readArchive(ctx context.Context, s *source, o *corev1.PodLogOptions, give func(logapi.Line) error) error {
	key := api.LogKey{Framework: r.job.Object, Role: s.role, Task: s.index, Attempt: s.attempt, TaskAttempt: s.taskAttempt}
	if r.job.Live {
		key.UID = r.job.UID
	}
	body, truncated, err := r.client.History.Log(ctx, key)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("its pod is gone, and the archive has no log of attempt %d", s.attempt)
	}
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // opened for reading only
	if truncated {
		r.problem(fmt.Errorf("%s: its machine no longer has its log: this is the last part, from the archive", s.name))
	}
	if o.TailLines == nil {
		return logapi.Read(body, false, give)
	}
	last := latest{most: *o.TailLines, reserved: r.reserved}
	if err := logapi.Read(body, false, last.add); err != nil {
		return err
	}
	return last.flush(give)
}

// choose passes on the lines of a source that the options select.
func (r *reader) choose(ctx context.Context, s *source, o *Options, give func(logapi.Line) error) error {
	give, flush := matching(o, r.reserved, give)
	if err := r.read(ctx, s, o.options(), give); err != nil {
		return err
	}
	return flush()
}

// matching returns a function that passes on the lines that match. If only the last of these lines are requested, the function holds them, and
// flush passes them on at the end.
func matching(o *Options, h *reservation, give func(logapi.Line) error) (filter func(logapi.Line) error, flush func() error) {
	if o.Match == nil {
		return give, func() error { return nil }
	}
	last := latest{most: o.Tail, reserved: h}
	limited := o.Tail >= 0 && !o.Follow
	filter = func(l logapi.Line) error {
		switch {
		case !o.fits(l.Text):
			return nil
		case !limited:
			return give(l)
		}
		return last.add(l)
	}
	return filter, func() error { return last.flush(give) }
}

// options returns the Kubernetes options for a source that existed when the command began. They don't include Tail in a search, because a machine
// would also count lines that don't match.
func (o *Options) options() *corev1.PodLogOptions {
	out := &corev1.PodLogOptions{}
	if o.Tail >= 0 && o.Match == nil {
		out.TailLines = &o.Tail
	}
	if o.Since > 0 {
		seconds := max(int64(o.Since.Seconds()), 1)
		out.SinceSeconds = &seconds
	}
	return out
}

// resumeAt changes options so that the log is read from the time of a line. The resolution of the Kubernetes API is one second, so the log may
// begin with earlier lines.
func resumeAt(o *corev1.PodLogOptions, stamp string) {
	if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
		o.TailLines, o.SinceSeconds, o.SinceTime = nil, nil, &metav1.Time{Time: at}
	}
}

// about adds the name of the task to an error.
func (r *reader) about(s *source, err error) error {
	if errors.Is(err, job.ErrNoController) && !errors.Is(err, errLost) {
		return fmt.Errorf("%s: its pod is gone, and %w", s.name, err)
	}
	return fmt.Errorf("%s: %w", s.name, err)
}
