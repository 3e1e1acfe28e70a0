package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// Pauses and limits for retries.
const (
	retryWatch = time.Second
	retryLog   = 500 * time.Millisecond
	// resumptions is how often an interrupted log is resumed in a row without receiving a line.
	resumptions = 20
	// patience is how long a finished job waits for a log that sends no lines and doesn't end, because its machine may be gone. The limit doesn't
	// apply to a log that still sends lines, or that is still being written to a slow terminal.
	patience = 20 * time.Second
)

// follower follows the logs of all pods of a job.
type follower struct {
	*reader
	w *writer

	wg    sync.WaitGroup
	ended context.Context                  // done when the job has finished
	over  map[types.UID]context.CancelFunc // of pods whose log is read: their program has ended
	first bool                             // read pods that existed when the command began
	last  int32
	lost  atomic.Bool // the rest of a log was lost
}

func newFollower(r *reader, w *writer) *follower {
	return &follower{reader: r, w: w, over: map[types.UID]context.CancelFunc{}, first: true, last: All}
}

// run follows the logs until the job has finished and its logs are written.
func (f *follower) run(ctx context.Context) error {
	// The pods of an attempt are removed before the job is retried. Lines that were missed are then in the archive.
	ended, stop := context.WithCancel(ctx)
	defer stop()
	f.ended = ended
	reading, giveUp := context.WithCancel(ctx)
	defer giveUp()
	failed := make(chan error, 1)
	go func() {
		defer stop()
		failed <- f.client.Follow(ctx, f.job, func(d *job.Detail) bool { return !job.Phase(d.State).Done() }, f.connection)
	}()
	for ended.Err() == nil {
		if err := f.pods(ended, reading); err != nil && ended.Err() == nil {
			f.w.o.Problem(fmt.Errorf("watch the pods of %s: %w", f.job.Title(), err))
		}
		pause(ended, retryWatch)
	}
	if ctx.Err() == nil {
		if _, err := f.look(reading); err != nil { // pods may have begun and ended unnoticed
			f.w.o.Problem(err)
		}
	}
	f.drain(giveUp)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := <-failed; err != nil && !job.IsNotFound(err) {
		return err
	}
	if f.w.err == nil && f.lost.Load() {
		return f.incomplete()
	}
	return f.w.err
}

// one follows the log of a single attempt of a task until its program has ended.
func (f *follower) one(ctx context.Context, s *source) error {
	o := f.w.o.options()
	o.Follow = true
	f.stay(ctx, s, o, nil) // no channel reports that the program has ended
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case f.w.err == nil && f.lost.Load():
		return f.incomplete()
	}
	return f.w.err
}

// drain waits until all logs are written to their end. It gives up if the remaining logs send no lines, unless an agent of one of these logs is
// being replaced.
func (f *follower) drain(giveUp context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.wg.Wait()
	}()
	tick := time.NewTicker(cmp.Or(f.w.o.Patience, patience))
	defer tick.Stop()
	for _, seen := f.w.progress(); ; {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		busy, now := f.w.progress()
		if now == seen && !busy && !f.patient() {
			giveUp()
			<-done
			f.lost.Store(true)
			f.w.o.Problem(fmt.Errorf("%s has finished, but the end of a log doesn't arrive; read it later with: paictl job logs %s", f.job.Title(), f.job.Title()))
			return
		}
		seen = now
	}
}

func (f *follower) connection(err error) {
	if err != nil {
		f.w.o.Problem(fmt.Errorf("check whether %s has ended: %w", f.job.Title(), err))
	}
}

// pause waits for a duration, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pods watches the pods of the job, and begins to read the log of each pod. It watches until ctx ends; reading continues until longer ends.
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

// look begins to read the logs of the existing pods. It returns the version of the list, so that a watch can continue after it.
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

// take begins to read the log of a pod if the pod's program has begun, unless the log is already being read.
func (f *follower) take(ctx context.Context, p *corev1.Pod) {
	if f.over[p.UID] != nil && !running(p) {
		f.over[p.UID]()
	}
	s := f.fromPod(p)
	sel := f.w.o.Selection
	if s == nil || f.over[p.UID] != nil || !begun(p) || !f.selected(sel, s.task) || sel.Attempt >= 0 && s.attempt != sel.Attempt {
		return
	}
	ended, over := context.WithCancel(f.ended)
	if f.over[p.UID] = over; !running(p) {
		over()
	}
	o := &corev1.PodLogOptions{}
	if f.first {
		o = f.w.o.options()
	}
	o.Follow = true
	if s.attempt > f.last && f.last >= 0 {
		f.w.o.Note(fmt.Sprintf("attempt %d of %s", s.attempt, f.job.Title()))
	}
	f.last = max(f.last, s.attempt)
	f.wg.Go(func() {
		defer over()
		f.stay(ctx, s, o, ended.Done())
	})
}

