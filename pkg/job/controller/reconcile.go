package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/controller/status"
	"github.com/openpai/paictl/pkg/job/controller/status/stored"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// reconciler advances Frameworks. Only one worker at a time processes a Framework.
type reconciler struct {
	o        Options
	api      client.Client // without a cache
	pods     typed.PodsGetter
	cache    *caches
	metrics  *metrics
	recorder recorder.EventRecorder
	entries  entries
	rules    *ruleBook
	logs     *logSaver
	events   *eventSink
	policy   machine.Policy
	now      func() time.Time
	earlier  earlier
	began    time.Time
	quick    *rate.Limiter // of writes
	vanished chan struct{} // the Controller's
	refilled *gate         // closed once the archive has everything that can be written again
}

// maxSteps is the maximum number of steps for a Framework in one call, so that other Frameworks are processed, too.
const maxSteps = 12

// Reconcile advances one Framework as far as possible at present.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	begin := time.Now()
	defer func() { r.metrics.reconcile.Observe(time.Since(begin).Seconds()) }()
	f := r.cache.framework(req.Name)
	if f == nil {
		if e := r.entries.forget(req.Name); e != nil {
			r.count(e, "")
			r.o.Peers.Forget(req.Name)
			if e.status == nil || e.status.ArchivedTime == nil || !e.released {
				r.vanish()
			}
		}
		return reconcile.Result{}, nil
	}
	e, err := r.entry(ctx, f)
	if err != nil {
		return reconcile.Result{}, err
	}
	if e.status != nil && e.status.ArchivedTime != nil && !e.dirty {
		e.gone(nil)
		after, err := r.afterlife(ctx, f, e)
		return reconcile.Result{RequeueAfter: after}, err
	}
	if f.DeletionTimestamp == nil && !e.kept {
		err = r.keep(ctx, f, e)
	}
	after := time.Duration(0)
	if err == nil {
		after, err = r.drive(ctx, f, e)
	}
	if err == nil {
		after = soonest(after, r.account(ctx, f, e))
	}
	if errors.Is(err, errGone) {
		return reconcile.Result{}, nil // its deletion is the next event
	}
	if apierrors.IsConflict(err) {
		// Another writer has changed the Framework or its status. The controller acts only on decisions that are written, so it reads the state
		// again, as it does after a restart.
		r.metrics.conflicts.Inc()
		r.count(r.entries.drop(f.Name), "")
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}

// entry returns the state of a Framework. It reads the state if it isn't in memory.
func (r *reconciler) entry(ctx context.Context, f *v1.Framework) (*entry, error) {
	if why := f.UnreadableStatus(); why != "" {
		return nil, fmt.Errorf("leave %s alone: %s", f.Name, why)
	}
	e := r.entries.get(f.Name)
	if e != nil && e.uid == f.UID && (e.status != nil || f.Status == nil) {
		return e, nil
	}
	if e != nil {
		r.count(e, "")
	}
	e = &entry{uid: f.UID, rv: f.ResourceVersion, layout: &status.Layout{}, again: r.entries.known(f.Name), owner: prometheus.Labels{
		"framework": f.Name, "job_name": f.Annotations[v1.AnnotationJobName], "user": f.Labels[v1.LabelUser], "vc": f.Labels[v1.LabelVC]}}
	if f.Status != nil {
		if err := r.read(ctx, f, e); err != nil {
			return nil, err
		}
		r.count(e, e.status.State)
	}
	r.entries.put(f.Name, e)
	return e, nil
}

// read reads the status of a Framework that another process began. It reads from the API, because the cache may not have the last write of that
// process yet, and acting on an older state would kill running pods. Only an archived status is final.
func (r *reconciler) read(ctx context.Context, f *v1.Framework, e *entry) error {
	if f.Status.ArchivedTime != nil {
		e.status = f.Status.DeepCopy()
		return nil
	}
	live := &v1.Framework{}
	if err := r.api.Get(ctx, client.ObjectKeyFromObject(f), live); err != nil {
		return fmt.Errorf("read the status of %s: %w", f.Name, err)
	}
	if live.UID != f.UID || live.Status == nil {
		return fmt.Errorf("%s has been replaced by another Framework; it will be reconciled again", f.Name)
	}
	layout, lost, err := stored.Complete(ctx, r.api, live)
	if err != nil {
		return err
	}
	e.status, e.rv, e.layout, e.stored = live.Status, live.ResourceVersion, layout, true
	return r.rebuild(ctx, f, e, lost)
}

// drive repeats steps until no more work can be done now. It returns how long to wait before the next step.
func (r *reconciler) drive(ctx context.Context, f *v1.Framework, e *entry) (time.Duration, error) {
	for range maxSteps {
		result, err := r.step(ctx, f, e)
		if err != nil {
			return 0, err
		}
		if e.status.State == v1.Completed {
			if wait := r.logs.rest(f.Name); wait > 0 {
				return wait, nil
			}
			return r.completed(ctx, f, e, result)
		}
		if wait := r.coalesce(e, result); wait > 0 {
			return soonest(wait, untilWake(result, r.now())), nil
		}
		if e.decisive || !result.Acts() {
			if err := r.persist(ctx, f, e); err != nil {
				return 0, err
			}
			r.tell(f, e)
		}
		if !result.Acts() {
			return untilWake(result, r.now()), nil
		}
		wait, err := r.act(ctx, f, e, result)
		if err != nil {
			return 0, err
		}
		if wait > 0 {
			if err := r.persist(ctx, f, e); err != nil {
				return 0, err
			}
			r.tell(f, e)
			return wait, nil
		}
	}
	return time.Millisecond, nil
}

