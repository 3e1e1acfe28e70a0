package notify

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// Receiver is a person, the mail address of an administrator, or a webhook.
type Receiver struct {
	// Person is the name of a person, and Webhook is the name of a webhook. If both names are empty, Address is a configured address of an
	// administrator.
	Person, Webhook string
	// OwnWebhook selects the person's own webhook instead of mail.
	OwnWebhook bool
	// Address is the mail address. It is empty for a person without an address.
	Address string
}

// Key returns the receiver's key in the record. The key of a person stays the same when the address changes.
func (r Receiver) Key() string {
	switch {
	case r.OwnWebhook:
		return "own/" + r.Person
	case r.Person != "":
		return "person/" + r.Person
	case r.Webhook != "":
		return "webhook/" + r.Webhook
	}
	return "address/" + r.Address
}

// mail reports whether the receiver gets mails.
func (r Receiver) mail() bool { return r.Webhook == "" && !r.OwnWebhook }

// Notice is one event for one receiver.
type Notice struct {
	// ID identifies the event. IDs aren't reused. If After is set, the notice goes only to receivers that got the notice with the ID After.
	ID, After string
	To        Receiver
	At        time.Time
	// Keep is the time until which the record keeps the notice, if longer than the default.
	Keep time.Time
	// Urgent notices are sent first, because people can still react. By is the time until which people can react, or zero if unknown.
	Urgent bool
	By     time.Time
	// Subject is a single line. Text is the body of a mail.
	Subject, Text string
	// Before is the UID of the Action that the notice announces. It is empty for other notices.
	Before types.UID
	// body, if set, returns the text of the mail when the notice is sent. It avoids making a text that may not be sent.
	body func() string
}

// World holds the facts for all notices.
type World struct {
	Now     time.Time
	Actions []*v1.Action
	Jobs    []Job
	// Person returns the data about a person. A person who doesn't exist has no address.
	Person func(name string) Person
	// TestRequests holds the people who have recently requested a test message.
	TestRequests []Person
	// Weekly is the weekly report that is due, or nil.
	Weekly *Weekly
	// KeepTag returns the tag that exempts a job from a policy, or "".
	KeepTag func(policy string) string
	// NotifiesOwners reports whether a policy makes dry runs and notifies owners of the jobs that it would stop.
	NotifiesOwners func(policy string) bool
	// Opens returns the first time, from a time on, at which a policy begins its steps. Nil means at any time.
	Opens func(policy string, from time.Time) time.Time
	// requeues holds, by the UID of the job, the Actions of policies that requeue the job. The order is the order of Actions.
	requeues map[types.UID][]*v1.Action
}

// told holds the jobs that Actions have stopped, and the names of the Actions that have requeued a job. The owners of these jobs get notices about
// the Actions instead.
type told struct {
	stopped  map[types.UID]bool
	requeued map[string]bool
}

func (t *told) add(a *v1.Action) {
	switch {
	case !acted(a):
	case a.Spec.Do == v1.OperationStopJob:
		t.stopped[a.Spec.Job.UID] = true
	case a.Spec.Do == v1.OperationRequeueJob:
		t.requeued[a.Name] = true
	}
}

// Notices returns all notices for the given facts, including notices that were already sent.
func (c *Config) Notices(w *World) (out []Notice) {
	known := told{stopped: map[types.UID]bool{}, requeued: map[string]bool{}}
	jobs := map[types.UID]*Job{}
	for i := range w.Jobs {
		jobs[w.Jobs[i].UID] = &w.Jobs[i]
	}
	w.requeues = requeues(w.Actions)
	for _, a := range w.Actions {
		if a.Spec.Do.ForJobs() && (a.Spec.Job == nil || acted(a) && !works(a, jobs[a.Spec.Job.UID])) {
			continue
		}
		if a.Spec.DryRun && !w.reportsDryRun(a, jobs) {
			continue
		}
		if e, ok := c.event(a, w); ok {
			for _, to := range c.receivers(a, e.At, w) {
				if a.Spec.Job != nil && to.Person != "" {
					known.add(a)
				}
				n := e
				n.To = to
				out = append(out, n)
			}
		}
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		out = append(out, c.ofJob(j, w, &known)...)
	}
	for i := range w.TestRequests {
		out = append(out, c.test(&w.TestRequests[i])...)
	}
	return append(out, c.weekly(w.Weekly)...)
}

// reportsDryRun reports whether the owner of a job gets a notice about a dry run. Old dry runs cause no notices, because a policy may have dry runs of
// a week when an operator turns on its notices.
func (w *World) reportsDryRun(a *v1.Action, jobs map[types.UID]*Job) bool {
	if a.Spec.Do != v1.OperationStopJob || a.Spec.By.Kind != v1.ByPolicy || a.Spec.Job == nil || !w.NotifiesOwners(a.Spec.By.Name) {
		return false
	}
	j := jobs[a.Spec.Job.UID]
	return j != nil && j.Completed.IsZero() && a.Status.Phase == v1.PhaseSucceeded && a.Status.EndTime != nil && w.Now.Sub(a.Status.EndTime.Time) < tellWithin
}

