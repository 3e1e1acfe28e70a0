package step

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Effect is a change of the target. Each effect can be repeated, because the handler chooses the same effect again after a crash.
type Effect string

// The effects.
const (
	EffectNone     Effect = ""
	EffectStopJob  Effect = "stop-job"
	EffectRequeue  Effect = "requeue-job"
	EffectCordon   Effect = "cordon"
	EffectUncordon Effect = "uncordon"
	EffectEvict    Effect = "evict"
	EffectReset    Effect = "reset-gpu"
	EffectRestart  Effect = "restart-machine"
	// EffectStay marks a machine that policies don't return to service.
	EffectStay Effect = "stay"
)

// Next is the next step of an Action.
type Next struct {
	// Status is written before the effect.
	Status v1.ActionStatus
	Effect Effect
	// After is the maximum time until the next decision. 0 means that no further decision is needed.
	After time.Duration
}

const (
	// again is the interval between two checks of a running operation.
	again = 5 * time.Second
	// resetTimeout limits the reset of a GPU. It includes the time until the agent reads, carries out and answers the request.
	resetTimeout = 20 * time.Minute
	// refusedTimeout is how long the handler repeats an effect that the API server rejects.
	refusedTimeout = 10 * time.Minute
	// mostResults limits the number of results in a status.
	mostResults = 100
)

// Decide returns the next step of an Action. A final phase never changes, and an operation that has begun doesn't return to an earlier phase.
func Decide(a *v1.Action, f *Facts, now time.Time) Next {
	d := decision{a: a, f: f, now: metav1.NewTime(now.UTC().Truncate(time.Second)), status: *a.Status.DeepCopy()}
	if a.Status.Phase.Final() {
		return Next{Status: d.status}
	}
	if a.Status.Phase == v1.PhaseActing {
		return d.bounded(d.act())
	}
	return d.begin()
}

type decision struct {
	a      *v1.Action
	f      *Facts
	now    metav1.Time
	status v1.ActionStatus
}

// begin decides about an Action that has had no effect yet.
func (d *decision) begin() Next {
	spec := &d.a.Spec
	switch problem := d.invalid(); {
	case spec.Canceled != "":
		return d.end(v1.PhaseCanceled, "canceled: "+spec.Canceled)
	case problem != "":
		return d.end(v1.PhaseRefused, problem)
	case d.f.Forbidden != nil:
		return d.end(v1.PhaseRefused, d.stuck(d.f.Forbidden.Error()))
	case d.f.Jumped && spec.By.Kind == v1.ByPolicy:
		return d.pause("it waits: the clock of the handler's machine was set, and alerts are repeated first", time.Minute)
	case d.passed(spec.NotAfter.Time) && !d.again():
		return d.end(v1.PhaseExpired, d.stuck(d.expired()))
	}
	if problem := d.unfit(); problem != "" {
		return d.end(v1.PhaseRefused, problem)
	}
	if message, done := d.reached(); done {
		return d.end(v1.PhaseSucceeded, message)
	}
	if next, held := d.held(v1.PhasePending, v1.PhaseRefused); held {
		return next
	}
	if next, joined := d.joins(); joined {
		return next
	}
	if limited(d.a, d.f) {
		if d.f.Limit.Refused != "" {
			return d.end(v1.PhaseRefused, d.f.Limit.Refused)
		}
		return d.wait(v1.PhasePending, d.f.Limit.Wait, d.f.Limit.After)
	}
	if spec.DryRun {
		return d.end(v1.PhaseSucceeded, "dry run: it would "+d.plan())
	}
	if spec.Grace() > 0 {
		if d.status.NoticeTime == nil || d.status.ActTime == nil {
			at := metav1.NewTime(d.f.Hours.Next(d.now.Add(spec.Grace())).UTC())
			if !at.Before(&spec.NotAfter) { // the notice wouldn't come true
				return d.end(v1.PhaseExpired, d.stuck(d.expired()))
			}
			d.status.NoticeTime, d.status.ActTime = &d.now, &at
		}
		if left := d.status.ActTime.Sub(d.now.Time); left > 0 {
			return d.wait(v1.PhaseNoticed, "it will "+d.plan()+" at "+d.status.ActTime.UTC().Format(time.RFC3339), left)
		}
		if why, after := d.unnoticed(); why != "" {
			return d.pause(why, after)
		}
	}
	if from := d.f.Hours.Next(d.now.Time); from.After(d.now.Time) {
		return d.pause("it waits for the hours of its policy, which begin at "+from.Format(time.RFC3339), from.Sub(d.now.Time))
	}
	if d.f.Unheard != "" {
		return d.pause(d.f.Unheard, time.Minute)
	}
	if verb := doing[spec.Do]; verb != "" && d.f.Restarting != "" {
		return d.pause(fmt.Sprintf("it waits: the action %s %s %s", d.f.Restarting, verb, d.a.Spec.Target()), again)
	}
	if spec.By.Kind == v1.ByPolicy && d.status.Phase == v1.PhaseNoticed {
		if d.f.Limit.Refused != "" {
			return d.end(v1.PhaseRefused, d.f.Limit.Refused)
		}
		if d.f.Limit.Wait != "" {
			return d.wait(v1.PhaseNoticed, d.f.Limit.Wait, d.f.Limit.After)
		}
	}
	d.status.Phase, d.status.StartTime = v1.PhaseActing, &d.now
	return d.act()
}

