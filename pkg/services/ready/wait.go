package ready

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
)

const (
	defaultGrace = 10 * time.Second
	// settle is how long changes are collected before a check.
	settle = 100 * time.Millisecond
	// tick is the interval between checks without changes. These checks are necessary because events aren't watched, and because some problems become
	// final after a while.
	tick = time.Second
)

// WaitOptions defines the limits of a wait.
type WaitOptions struct {
	// Timeout is the maximum duration of the wait. 0 means no limit.
	Timeout time.Duration
	// Grace is how long a final problem must persist before the wait fails. 0 means 10 s.
	Grace time.Duration
	// Calm is how long a problem must persist before OnChange receives it, because problems may be temporary.
	Calm time.Duration
	// OnChange is called with each new state, including the first and the last state. OnChange may be nil.
	OnChange func(State)
}

// Wait waits until the objects of a manifest are ready. Wait returns a NotReadyError early if a final problem persists. Wait returns an UnknownError
// if the API doesn't respond at the end of the wait. The returned state is the last observed state, even with an error.
func (c *Checker) Wait(ctx context.Context, namespace, manifest string, o WaitOptions) (State, error) {
	targets, err := parseTargets(namespace, manifest)
	if err != nil {
		return State{}, err
	}
	if len(targets) == 0 {
		return State{Ready: true}, nil
	}
	w := &waiter{Checker: c, o: o, targets: targets, details: newReader(c.client), first: map[string]time.Time{}, began: time.Now()}
	if o.Grace <= 0 {
		w.o.Grace = defaultGrace
	}
	return w.run(ctx)
}

type waiter struct {
	*Checker
	o       WaitOptions
	targets []target
	details details
	began   time.Time
	// floor holds the generations at the beginning of the wait. Older states in the feeds must be ignored.
	floor   map[types.UID]int64
	floored time.Time            // when they were read
	first   map[string]time.Time // the time since which a final problem exists
	told    bool
	state   State
	shown   State                   // the last state passed to OnChange
	seen    map[[2]string]time.Time // the time since which an object has had a problem
}

