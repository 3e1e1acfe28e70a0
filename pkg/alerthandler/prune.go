package alerthandler

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

const (
	// mostKept limits the number of finished Actions. It doesn't count Actions whose alerts still fire.
	mostKept = 2000
	// mostActions limits the number of all Actions, because each firing alert keeps the Action of its first step. At this limit, the handler rejects
	// alerts.
	mostActions = 10_000
)

type kept struct {
	// time is how long finished Actions are kept. most is the maximum number of finished Actions, not counting Actions that are still needed.
	time time.Duration
	most int
	// steady reports whether the clock has been right long enough for Alertmanager to repeat every firing alert.
	steady bool
	// holds reports whether a machine is still cordoned for an Action.
	holds func(*v1.Action) bool
	// policy returns the policy with a name, or nil.
	policy func(name string) *policy.Policy
}

// clock detects when the machine's clock is set. It is safe for concurrent use.
type clock struct {
	source    func() time.Time // a clock that can't be set; nil means the program's
	mu        sync.Mutex
	at        time.Time // of the last look, by the machine's clock
	monotonic time.Time // the same, by a clock that can't be set
	began     time.Time // when the handler began to lead, by the latter
	set       time.Time // when the machine's clock was set, by the latter; zero if it wasn't
}

const (
	// drift is the maximum deviation of the clock between two rounds. A larger deviation means that the clock was set.
	drift = time.Minute
	// settles is longer than Alertmanager needs to repeat all firing alerts.
	settles = 30 * time.Minute
)

func (c *clock) elapsed() time.Time {
	if c.source == nil {
		return time.Now()
	}
	return c.source()
}

// begin records the time at which the handler becomes the leader.
func (c *clock) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = c.elapsed()
}

// look compares the machine's clock with the monotonic clock. It reports whether the machine's clock was set within the last settles. The current
// time may then be wrong, or earlier times may have been wrong.
func (c *clock) look(now time.Time) (jumped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	monotonic, now := c.elapsed(), now.Round(0)
	if !c.monotonic.IsZero() && (now.Sub(c.at)-monotonic.Sub(c.monotonic)).Abs() > drift {
		c.set = monotonic
	}
	c.at, c.monotonic = now, monotonic
	return !c.set.IsZero() && monotonic.Sub(c.set) < settles
}

// steady reports whether the handler has been the leader for at least settles without a jump of the clock.
func (c *clock) steady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	monotonic := c.elapsed()
	return monotonic.Sub(c.set) >= settles && monotonic.Sub(c.began) >= settles
}

// prune removes finished Actions that exceed the configured age. If too many remain, it also removes the oldest finished Actions.
func (h *Handler) prune(ctx context.Context, all []*v1.Action, now time.Time) {
	for _, a := range removable(all, kept{time: h.o.Policies.Keep.D(), most: mostKept, steady: h.clock.steady(), holds: h.holds, policy: h.o.Policies.ByName}, now) {
		err := h.objects.Resource(v1.Actions).Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			h.o.Log.WarnContext(ctx, "remove an old action", "action", a.Name, "error", err.Error())
			return
		}
	}
}

// removable returns the finished Actions to remove, in the order of all. If there are too many, it keeps only Actions that a message or a previous
// step would create again. The first step of an incident is removed last, because it reserves the incident's number. Otherwise another incident could
// get that number, and its steps would count as done.
func removable(all []*v1.Action, keep kept, now time.Time) (out []*v1.Action) {
	known := latest{}
	excess := -keep.most
	leads := map[string]bool{} // the names of steps that the step before would make again
	for _, a := range all {
		known.add(a)
		if a.Status.Phase.Final() {
			excess++
		}
		if _, next, ok := next(a, keep.policy(a.Spec.By.Name)); ok && (now.Sub(a.Status.EndTime.Time) <= followed || keep.holds(a)) {
			leads[next] = true
		}
	}
	fires, further := map[string]bool{}, map[string]bool{}
	incident := func(a *v1.Action) string { return a.Spec.By.Name + "/" + a.Labels[LabelIncident] }
	for _, a := range known {
		if incidentOf(a).Ended.IsZero() {
			fires[incident(a)] = true
		}
	}
	for _, a := range all {
		if incidentOf(a) == nil {
			further[incident(a)] = true
		}
	}
	for _, a := range all {
		first := incidentOf(a) != nil
		if !a.Status.Phase.Final() || first && further[incident(a)] {
			continue
		}
		ago := now.Sub(lastAlert(a))
		needed := counts(a, now) || leads[a.Name] || first && (fires[incident(a)] || ago < settles) || !keep.steady && fires[incident(a)]
		if (!keep.steady || ago < keep.time) && (needed || excess <= 0) {
			continue
		}
		excess--
		out = append(out, a)
	}
	return out
}

// told exceeds the time within which notices about a job are sent. If the Action that stopped a job were removed earlier, the owner would get a
// second notice.
const told = 48 * time.Hour

// counts reports whether limits or notices still need an Action. The limits per hour need the Actions of the last hour. The limit of one restart per
// cordon needs the restarts. Notices about a job need the Action that stopped or requeued the job.
func counts(a *v1.Action, now time.Time) bool {
	if !a.Begun() {
		return false
	}
	ago := now.Sub(a.Status.StartTime.Time)
	return a.Spec.Do == v1.OperationRestartMachine || ago <= time.Hour || a.Spec.Do.ForJobs() && ago <= told
}