// doing lists the operations that must not overlap on one target, with their verbs.
var doing = map[v1.Operation]string{
	v1.OperationRestartMachine: "restarts", v1.OperationRequeueJob: "requeues", v1.OperationResetGPU: "resets", v1.OperationStopJob: "stops",
}

// limited reports whether a limit prevents an Action from beginning.
func limited(a *v1.Action, f *Facts) bool {
	return a.Spec.By.Kind == v1.ByPolicy && a.Status.Phase != v1.PhaseNoticed && (f.Limit.Refused != "" || f.Limit.Wait != "")
}

// NeedsPods reports whether the next step depends on the pods of the machine. Reading pods costs a request, and every machine of the cluster may have
// a waiting drain. So a waiting drain doesn't need the pods. A restart needs the pods, because it is refused at once if the machine has any.
func NeedsPods(a *v1.Action, f *Facts) bool {
	switch {
	case a.Spec.Do == v1.OperationRestartMachine:
		return f.Machine != nil
	case a.Spec.Do != v1.OperationDrain || f.Machine == nil:
		return false
	case a.Begun() || a.Status.Phase == v1.PhaseActing || f.Machine.Unschedulable:
		return true // it may be done
	}
	return a.Spec.DryRun && !limited(a, f) // its result counts them
}

// unready returns the reason why a policy doesn't return a machine to service yet, or "".
func (d *decision) unready() string {
	switch {
	case d.a.Spec.Do != v1.OperationUncordon || d.a.Spec.By.Kind != v1.ByPolicy || d.a.Spec.DryRun:
		return ""
	case d.f.Restarting != "":
		return "while the action " + d.f.Restarting + " restarts it"
	case d.f.Machine.BrokenGPUs != "":
		return "until its agent finds no fault: " + d.f.Machine.BrokenGPUs
	case !d.f.Machine.Ready:
		return "until its kubelet is ready"
	case d.a.Spec.Machine.GPU != nil && !d.f.Machine.Agent:
		return "until its agent reports its GPUs"
	}
	return ""
}

// held returns the next step of a policy's Action that must not return a machine to service yet, or must not requeue a job again. The Action waits in
// the phase waits, or ends in the phase ends.
func (d *decision) held(waits, ends v1.Phase) (Next, bool) {
	if stays := d.stays(); stays != "" {
		if d.a.Spec.DryRun || d.a.Spec.Do == v1.OperationRequeueJob || d.f.Machine.Mark != nil && d.f.Machine.Mark.Stays {
			return d.end(ends, d.a.Spec.Target()+": "+stays), true
		}
		next := d.wait(waits, d.a.Spec.Target()+": "+stays, again)
		next.Effect = EffectStay
		return next, true
	}
	if unready := d.unready(); unready != "" {
		return d.wait(waits, d.a.Spec.Target()+" stays cordoned "+unready, again), true
	}
	return Next{}, false
}

// stays returns the reason why a policy doesn't return a machine to service or requeue a job again, or "". After a machine is marked with this
// reason, only a person returns the machine to service.
func (d *decision) stays() string {
	switch {
	case d.a.Spec.By.Kind != v1.ByPolicy:
		return ""
	case d.a.Spec.Do == v1.OperationRequeueJob:
		return d.f.NoReturn
	case d.a.Spec.Do != v1.OperationUncordon:
		return ""
	}
	if m := d.f.Machine.Mark; m != nil && m.Stays {
		return m.Reason
	}
	return d.f.NoReturn
}

// expired returns the message of an Action that couldn't begin in time, with the reason of the delay.
func (d *decision) expired() string {
	text := "it wasn't begun until " + d.a.Spec.NotAfter.UTC().Format(time.RFC3339) + ", when it expired"
	if d.a.Spec.NotAfter.After(d.now.Time) {
		text = "it expires at " + d.a.Spec.NotAfter.UTC().Format(time.RFC3339) + ", before the end of its grace"
	}
	if d.status.Phase == v1.PhasePending && d.status.Message != "" || strings.HasPrefix(d.status.Message, "it waits") {
		text += "; before that: " + d.status.Message
	}
	return text
}