func (w *waiter) run(ctx context.Context) (State, error) {
	var deadline <-chan time.Time
	if w.o.Timeout > 0 {
		timer := time.NewTimer(w.o.Timeout)
		defer timer.Stop()
		deadline = timer.C
	}
	if err := w.begin(ctx); err != nil {
		return w.state, err
	}
	wake := make(chan struct{}, 1)
	var feeds []*feed
	for _, namespace := range w.namespaces() {
		f, leave := w.join(ctx, namespace, wake)
		defer leave()
		feeds = append(feeds, f)
	}
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		done, err := w.look(ctx, feeds)
		if done || err != nil {
			return w.state, err
		}
		select {
		case <-ctx.Done():
			return w.state, ctx.Err()
		case <-deadline:
			_, err := w.conclude(ctx, w.o.Timeout)
			return w.state, err
		case <-wake:
			pause(ctx, settle)
		case <-again.C:
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (w *waiter) namespaces() []string {
	if out := namespacesOf(w.targets); len(out) > 0 {
		return out
	}
	return []string{metav1.NamespaceDefault} // only volumes: any feed has them
}

// look checks the objects once. look returns true if the wait can end.
func (w *waiter) look(ctx context.Context, feeds []*feed) (bool, error) {
	for _, f := range feeds {
		ok, err := f.ready()
		if err != nil {
			return false, fmt.Errorf("watch the services: %w", err)
		}
		if !ok {
			return false, nil
		}
	}
	s := snapshotOf(feeds)
	if w.stale(s) {
		return false, nil
	}
	state, causes := stateOf(ctx, w.targets, s, w.details)
	w.tell(state, s.now)
	if state.Ready {
		return true, nil
	}
	if !w.stays(s.now, causes) {
		return false, nil
	}
	done, err := w.conclude(ctx, 0)
	if unknown := (*UnknownError)(nil); errors.As(err, &unknown) {
		return false, nil // there is time left
	}
	return done, err
}

// tell calls OnChange if the state has changed. tell leaves out problems that may be temporary. When many services start at the same time, kubelets
// and the scheduler need time to process the new objects.
func (w *waiter) tell(s State, now time.Time) {
	w.state = s
	s.Problems = w.lasting(s.Problems, now)
	shown, old := s, w.shown
	shown.Since, old.Since = time.Time{}, time.Time{}
	if w.told && reflect.DeepEqual(shown, old) {
		return
	}
	w.told, w.shown = true, s
	if w.o.OnChange != nil {
		w.o.OnChange(s)
	}
}

// lasting returns the problems that have persisted for at least Calm.
func (w *waiter) lasting(problems []Problem, now time.Time) (out []Problem) {
	since := map[[2]string]time.Time{}
	for _, p := range problems {
		key := [2]string{p.Object, p.Reason}
		first, known := w.seen[key]
		if !known {
			first = now
		}
		since[key] = first
		if now.Sub(first) >= w.o.Calm {
			out = append(out, p)
		}
	}
	w.seen = since
	return out
}

// stays reports whether a final problem has persisted for Grace. The time continues if another pod of the workload gets the same problem.
func (w *waiter) stays(now time.Time, causes []cause) bool {
	seen := map[string]bool{}
	over := false
	for _, c := range causes {
		if !c.Final {
			continue
		}
		seen[c.key] = true
		if _, known := w.first[c.key]; !known {
			w.first[c.key] = now
		}
		over = over || now.Sub(w.first[c.key]) >= w.o.Grace
	}
	for key := range w.first {
		if !seen[key] {
			delete(w.first, key)
		}
	}
	return over
}

func (w *waiter) giveUp(waited time.Duration) error {
	err := &NotReadyError{State: w.state, Waited: waited}
	if len(w.state.Problems) == 0 {
		return hint.Wrap(err, "see its state with: paictl service status; or give it more time with --wait")
	}
	if remedy := w.state.Problems[0].Hint; remedy != "" {
		return hint.Wrap(err, remedy)
	}
	return err
}

func (w *waiter) readFloor(ctx context.Context) error {
	found := make([]metav1.Object, len(w.targets))
	group, ctx := errgroup.WithContext(ctx)
	for i, t := range w.targets {
		group.Go(func() error {
			o, err := w.get(ctx, t)
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("read %s: %w", t, err)
			}
			if err == nil {
				found[i] = o
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.floor, w.floored = map[types.UID]int64{}, time.Now()
	for _, o := range found {
		if o != nil {
			w.floor[o.GetUID()] = o.GetGeneration()
		}
	}
	return nil
}

func (w *waiter) get(ctx context.Context, t target) (metav1.Object, error) {
	now := metav1.GetOptions{}
	switch t.kind {
	case kindDeployment:
		return w.client.AppsV1().Deployments(t.namespace).Get(ctx, t.name, now)
	case kindDaemonSet:
		return w.client.AppsV1().DaemonSets(t.namespace).Get(ctx, t.name, now)
	case kindStatefulSet:
		return w.client.AppsV1().StatefulSets(t.namespace).Get(ctx, t.name, now)
	case kindJob:
		return w.client.BatchV1().Jobs(t.namespace).Get(ctx, t.name, now)
	}
	return nil, nil
}

// lag is the maximum delay of a feed at the beginning of a wait.
const lag = 5 * time.Second

// stale reports whether the snapshot contains a workload in an older state than at the beginning of the wait.
func (w *waiter) stale(s *snapshot) bool {
	have := map[types.UID]int64{}
	for _, o := range s.deployments {
		have[o.UID] = o.Generation
	}
	for _, o := range s.daemonSets {
		have[o.UID] = o.Generation
	}
	for _, o := range s.statefulSets {
		have[o.UID] = o.Generation
	}
	for _, o := range s.jobs {
		have[o.UID] = o.Generation
	}
	for uid, generation := range w.floor {
		got, there := have[uid]
		if there && got < generation || !there && s.now.Sub(w.floored) < lag {
			return true
		}
	}
	return false
}