// acts returns when an Action acts whose notice is sent now.
func (w *World) acts(a *v1.Action) time.Time {
	at := a.Acts(w.Now)
	if w.Opens != nil && a.Status.ActTime != nil && at.After(a.Status.ActTime.Time) {
		at = w.Opens(a.Spec.By.Name, at)
	}
	return at
}

// works reports whether an Action that has begun stops or requeues its job, or has done so. It returns false if the job had already finished. A nil j
// means that the job was removed.
func works(a *v1.Action, j *Job) bool {
	switch {
	case j == nil:
		return a.Status.Phase == v1.PhaseSucceeded
	case a.Spec.Do == v1.OperationRequeueJob:
		return slices.Contains(j.Requests, a.Name)
	}
	return j.Stopped != "" && (j.Completed.IsZero() || j.State == jobv1.NotifyStopped)
}

// receivers returns the receivers of the notices about an Action: the owner of the job or the administrators, and webhooks.
func (c *Config) receivers(a *v1.Action, at time.Time, w *World) (out []Receiver) {
	if a.Spec.Do == v1.OperationRequeueJob && a.Spec.By.Kind == v1.ByPerson && !acted(a) && a.Status.NoticeTime == nil {
		p := w.Person(a.Spec.By.Name) // the owner has had no notice of it
		return c.chosen(&p, at, peoplev1.NoticeStopping)
	}
	subject, groups := SubjectMachines, []string(nil)
	if a.Spec.Job != nil {
		subject = SubjectJobs
		if owner, _ := owner(a.Spec.Job); owner != "" {
			kinds := []peoplev1.NoticeEvent{peoplev1.NoticeStopping}
			if a.Begun() {
				kinds = append(kinds, map[v1.Operation]peoplev1.NoticeEvent{v1.OperationStopJob: peoplev1.NoticeStopped, v1.OperationRequeueJob: peoplev1.NoticeRetried}[a.Spec.Do])
			}
			p := w.Person(owner)
			groups = p.Groups
			out = append(out, c.chosen(&p, at, kinds...)...)
		}
	} else if c.SMTP.Host != "" {
		for _, address := range c.Administrators {
			out = append(out, Receiver{Address: address})
		}
	}
	for i := range c.Webhooks {
		if c.Webhooks[i].wants(subject, groups) {
			out = append(out, Receiver{Webhook: c.Webhooks[i].Name})
		}
	}
	return out
}

// event returns the notice about the current state of an Action, without its receiver. ok is false if the state has no notice, for example because an
// announced time has passed.
func (c *Config) event(a *v1.Action, w *World) (n Notice, ok bool) {
	s := &a.Status
	id := "action/" + string(a.UID) + "/"
	switch {
	case a.Spec.DryRun:
		n = c.wouldStop(a, w)
		n.ID, n.At = id+"would-stop", s.EndTime.Time
	case s.Phase == v1.PhaseNoticed && s.NoticeTime != nil && s.ActTime != nil:
		n = c.planned(a, w)
		n.ID, n.At, n.Urgent, n.By, n.Before = id+"planned", s.NoticeTime.Time, true, w.acts(a), a.UID
		n.Keep = n.By.Add(rememberFor) // the result is only for those who got it
	case acted(a) && a.Spec.Do == v1.OperationRequeueJob:
		n = c.requeued(a, w)
		n.ID, n.At = id+"requeued", s.StartTime.Time
	case acted(a) && a.Spec.Job != nil:
		n = c.stopped(a)
		n.ID, n.At = id+"stopped", s.StartTime.Time
	case a.Spec.Job != nil && s.Phase.Final() && s.Phase != v1.PhaseSucceeded && s.EndTime != nil && s.NoticeTime != nil:
		n = c.kept(a, w)
		n.ID, n.After, n.At = id+"result", id+"planned", s.EndTime.Time
	case a.Spec.Do == v1.OperationRequeueJob && stays(a) && a.Spec.By.Kind != v1.ByOperator && w.first(a): // it stays on a broken GPU
		n = c.kept(a, w)
		n.ID, n.At = id+"result", s.EndTime.Time
	case a.Spec.Machine != nil && s.Phase.Final() && s.EndTime != nil && (a.Begun() || s.NoticeTime != nil || s.Phase == v1.PhaseRefused || s.Phase == v1.PhaseExpired):
		n = c.result(a)
		n.ID, n.At = id+"result", s.EndTime.Time
	default:
		return n, false
	}
	return n, true
}
