package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/release"
)

// run is a run of a command that changes services, such as start or stop.
type run struct {
	*Platform
	o       Options
	verb    string // start
	desired *Desired
	masks   *masks
	began   time.Time

	mu      sync.Mutex
	early   []Event // emitted before the run's start, which must be first
	started bool
	total   int
	changed map[string]bool
	changes int
	done    map[string]bool
	failed  []Failed
	waits   []string // not started
	// replaced holds the credentials of services from before this run.
	replaced map[string]*corev1.Secret
}

func (p *Platform) newRun(verb string, o Options) *run {
	if o.Parallel <= 0 {
		o.Parallel = defaultParallel
	}
	if o.Sink == nil {
		o.Sink = SinkFunc(func(Event) {})
	}
	if o.Again == "" {
		o.Again = "paictl service " + verb
	}
	return &run{Platform: p, o: o, verb: verb, masks: &masks{}, began: p.Clock(), changed: map[string]bool{}, done: map[string]bool{}, replaced: map[string]*corev1.Secret{}}
}

// emit sends an event. emit masks all known secrets, because the output of pods may contain secrets.
func (r *run) emit(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Time = r.Clock()
	if !r.started && e.Kind != EventRunStarted {
		r.early = append(r.early, e)
		return
	}
	r.started = true
	for _, e := range append([]Event{e}, r.early...) {
		r.o.Sink.Emit(r.masks.event(e))
	}
	r.early = nil
}

func (r *run) warn(message, remedy string) {
	r.emit(Event{Kind: EventWarning, Message: message, Hint: remedy})
}

// count adds to the number of changes of a service. If service is "", count adds to the changes of the cluster.
func (r *run) count(service string, changes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes += changes
	if changes > 0 && service != "" {
		r.changed[service] = true
	}
}

func (r *run) fail(service string, began time.Time, err error) {
	f := Failed{Service: service, Error: r.masks.text(err.Error()), Hint: r.masks.text(hint.Of(err))}
	r.mu.Lock()
	r.failed = append(r.failed, f)
	r.mu.Unlock()
	r.emit(Event{Kind: EventFailed, Service: service, Error: f.Error, Hint: f.Hint, Elapsed: r.Clock().Sub(began)})
}

// locked calls do while holding the lock of the services. Then locked publishes the facts.
func (r *run) locked(ctx context.Context, do func(context.Context) error) error {
	lock := NewLock(r.Client, r.Process, r.o.Command, r.Clock)
	held, release, err := lock.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	err = do(held)
	if held.Err() != nil && ctx.Err() == nil {
		return hint.Wrap(context.Cause(held), "run the same command again once the other run has ended")
	}
	if perr := r.publish(held); perr == nil {
		lock.published = true
	} else {
		r.logUnpublished(ctx, perr)
	}
	return err
}

// nothing ends a run without changes. nothing publishes the facts, because an earlier run may have been interrupted before publishing them.
func (r *run) nothing(ctx context.Context) error {
	if err := r.Publish(ctx, r.o.Command); err != nil {
		r.logUnpublished(ctx, err)
	}
	return r.finish(ctx)
}

func (r *run) logUnpublished(ctx context.Context, err error) {
	if r.Log != nil {
		r.Log.WarnContext(ctx, "people who signed in don't see which services run", "error", r.masks.error(err).Error())
	}
}

// finish reports the summary of a run and returns the run's error.
func (r *run) finish(ctx context.Context) error {
	if ctx.Err() != nil {
		r.warn("interrupted: finished steps stay, started operations continue in the cluster", "run the same command again to continue")
	}
	s := r.summary()
	r.emit(Event{Kind: EventRunDone, Summary: s, Elapsed: s.Elapsed})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(s.Failed) > 0:
		return &PartialError{Failed: s.Failed, NotStarted: s.NotStarted, Services: s.Services, Verb: r.verb, Retry: s.Retry}
	}
	return nil
}

// abort reports the summary of a run that an error has ended, and returns the error.
func (r *run) abort(err error) error {
	err = r.masks.error(err)
	s := r.summary()
	s.Error = err.Error()
	r.emit(Event{Kind: EventRunDone, Summary: s, Elapsed: s.Elapsed})
	return err
}

func (r *run) summary() *Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.failed, func(a, b Failed) int { return strings.Compare(a.Service, b.Service) })
	slices.Sort(r.waits)
	s := &Summary{
		Command: r.o.Command, DryRun: r.o.DryRun, Services: r.total, Changed: sorted(r.changed), Changes: r.changes,
		Failed: r.failed, NotStarted: r.waits, Elapsed: r.Clock().Sub(r.began),
	}
	if again := r.again(); again != "" {
		s.Retry = r.o.Again + " -n " + again
	}
	return s
}

// again returns a comma-separated list of the services that failed or weren't started.
func (r *run) again() string {
	var names []string
	for _, f := range r.failed {
		names = append(names, f.Service)
	}
	names = append(names, r.waits...)
	slices.Sort(names)
	return strings.Join(names, ",")
}

// settle records the services that a walk didn't reach. Failures were already reported.
func (r *run) settle(names []string, errs map[string]error) {
	for _, name := range names {
		if w, ok := errors.AsType[*waitsError](errs[name]); ok {
			r.waits = append(r.waits, name)
			r.emit(Event{Kind: EventNotStarted, Service: name, Message: fmt.Sprintf("not %s: %s", past(r.verb), w)})
		}
	}
}

func past(verb string) string {
	switch verb {
	case "stop":
		return "stopped"
	case "delete", verbUpgrade:
		return verb[:len(verb)-1] + "ed"
	}
	return verb + "ed"
}

func (r *run) plan(service string, p release.Plan) {
	r.count(service, len(p.Changes))
	r.emit(Event{Kind: EventPlanned, Service: service, Action: p.Action, Plan: &p})
}

func sorted(set map[string]bool) []string {
	var out []string
	for k, in := range set {
		if in {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
