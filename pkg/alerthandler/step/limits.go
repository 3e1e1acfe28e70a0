package step

import (
	"fmt"
	"time"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Limits holds the limits for policies. Requests of people aren't limited.
type Limits struct {
	// StopsPerHour is the maximum number of jobs that policies stop within an hour. StopsPerHourAndVC is the maximum for the jobs of one virtual
	// cluster.
	StopsPerHour, StopsPerHourAndVC int
	// RequeuesPerHour and RequeuesPerHourAndVC are the same limits for requeues of jobs. RequeuesPerJob is the maximum number of requeues of one job
	// by policies within a day.
	RequeuesPerHour, RequeuesPerHourAndVC int
	RequeuesPerJob                        int
	// MachinesPerHour is the maximum number of machines that policies cordon or drain within an hour.
	MachinesPerHour int
	// RestartsPerHour is the maximum number of machines that policies restart within an hour.
	RestartsPerHour int
	// MachinesOut is the maximum percentage of machines that are out of service at a time, for any reason. One machine is always allowed.
	MachinesOut int
	// Returns is the maximum number of times that policies return a machine to service within ReturnsWithin.
	Returns       int
	ReturnsWithin time.Duration
	Hours         *Hours
	// Waits reports whether an Action waits for its notice. Such an Action no longer counts toward the limits after its grace period, because it may
	// wait for a day. If Waits is nil, no Action waits.
	Waits func(*v1.Action) bool
}

// NoReturn returns the reason why policies don't return a machine to service again because of the limit, or "".
func (l Limits) NoReturn(returns []time.Time, now time.Time) string {
	n := 0
	for _, at := range returns {
		if now.Sub(at) < l.ReturnsWithin {
			n++
		}
	}
	switch {
	case n < l.Returns:
		return ""
	case n == 0:
		return "policies return no machine to service (limits.returns: 0)"
	}
	return fmt.Sprintf("it stays out: policies have returned it to service %s within %s, and it broke again", plural.Of(n, "time"), l.ReturnsWithin)
}

const day = 24 * time.Hour

// NoRequeue returns the reason why policies don't requeue a job again because of the limit, or "". requeues holds the times of their earlier requeues.
func (l Limits) NoRequeue(requeues []time.Time, now time.Time) string {
	n := 0
	for _, at := range requeues {
		if now.Sub(at) < day {
			n++
		}
	}
	switch {
	case n < l.RequeuesPerJob:
		return ""
	case n == 0:
		return "policies requeue no job (limits.requeuesPerJob: 0)"
	}
	return fmt.Sprintf("it isn't requeued: policies have done so %s within a day (limits.requeuesPerJob: %d)", plural.Of(n, "time"), l.RequeuesPerJob)
}

// Machines describes the machines that run jobs.
type Machines struct {
	Total int
	// Out holds the machines that get no pods because they are cordoned or not Ready.
	Out map[string]bool
	// Cordoned holds the machines in Out that are cordoned. The other machines in Out return when they are Ready, unless a policy cordons them.
	Cordoned map[string]bool
}

// window is the period of the limits per hour.
const window = time.Hour

// Check decides whether the limits allow an Action of a policy. all holds all Actions of the cluster. It may contain Action a.
func (l Limits) Check(a *v1.Action, all []*v1.Action, m Machines, now time.Time) Limit {
	switch a.Spec.Do {
	case v1.OperationStopJob:
		return l.jobs(a, all, now, "stop", l.StopsPerHour, l.StopsPerHourAndVC)
	case v1.OperationRequeueJob:
		return l.jobs(a, all, now, "requeue", l.RequeuesPerHour, l.RequeuesPerHourAndVC)
	}
	if a.Spec.Do == v1.OperationUncordon || a.Spec.Machine == nil {
		return Limit{}
	}
	if limit := l.restarts(a, all, now); limit != (Limit{}) {
		return limit
	}
	return l.machines(a, all, m, now)
}

func (l Limits) restarts(a *v1.Action, all []*v1.Action, now time.Time) Limit {
	if a.Spec.Do != v1.OperationRestartMachine {
		return Limit{}
	}
	recent := l.newCount(a, now)
	for _, other := range all {
		if l.counts(a, other, now) && other.Spec.Do == v1.OperationRestartMachine {
			recent.add(other)
		}
	}
	if recent.n < l.RestartsPerHour {
		return Limit{}
	}
	return recent.wait(fmt.Sprintf("policies may restart %s an hour", plural.Of(l.RestartsPerHour, "machine")))
}

// jobs decides whether the limits allow an operation on a job. most is the maximum number of operations within an hour. mostOwn is the maximum for
// jobs of the same virtual cluster.
func (l Limits) jobs(a *v1.Action, all []*v1.Action, now time.Time, verb string, most, mostOwn int) Limit {
	vc := ""
	if a.Spec.Job != nil {
		vc = a.Spec.Job.VirtualCluster
	}
	total, own := l.newCount(a, now), l.newCount(a, now)
	for _, other := range all {
		if !l.counts(a, other, now) || other.Spec.Do != a.Spec.Do || other.Spec.Job == nil {
			continue
		}
		total.add(other)
		if other.Spec.Job.VirtualCluster == vc {
			own.add(other)
		}
	}
	if total.n >= most {
		return total.wait(fmt.Sprintf("policies may %s %s an hour", verb, plural.Of(most, "job")))
	}
	if own.n >= mostOwn {
		return own.wait(fmt.Sprintf("policies may %s %s of %s an hour", verb, plural.Of(mostOwn, "job"), vc))
	}
	return Limit{}
}

func (l Limits) machines(a *v1.Action, all []*v1.Action, m Machines, now time.Time) Limit {
	name := a.Spec.Machine.Name
	if m.Cordoned[name] && a.Spec.Do != v1.OperationDrain { // it takes no other machine out, and moves no jobs
		return Limit{}
	}
	recent := l.newCount(a, now)
	taken := map[string]bool{}
	counted := map[string]bool{}
	for n := range m.Out {
		if n != name {
			taken[n] = true
		}
	}
	for _, other := range all {
		if !l.counts(a, other, now) || other.Spec.Machine == nil || other.Spec.Do == v1.OperationUncordon {
			continue
		}
		if !other.Status.Phase.Final() {
			if other.Spec.Machine.Name == name && other.Begun() {
				return Limit{}
			}
			taken[other.Spec.Machine.Name] = true
		}
		if !counted[other.Spec.Machine.Name] && recent.add(other) {
			counted[other.Spec.Machine.Name] = true
		}
	}
	// A machine whose Action is in its grace period counts as out of service now. It counts toward the limit per hour only at the end of the grace
	// period.
	if most := max(1, m.Total*l.MachinesOut/100); !m.Cordoned[name] && !taken[name] && len(taken) >= most {
		return Limit{Refused: fmt.Sprintf("%d of %s are out of service, and policies may raise that to %d (machinesOut: %d %%)",
			len(taken), plural.Of(m.Total, "machine"), most, l.MachinesOut)}
	}
	if recent.n >= l.MachinesPerHour && !counted[name] { // a later step for a machine needs no other place
		return recent.wait(fmt.Sprintf("policies may put %s out of service an hour", plural.Of(l.MachinesPerHour, "machine")))
	}
	return Limit{}
}

// counts reports whether another Action counts toward the limits, because a policy requested it and it had an effect or is about to have an effect.
func (l Limits) counts(a, other *v1.Action, now time.Time) bool {
	return other.Name != a.Name && other.Spec.By.Kind == v1.ByPolicy && !other.Spec.DryRun &&
		(other.Begun() || other.Status.Phase == v1.PhaseNoticed && !due(a, now) && (!due(other, now) || l.Waits == nil || !l.Waits(other)))
}

// due reports whether the grace period of an Action has ended. A due Action already counted toward the limits during its grace period. So only
// Actions that have begun count against it now, because they may have begun late.
func due(a *v1.Action, now time.Time) bool {
	return a.Status.Phase == v1.PhaseNoticed && a.Status.ActTime != nil && !a.Status.ActTime.After(now)
}

// count counts the Actions that act within an hour of a given Action, including Actions in their grace periods. An announced Action counts only for
// the hour that its notice names.
type count struct {
	now, at time.Time
	// shift is the delay of the Action by the hours of its policy. The count is constant during this delay.
	shift time.Duration
	n     int
	first time.Time // the first of those
}

func (l Limits) newCount(a *v1.Action, now time.Time) *count {
	at := now.Add(a.Spec.Grace())
	if t := a.Status.ActTime; t != nil {
		at = t.Time
	}
	if at.Before(now) {
		at = now
	}
	next := l.Hours.Next(at)
	return &count{now: now, at: next, shift: next.Sub(at)}
}

// add counts an Action that acts within the hour, and reports whether it was counted.
func (c *count) add(a *v1.Action) bool {
	acts := c.now
	switch s := &a.Status; {
	case s.StartTime != nil && s.StartTime.After(c.now): // the clock was ahead: it may have begun just now
	case s.StartTime != nil:
		acts = s.StartTime.Time
	case s.ActTime != nil && s.ActTime.After(c.now):
		acts = s.ActTime.Time
	}
	if c.at.Sub(acts).Abs() >= window {
		return false
	}
	c.n++
	if c.first.IsZero() || acts.Before(c.first) {
		c.first = acts
	}
	return true
}

// wait returns a Limit that lasts until one hour after the first counted Action. The wait may be shorter if other Actions are canceled.
func (c *count) wait(limit string) Limit {
	after := time.Minute
	if !c.first.IsZero() {
		after = c.first.Add(window).Sub(c.at)
	}
	return Limit{Wait: "it waits: " + limit, After: max(after, c.shift, time.Second)}
}