// step asks the package machine for the next step.
func (r *reconciler) step(ctx context.Context, f *v1.Framework, e *entry) (*machine.Result, error) {
	now, seen := r.now(), r.cache.podsOf(f.Name)
	r.logs.taken(f, seen)
	pods, err := e.view.Pods(seen, e.status, machine.Live{
		Pod: func(name string) (*corev1.Pod, error) { return r.lookup(ctx, name) },
		All: func() ([]*corev1.Pod, error) {
			if e.again {
				return r.list(ctx, f.Name)
			}
			return r.before(ctx, f.Name)
		},
	}, now)
	if err != nil {
		return nil, err
	}
	cm, err := r.configMap(ctx, f, e)
	if err != nil {
		return nil, err
	}
	pods.Last = e.gone(pods.ByName)
	first, err := r.after(ctx, f, e.status)
	if err != nil {
		return nil, err
	}
	st, result := machine.Step(machine.Input{
		Framework: f, Status: e.status, ConfigMap: cm, Pods: pods, Saved: e.saved(), Blocked: e.blocked, After: first, Invalid: f.Invalid(),
		Now: now, Rules: r.rules, Random: rand.Float64, Policy: r.policy,
		GPUs: func(p *corev1.Pod) (*v1.TaskGPUs, bool) { return r.allocated(f, p) },
	})
	e.status = st
	e.mark(&result, now)
	r.count(e, st.State)
	if err := r.republish(f, st); err != nil {
		return nil, err
	}
	if result.Decided {
		c := st.AttemptStatus.CompletionStatus
		kind := string(c.Type.Name)
		if c.Code == machine.CodeStopped {
			kind = "Stopped"
		}
		r.metrics.attempts.WithLabelValues(strings.ToLower(kind)).Inc()
	}
	return &result, nil
}

// lookup queries the API for a pod. It returns nil if the pod doesn't exist.
func (r *reconciler) lookup(ctx context.Context, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	err := r.api.Get(ctx, client.ObjectKey{Namespace: r.o.Namespace, Name: name}, p)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // "no pod" is an answer and no error
	}
	if err != nil {
		return nil, fmt.Errorf("look for pod %s: %w", name, err)
	}
	return p, nil
}

// list reads all pods of a Framework from the API, even pods that the cache doesn't have yet.
func (r *reconciler) list(ctx context.Context, framework string) ([]*corev1.Pod, error) {
	all := &corev1.PodList{}
	if err := r.api.List(ctx, all, client.InNamespace(r.o.Namespace), client.MatchingLabels{v1.LabelFramework: framework}); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", framework, err)
	}
	out := make([]*corev1.Pod, 0, len(all.Items))
	for i := range all.Items {
		out = append(out, slimPod(&all.Items[i]))
	}
	return out, nil
}

// coalesce returns how long to wait before a status is written, so that the changes of many tasks share one write. Decisions are written
// immediately.
func (r *reconciler) coalesce(e *entry, result *machine.Result) time.Duration {
	if !e.dirty || result.Acts() || e.status.State == v1.AttemptCreationPending {
		return 0
	}
	if e.window == 0 || e.status.State != e.told && e.window > time.Second {
		e.window = r.window(e)
	}
	return max(0, e.window-r.now().Sub(e.dirtySince))
}

const (
	// quickWrites is how many jobs per second can have their state written with little delay.
	quickWrites = 5
	// taskWindow is how long changes of tasks are gathered while the job's state stays the same.
	taskWindow = 3 * time.Second
)

// window returns how long changes of a status are gathered. A new state of a job is normally visible after a fifth of a second. If this job or
// all jobs together have many changes to write, it is visible after at most a second.
func (r *reconciler) window(e *entry) time.Duration {
	switch {
	case e.status.State == e.told:
		return taskWindow
	case !r.quick.AllowN(r.now(), 1):
		return time.Second
	}
	return min(time.Second, max(200*time.Millisecond<<min(e.recentWrites, 3), settle(e.tasks.Load())))
}

func untilWake(result *machine.Result, now time.Time) time.Duration {
	if result.Wake.IsZero() {
		return 0
	}
	return max(time.Millisecond, result.Wake.Sub(now))
}

// soonest returns the smaller of two durations. It ignores a duration of 0, which means never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// tell reports the notes of an entry as events of the Framework.
func (r *reconciler) tell(f *v1.Framework, e *entry) {
	notes := e.notes
	e.notes = nil
	for _, n := range notes {
		kind := corev1.EventTypeNormal
		if n.Warning {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(f, nil, kind, n.Reason, n.Reason, "%s", clip(n.Message))
	}
}

// clip shortens a message so that the API accepts it for an event. The API's limit is 1,024 bytes.
func clip(text string) string {
	const limit = 1000
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// count updates the metrics of jobs by state and of unfinished jobs by owner.
func (r *reconciler) count(e *entry, to v1.State) {
	if e.state == to {
		return
	}
	if e.state != "" {
		r.metrics.jobs.WithLabelValues(string(e.state)).Dec()
	}
	if to != "" {
		r.metrics.jobs.WithLabelValues(string(to)).Inc()
	}
	if to == "" || to == v1.Completed {
		r.metrics.info.Delete(e.owner)
	} else {
		r.metrics.info.With(e.owner).Set(1)
	}
	e.state = to
}
