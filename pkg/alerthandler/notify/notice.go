package notify

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
)

// Receiver is a person, an address of an administrator, or a webhook.
type Receiver struct {
	// Person is the name of an owner, Webhook that of a webhook. With neither, it is an address of the configuration.
	Person, Webhook string
	// Address is that of a mail; empty for a person without one.
	Address string
}

// Key names a receiver in the record. A person keeps it with a new address.
func (r Receiver) Key() string {
	switch {
	case r.Person != "":
		return "person/" + r.Person
	case r.Webhook != "":
		return "webhook/" + r.Webhook
	}
	return "address/" + r.Address
}

// Notice is one event for one receiver.
type Notice struct {
	// ID names the event, and is never used for another one. A notice with After is only for those who got the one with that ID.
	ID, After string
	To        Receiver
	At        time.Time
	// Urgent notices come first: people can still do something.
	Urgent bool
	// Subject is one line, Text the body of a mail.
	Subject, Text string
}

// Job is a job as far as notices need it.
type Job struct {
	UID        types.UID
	User, Name string
	// Notify are the changes of state that the job file selects.
	Notify []jobv1.NotifyState
	// State is one of the states of package job/api, in lower case. Retried is the time of the latest retry.
	State                       jobv1.NotifyState
	Started, Completed, Retried time.Time
	Retries                     int32
	// Why explains a failure or a retry, Stopped says why someone else than the owner has stopped it.
	Why, Stopped string
}

// World has the facts from which notices are made.
type World struct {
	Actions []*v1.Action
	Jobs    []Job
	// Address returns the address of a person, or an empty text.
	Address func(name string) string
	// KeepTag returns a tag by which a policy exempts a job, or an empty text.
	KeepTag func(policy string) string
}

// Notices returns all notices about the world, sent ones as well.
func (c *Config) Notices(w *World) (out []Notice) {
	stopped := map[types.UID]bool{}
	for _, a := range w.Actions {
		if a.Spec.DryRun {
			continue
		}
		if a.Spec.Job != nil && a.Begun() {
			stopped[a.Spec.Job.UID] = true
		}
		if e, ok := c.event(a, w); ok {
			for _, to := range c.receivers(a, w) {
				n := e
				n.To = to
				out = append(out, n)
			}
		}
	}
	if c.SMTP.Host == "" {
		return out
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		n, ok := c.change(j)
		if !ok || j.State == jobv1.NotifyStopped && stopped[j.UID] {
			continue // the Action's notice says more
		}
		n.To = Receiver{Person: j.User, Address: w.Address(j.User)}
		out = append(out, n)
	}
	return out
}

// receivers are those of an Action: the owner of a job, or the administrators, and the webhooks.
func (c *Config) receivers(a *v1.Action, w *World) (out []Receiver) {
	subject := SubjectMachines
	if a.Spec.Job != nil {
		subject = SubjectJobs
	}
	if c.SMTP.Host != "" {
		if a.Spec.Job != nil {
			if owner, _ := owner(a.Spec.Job); owner != "" {
				out = append(out, Receiver{Person: owner, Address: w.Address(owner)})
			}
		} else {
			for _, address := range c.Administrators {
				out = append(out, Receiver{Address: address})
			}
		}
	}
	for i := range c.Webhooks {
		if c.Webhooks[i].wants(subject) {
			out = append(out, Receiver{Webhook: c.Webhooks[i].Name})
		}
	}
	return out
}

// event is the notice of an Action now, without its receiver. A plan that is over has no notice.
func (c *Config) event(a *v1.Action, w *World) (n Notice, ok bool) {
	s := &a.Status
	id := "action/" + string(a.UID) + "/"
	switch {
	case s.Phase == v1.PhaseNoticed && s.NoticeTime != nil && s.ActTime != nil:
		n = c.planned(a, w)
		n.ID, n.At, n.Urgent = id+"planned", s.NoticeTime.Time, true
	case a.Begun() && a.Spec.Job != nil:
		n = c.stopped(a)
		n.ID, n.At = id+"stopped", s.StartTime.Time
	case a.Spec.Job != nil && s.Phase.Final() && s.Phase != v1.PhaseSucceeded && s.EndTime != nil && s.NoticeTime != nil:
		n = c.kept(a)
		n.ID, n.After, n.At = id+"result", id+"planned", s.EndTime.Time
	case a.Spec.Machine != nil && s.Phase.Final() && s.EndTime != nil && (a.Begun() || s.NoticeTime != nil || s.Phase == v1.PhaseRefused):
		n = c.result(a)
		n.ID, n.At = id+"result", s.EndTime.Time
	default:
		return n, false
	}
	return n, true
}

// change returns the notice of a job's latest change of state, if the job file selects it.
func (c *Config) change(j *Job) (Notice, bool) {
	wants := func(s jobv1.NotifyState) bool { return slices.Contains(j.Notify, s) }
	id := "job/" + string(j.UID) + "/"
	var n Notice
	switch ended := !j.Completed.IsZero(); {
	case ended && wants(j.State):
		n = c.ended(j)
		n.ID, n.At = id+string(j.State), j.Completed
	case ended:
		return n, false
	case j.Retries > 0 && !j.Retried.IsZero() && wants(jobv1.NotifyRetried):
		n = c.retried(j)
		n.ID, n.At = id+"retried-"+strconv.Itoa(int(j.Retries)), j.Retried
	case j.State == jobv1.NotifyRunning && !j.Started.IsZero() && wants(jobv1.NotifyRunning):
		n = c.running(j)
		n.ID, n.At = id+"running", j.Started
	default:
		return n, false
	}
	return n, true
}