// invalid returns the reason why a request has no valid target, or "". The API server also validates requests, but an older custom resource
// definition may be installed.
func (d *decision) invalid() string {
	spec := &d.a.Spec
	switch spec.Do {
	case v1.OperationStopJob, v1.OperationRequeueJob:
		switch {
		case spec.Job == nil || spec.Machine != nil:
			return "it names no job"
		case d.f.Job != nil && d.f.Job.UID != spec.Job.UID:
			return "another job has the name " + spec.Job.Name + " now"
		}
	case v1.OperationCordon, v1.OperationUncordon, v1.OperationDrain, v1.OperationResetGPU, v1.OperationRestartMachine:
		switch {
		case spec.Machine == nil || spec.Job != nil:
			return "it names no machine"
		case spec.Do == v1.OperationResetGPU && spec.Machine.GPU == nil:
			return "it names no GPU"
		case d.f.Machine == nil:
			return spec.Machine.Name + " is no longer in the cluster"
		case d.f.Machine.UID != spec.Machine.UID:
			return spec.Machine.Name + " was removed from the cluster and added again since the request"
		case spec.Do == v1.OperationUncordon && spec.By.Kind == v1.ByPolicy && d.byPerson():
			return spec.Machine.Name + " was cordoned by a person, and a policy doesn't change that"
		}
	default:
		return fmt.Sprintf("the operation %q is unknown to this version", spec.Do)
	}
	return ""
}

// reached reports whether the target is already in the requested state, and returns a message about this state.
func (d *decision) reached() (string, bool) {
	name := d.a.Spec.Target()
	switch d.a.Spec.Do {
	case v1.OperationStopJob:
		switch {
		case d.f.Job == nil || d.f.Job.Ended:
			return name + " has ended", true
		case d.f.Job.Stopping:
			return name + " is being stopped", true
		}
	case v1.OperationRequeueJob:
		return d.requeued()
	case v1.OperationCordon:
		if d.cordoned() {
			return name + " is cordoned", true
		}
	case v1.OperationUncordon:
		if !d.f.Machine.Unschedulable {
			return name + " gets pods", true
		}
		if d.returned() {
			return name + " stays cordoned for " + d.f.Machine.Mark.By.Text() + ": " + d.f.Machine.Mark.Reason, true
		}
	case v1.OperationDrain:
		if d.cordoned() && len(d.f.Machine.Pods) == 0 {
			return name + " is cordoned and has no pods to move", true
		}
	case v1.OperationRestartMachine:
		if d.restarted() {
			return name + " has restarted since the alert began, by the action " + d.f.Restarted, true
		}
	case v1.OperationResetGPU:
		if d.restarted() {
			return name + " was reset since the alert began, by the action " + d.f.Restarted, true
		}
	}
	return "", false
}

// plan returns the operation as the end of a sentence such as "it will …".
func (d *decision) plan() string {
	name := d.a.Spec.Target()
	if d.a.Spec.Do != v1.OperationDrain {
		return d.a.Spec.Do.Verb() + " " + name
	}
	pods := "its pods"
	if d.a.Spec.DryRun {
		pods = plural.Of(len(d.f.Machine.Pods), "pod")
	}
	return "cordon " + name + " and move " + pods
}

// act decides about an operation that has begun.
func (d *decision) act() Next {
	if d.status.StartTime == nil { // someone has edited the status
		d.status.StartTime = &d.now
	}
	if problem := d.invalid(); problem != "" {
		if d.a.Spec.Do.ForJobs() && d.f.Job != nil {
			return d.end(v1.PhaseSucceeded, d.a.Spec.Job.Name+" has ended, and another job has the name now")
		}
		return d.end(v1.PhaseFailed, problem)
	}
	switch d.a.Spec.Do {
	case v1.OperationDrain:
		return d.drain()
	case v1.OperationResetGPU:
		return d.reset()
	case v1.OperationRestartMachine:
		return d.restart()
	}
	if message, done := d.reached(); done {
		return d.end(v1.PhaseSucceeded, message)
	}
	// The API server may have rejected the effect because the machine or the job has changed since the decision.
	if next, held := d.held(v1.PhaseActing, v1.PhaseFailed); held {
		if !next.Status.Phase.Final() && d.passed(d.a.Spec.NotAfter.Time) {
			return d.end(v1.PhaseFailed, next.Status.Message)
		}
		return next
	}
	effects := map[v1.Operation]Effect{v1.OperationStopJob: EffectStopJob, v1.OperationRequeueJob: EffectRequeue, v1.OperationCordon: EffectCordon, v1.OperationUncordon: EffectUncordon}
	return d.effect(effects[d.a.Spec.Do], "it is to "+d.plan())
}

