package notify

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// Job holds the data about a job that notices need.
type Job struct {
	UID        types.UID
	User, Name string
	// Selects reports whether the job file selects the states for which notices are sent. Notify then holds these states, which override the owner's
	// choices.
	Selects bool
	Notify  []jobv1.NotifyState
	// State is one of the states in package job/api, in lower case. Retried is the time of the latest retry.
	State                       jobv1.NotifyState
	Started, Completed, Retried time.Time
	Retries                     int32
	// Preempted reports whether the previous attempt was preempted.
	Preempted bool
	Requeued  string
	Requests  []string
	// Waits is the time at which the job began to wait for its start. It is zero if the job isn't waiting.
	Waits time.Time
	// Why explains the state. Stopped is the reason if another person or a policy has stopped the job.
	Why, Stopped string
}

// changeOf is a notice about a job without its receiver.
type changeOf struct {
	kind peoplev1.NoticeEvent
	// state is the name of the event in the job protocol. It is empty if the protocol doesn't define a name.
	state jobv1.NotifyState
	id    string
	at    time.Time
	text  func() Notice
}

// changes returns the latest change of a job's state if that change has a notice.
func (c *Config) changes(j *Job) (out []changeOf) {
	kinds := map[jobv1.NotifyState]peoplev1.NoticeEvent{
		jobv1.NotifySucceeded: peoplev1.NoticeFinished, jobv1.NotifyFailed: peoplev1.NoticeFailed, jobv1.NotifyStopped: peoplev1.NoticeStopped,
	}
	if !j.Completed.IsZero() {
		if kind, known := kinds[j.State]; known {
			out = append(out, changeOf{kind: kind, state: j.State, id: string(j.State), at: j.Completed, text: func() Notice { return c.ended(j) }})
		}
		return out
	}
	switch n := strconv.Itoa(int(j.Retries)); {
	case j.Retries > 0 && !j.Retried.IsZero() && j.Preempted:
		out = append(out, changeOf{kind: peoplev1.NoticePreempted, state: jobv1.NotifyRetried, id: "retried-" + n, at: j.Retried, text: func() Notice { return c.preempted(j) }})
	case j.Retries > 0 && !j.Retried.IsZero():
		out = append(out, changeOf{kind: peoplev1.NoticeRetried, state: jobv1.NotifyRetried, id: "retried-" + n, at: j.Retried, text: func() Notice { return c.retried(j) }})
	case j.State == jobv1.NotifyRunning && !j.Started.IsZero():
		out = append(out, changeOf{kind: peoplev1.NoticeStarted, state: jobv1.NotifyRunning, id: "running", at: j.Started, text: func() Notice { return c.running(j) }})
	}
	return out
}

// ofJob returns the notices about a job to its owner. It skips jobs in told, because the notices about Actions contain more details.
func (c *Config) ofJob(j *Job, w *World, told *told) (out []Notice) {
	p := w.Person(j.User)
	id := "job/" + string(j.UID) + "/"
	add := func(n Notice, id string, at time.Time, to []Receiver) {
		for _, r := range to {
			one := n
			one.ID, one.At, one.To = id, at, r
			out = append(out, one)
		}
	}
	for _, e := range c.changes(j) {
		if e.kind == peoplev1.NoticeStopped && told.stopped[j.UID] || e.kind == peoplev1.NoticeRetried && told.requeued[j.Requeued] {
			continue
		}
		to, why := c.toOwner(&p, j, &e)
		if len(to) == 0 {
			continue
		}
		n := e.text()
		n.Text += "\n" + why
		add(n, id+e.id, e.at, to)
	}
	if j.Waits.IsZero() {
		return out
	}
	wait := p.choices().Wait()
	if at := j.Waits.Add(wait); !w.Now.Before(at) && w.Now.Sub(at) < tellWithin { // later, people know it
		if to := c.chosen(&p, at, peoplev1.NoticeWaiting); len(to) > 0 {
			n := c.waiting(j, wait)
			n.Text += "\n" + byProfile
			add(n, id+"waiting-"+strconv.Itoa(int(j.Retries)), at, to)
		}
	}
	return out
}

// toOwner returns the receivers of a notice about a change of state. The sentence explains why they receive the notice.
func (c *Config) toOwner(p *Person, j *Job, e *changeOf) ([]Receiver, string) {
	kinds := []peoplev1.NoticeEvent{e.kind}
	if e.kind == peoplev1.NoticePreempted { // retried includes it
		kinds = append(kinds, peoplev1.NoticeRetried)
	}
	switch required := slices.ContainsFunc(kinds, c.requires); {
	case j.Selects && slices.Contains(j.Notify, e.state):
		return c.channels(p, e.at, required), byJobFile
	case !j.Selects || required:
		return c.chosen(p, e.at, kinds...), byProfile
	case e.kind == peoplev1.NoticePreempted: // the job file has no word for it
		return c.chosen(p, e.at, e.kind), byProfile
	}
	return nil, ""
}