// begun reports whether the user's container in a pod runs or has ended.
func begun(p *corev1.Pod) bool {
	name := ContainerOf(p)
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == name {
			return c.State.Running != nil || c.State.Terminated != nil
		}
	}
	return false
}

// stay follows one log. It reads from the agent, whose log stays complete when the kubelet begins a new file. If the agent doesn't keep the log,
// stay reads from the kubelet.
func (f *follower) stay(ctx context.Context, s *source, o *corev1.PodLogOptions, ended <-chan struct{}) {
	give, _ := matching(f.w.o, f.reserved, func(l logapi.Line) error { return f.w.write(Line{s.name, l, false}) })
	err := f.stayKept(ctx, s, o, ended, give)
	switch {
	case errors.Is(err, errNotKept) && f.stream != "":
		f.w.o.Problem(f.about(s, errTogether))
		f.lost.Store(true)
	case errors.Is(err, errNotKept):
		f.stayKubelet(ctx, s, o, give)
	case err != nil && ctx.Err() == nil:
		f.w.o.Problem(f.about(s, err))
		f.lost.Store(f.lost.Load() || errors.Is(err, errLost))
	}
}

// stayKept follows a log of the agent. It sends its last request after the program has ended, so that it gets all lines.
func (f *follower) stayKept(ctx context.Context, s *source, o *corev1.PodLogOptions, ended <-chan struct{}, give func(logapi.Line) error) error {
	p := f.pager(s, o)
	for done := false; ; {
		interrupted := false
		var err error
		if p.begun && p.next >= p.end && !done {
			interrupted, err = f.await(ctx, p, ended, give)
		} else {
			err = p.retry(ctx, 0, give)
		}
		switch {
		case err != nil:
			return err
		case p.next < p.end: // more lines are available at once
		case done:
			return nil
		default:
			done = interrupted || f.hasEnded(ctx, s)
		}
	}
}

// await waits for lines or for the end of the program.
func (f *follower) await(ctx context.Context, p *pager, ended <-chan struct{}, give func(logapi.Line) error) (interrupted bool, err error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-asking.Done():
		}
	}()
	err = p.retry(asking, pageWait, give)
	if asking.Err() != nil && ctx.Err() == nil {
		return true, nil // received lines are not requested again
	}
	return false, err
}

// stayKubelet follows a log of the kubelet, whose connections may end at any time. It then reconnects and continues after the last line that was
// written, until the program has ended.
func (f *follower) stayKubelet(ctx context.Context, s *source, o *corev1.PodLogOptions, give func(logapi.Line) error) {
	last, seen := "", 0 // lines of the last stamp
	for failures := 0; last == "" || !f.gone(ctx, s); {
		again, skip := last, seen // the API's "since" doesn't support fractions of a second
		err := f.readElsewhere(ctx, s, o, func(l logapi.Line) error {
			if again != "" && l.Stamp != "" {
				if l.Stamp < again || l.Stamp == again && skip > 0 {
					if l.Stamp == again {
						skip--
					}
					return nil
				}
				again = ""
			}
			if l.Stamp != "" && l.Stamp != last {
				last, seen = l.Stamp, 0
			}
			seen++
			failures = 0
			return give(l)
		})
		if ctx.Err() != nil || err == nil && f.hasEnded(ctx, s) {
			return
		}
		if failures++; failures > resumptions {
			if err != nil && !errors.Is(err, errNotStarted) {
				f.w.o.Problem(f.about(s, err))
			}
			return
		}
		pause(ctx, retryLog)
		resumeAt(o, last)
	}
}

// gone reports whether a pod no longer exists, or another pod has its name.
func (f *follower) gone(ctx context.Context, s *source) bool {
	p, err := f.client.Client.CoreV1().Pods(s.pod.Namespace).Get(ctx, s.pod.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && p.UID != s.pod.UID
}

// hasEnded reports whether the program of a pod has ended, so that its log is complete.
func (f *follower) hasEnded(ctx context.Context, s *source) bool {
	p, err := f.client.Client.CoreV1().Pods(s.pod.Namespace).Get(ctx, s.pod.Name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	if p.UID != s.pod.UID {
		return true
	}
	return !running(p)
}

// running reports whether the user's container in a pod runs.
func running(p *corev1.Pod) bool {
	name := ContainerOf(p)
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == name && c.State.Running != nil {
			return true
		}
	}
	return false
}