// bounded ends an Action if the API server has rejected its effect for refusedTimeout, because other Actions wait for its end. Evictions end with the
// timeout of the drain.
func (d *decision) bounded(next Next) Next {
	if d.f.Refused == "" || next.Effect == EffectNone || next.Effect == EffectEvict || !d.passed(d.f.RefusedSince.Add(refusedTimeout)) {
		return next
	}
	return d.end(v1.PhaseFailed, d.stuck(fmt.Sprintf("it couldn't %s within %s: %s", d.plan(), refusedTimeout, d.f.Refused)))
}

func (d *decision) drain() Next {
	m := d.f.Machine
	wasCordoned := len(d.status.Results) > 0
	if m.Unschedulable {
		d.results(m.Pods)
	}
	name := d.a.Spec.Machine.Name
	switch {
	case d.a.Spec.Canceled != "":
		return d.end(v1.PhaseCanceled, fmt.Sprintf("canceled: %s; %s stays cordoned, and %s of it weren't moved", d.a.Spec.Canceled, name, plural.Of(len(m.Pods), "pod")))
	case !m.Unschedulable && wasCordoned:
		return d.end(v1.PhaseFailed, fmt.Sprintf("%s was uncordoned while its pods moved, and gets pods", name))
	case !d.cordoned():
		return d.effect(EffectCordon, "it is to cordon "+name)
	case len(m.Pods) == 0:
		return d.end(v1.PhaseSucceeded, name+" is cordoned and has no pods to move")
	}
	var alone, left []string
	for _, p := range m.Pods {
		left = append(left, p.Namespace+"/"+p.Name)
		if !p.Managed {
			alone = append(alone, p.Namespace+"/"+p.Name)
		}
	}
	over := d.passed(d.status.StartTime.Add(d.f.DrainTimeout))
	switch {
	case len(alone) == len(left):
		return d.end(v1.PhaseFailed, fmt.Sprintf("%s is cordoned, but nothing makes these pods again elsewhere, so that they stay: %s", name, list(alone)))
	case over:
		return d.end(v1.PhaseFailed, fmt.Sprintf("%s is cordoned, but these pods weren't gone after %s: %s", name, d.f.DrainTimeout, list(left)))
	}
	return d.effect(EffectEvict, fmt.Sprintf("%s of %s have to move", plural.Of(len(left), "pod"), name))
}

// results records the pods that a drain moves. A pod that no longer exists on the machine counts as moved.
func (d *decision) results(pods []Pod) {
	at := map[string]int{}
	for i := range d.status.Results {
		d.status.Results[i].Done, d.status.Results[i].Message = true, ""
		at[d.status.Results[i].Target] = i
	}
	for _, p := range pods {
		r := v1.Result{Target: p.Namespace + "/" + p.Name, Message: p.Refused}
		if p.Leaving {
			r.Message = "it is ending"
		}
		if i, known := at[r.Target]; known {
			d.status.Results[i] = r
		} else if len(d.status.Results) < mostResults {
			d.status.Results = append(d.status.Results, r)
		}
	}
}

func (d *decision) reset() Next {
	name := d.a.Spec.Target()
	switch r := d.f.Machine.Reset; {
	case r != nil && r.Done:
		return d.end(v1.PhaseSucceeded, cmp.Or(r.Message, name+" was reset"))
	case r != nil:
		return d.end(v1.PhaseFailed, cmp.Or(r.Message, "the agent couldn't reset "+name))
	case d.passed(d.status.StartTime.Add(resetTimeout)):
		return d.end(v1.PhaseFailed, fmt.Sprintf("the agent of %s didn't answer within %s", d.a.Spec.Machine.Name, resetTimeout))
	}
	return d.effect(EffectReset, "the agent is to reset "+name)
}

// list returns a text with the first few names.
func list(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (d *decision) end(p v1.Phase, message string) Next {
	d.status.Phase, d.status.Message, d.status.EndTime = p, message, &d.now
	return Next{Status: d.status}
}

func (d *decision) wait(p v1.Phase, message string, after time.Duration) Next {
	d.status.Phase, d.status.Message = p, message
	// Decide again when the request expires, or earlier.
	if left := d.a.Spec.NotAfter.Sub(d.now.Time); left > 0 && left < after {
		after = left
	}
	return Next{Status: d.status, After: max(after, time.Second)}
}

// pause makes an Action wait before its operation begins. An announced Action stays in the phase Noticed, and still counts toward the limits.
func (d *decision) pause(message string, after time.Duration) Next {
	phase := v1.PhasePending
	if d.status.Phase == v1.PhaseNoticed {
		phase = v1.PhaseNoticed
	}
	return d.wait(phase, message, after)
}

func (d *decision) effect(e Effect, message string) Next {
	d.status.Message = message
	return Next{Status: d.status, Effect: e, After: again}
}
