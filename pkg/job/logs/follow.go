package logs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/job"
)

// How often it is tried again.
const (
	retryWatch = time.Second
	retryLog   = 500 * time.Millisecond
	// resumptions bounds how often a log that breaks off is taken up without a line.
	resumptions = 20
)

// follower reads the logs of all pods of a job as they come.
type follower struct {
	*reader
	w *writer

	wg    sync.WaitGroup
	seen  map[types.UID]bool
	first bool // the pods that were there when the command began
	last  int32
}

func newFollower(r *reader, w *writer) *follower {
	return &follower{reader: r, w: w, seen: map[types.UID]bool{}, first: true, last: All}
}

// run returns when the job has ended and its logs are written.
func (f *follower) run(ctx context.Context) error {
	// Before an attempt begins again its pods go away; what was missed of them is in the archive.
	ended, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() {
		defer stop()
		failed <- f.client.Follow(ctx, f.job, func(d *job.Detail) bool { return !job.Phase(d.State).Done() }, f.connection)
	}()
	for ended.Err() == nil {
		if err := f.pods(ended, ctx); err != nil && ended.Err() == nil {
			f.w.o.Problem(fmt.Errorf("watch the pods of %s: %w", f.job.Title(), err))
		}
		pause(ended, retryWatch)
	}
	if ctx.Err() == nil {
		if _, err := f.look(ctx); err != nil { // pods may have come and ended while nobody looked
			f.w.o.Problem(err)
		}
	}
	f.wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := <-failed; err != nil && !job.IsNotFound(err) {
		return err
	}
	return f.w.err
}

func (f *follower) connection(err error) {
	if err != nil {
		f.w.o.Problem(fmt.Errorf("look whether %s has ended: %w", f.job.Title(), err))
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pods watches the pods of the job and reads the log of each. Reading goes on with longer.
func (f *follower) pods(ctx, longer context.Context) error {
	version, err := f.look(longer)
	if err != nil {
		return err
	}
	o := metav1.ListOptions{LabelSelector: v1.LabelFramework + "=" + f.job.Object, ResourceVersion: version}
	w, err := f.client.Client.CoreV1().Pods(f.client.Namespace).Watch(ctx, o)
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return nil // watches end sooner or later
			}
			if p, ok := e.Object.(*corev1.Pod); ok {
				f.take(longer, p)
			}
		}
	}
}

// look takes the pods that there are.
func (f *follower) look(ctx context.Context) (version string, err error) {
	list, err := f.client.Client.CoreV1().Pods(f.client.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1.LabelFramework + "=" + f.job.Object})
	if err != nil {
		return "", err
	}
	for i := range list.Items {
		f.take(ctx, &list.Items[i])
	}
	f.first = false
	return list.ResourceVersion, nil
}

// take begins to read the log of a pod whose program has begun, once.
func (f *follower) take(ctx context.Context, p *corev1.Pod) {
	s := f.fromPod(p)
	sel := f.w.o.Selection
	if s == nil || f.seen[p.UID] || !begun(p) || !f.selected(sel, s.task) || sel.Attempt >= 0 && s.attempt != sel.Attempt {
		return
	}
	f.seen[p.UID] = true
	o := &corev1.PodLogOptions{}
	if f.first {
		o = f.w.o.options()
	}
	o.Follow = true
	if s.attempt > f.last && f.last >= 0 {
		f.w.o.Note(fmt.Sprintf("attempt %d of %s", s.attempt, f.job.Title()))
	}
	f.last = max(f.last, s.attempt)
	f.wg.Go(func() { f.stay(ctx, s, o) })
}

// begun tells whether the user's container runs or has ended.
func begun(p *corev1.Pod) bool {
	name := ContainerOf(p)
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == name {
			return c.State.Running != nil || c.State.Terminated != nil
		}
	}
	return false
}

// stay follows one log. Connections end sooner or later; it goes on after the last line that was
// written, until the program has ended.
func (f *follower) stay(ctx context.Context, s *source, o *corev1.PodLogOptions) {
	prefix, last := f.w.prefix(s), ""
	for failures := 0; last == "" || !f.gone(ctx, s); {
		err := f.read(ctx, s, o, func(l line) error {
			if l.stamp != "" && l.stamp <= last { // the API's "since" has no fractions of a second
				return nil
			}
			if l.stamp != "" {
				last = l.stamp
			}
			failures = 0
			return f.w.write(prefix, l.text)
		})
		if ctx.Err() != nil || err == nil && f.hasEnded(ctx, s) {
			return
		}
		if failures++; failures > resumptions {
			if err != nil && !errors.Is(err, errNotStarted) {
				f.w.o.Problem(f.problem(s, err))
			}
			return
		}
		pause(ctx, retryLog)
		resumeAt(o, last)
	}
}

// gone tells whether a pod is no longer there, or its successor has its name.
func (f *follower) gone(ctx context.Context, s *source) bool {
	p, err := f.client.Client.CoreV1().Pods(s.pod.Namespace).Get(ctx, s.pod.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && p.UID != s.pod.UID
}

// hasEnded tells whether the program of a pod has ended, and its log with it.
func (f *follower) hasEnded(ctx context.Context, s *source) bool {
	p, err := f.client.Client.CoreV1().Pods(s.pod.Namespace).Get(ctx, s.pod.Name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	if p.UID != s.pod.UID {
		return true
	}
	name := ContainerOf(p)
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == name && c.State.Running != nil {
			return false
		}
	}
	return true
}
