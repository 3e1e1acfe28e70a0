package notify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// The owner gets mails only about the changes of state that the job file selects.
func TestChangesOfState(t *testing.T) {
	all := jobv1.NotifyStates()
	for name, c := range map[string]struct {
		job  Job
		want string
		text string
	}{
		"runs":           {Job{Selects: true, Notify: all, State: "running", Started: start.Add(time.Minute)}, "job ann/train has started", "08:01"},
		"runs, unasked":  {Job{Selects: true, Notify: []jobv1.NotifyState{"failed"}, State: "running", Started: start.Add(time.Minute)}, "", ""},
		"waits":          {Job{Selects: true, Notify: all, State: "waiting"}, "", ""},
		"preempted":      {Job{Selects: true, Notify: all, State: "waiting", Retries: 1, Retried: start.Add(time.Minute), Preempted: true}, "job ann/train was preempted", "a job with a guarantee"},
		"succeeded":      {Job{Selects: true, Notify: all, State: "succeeded", Started: start, Completed: start.Add(time.Minute)}, "job ann/train succeeded", "selects it"},
		"failed":         {Job{Selects: true, Notify: all, State: "failed", Completed: start.Add(time.Minute), Why: "out of\nmemory"}, "job ann/train failed", "Reason: out of memory\n"},
		"failed unasked": {Job{Selects: true, Notify: []jobv1.NotifyState{"succeeded", "running"}, State: "failed", Started: start, Completed: start.Add(time.Minute)}, "", ""},
		"stopped":        {Job{Selects: true, Notify: all, State: "stopped", Completed: start.Add(time.Minute), Stopped: "maintenance"}, "job ann/train was stopped", "Reason: maintenance"},
		"retried":        {Job{Selects: true, Notify: all, State: "running", Started: start, Retries: 2, Retried: start.Add(time.Minute), Why: "x"}, "job ann/train is retried", "This is retry 2."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.now = s.now.Add(2 * time.Minute)
			c.job.UID, c.job.User, c.job.Name = "j", "ann", "train"
			s.world.Jobs = []Job{c.job}
			r := s.replica()
			r.round()
			r.round()
			if c.want == "" {
				require.Empty(t, s.sent)
				return
			}
			require.Equal(t, []string{"ann@example.org: " + c.want}, s.sent)
			require.Contains(t, s.last.Text, c.text)
		})
	}
}

// If an alert policy has stopped a job, the owner gets only one notice, which names the policy.
func TestAStoppedJobIsToldOnce(t *testing.T) {
	s := newScene(t)
	a := s.job(1, "ann")
	s.end(a, v1.PhaseSucceeded, "", true)
	s.world.Jobs = []Job{{UID: a.Spec.Job.UID, User: "ann", Name: "train1", Selects: true, Notify: jobv1.NotifyStates(), State: "stopped", Completed: s.now, Stopped: "its GPUs idle (policy idle)"}}
	s.replica().round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 was stopped"}, s.sent)
}

// A job finishes when a policy is about to stop it. No notice claims that the policy has stopped the job.
func TestAJobThatFinishedByItselfWasntStopped(t *testing.T) {
	const was = "ann@example.org: job ann/train1 was stopped"
	for name, c := range map[string]struct {
		phase v1.Phase
		job   Job
		want  []string
	}{
		"it still runs":             {v1.PhaseActing, Job{State: "running"}, nil},
		"it is being stopped":       {v1.PhaseActing, Job{State: "running", Stopped: "its GPUs idle (policy idle)"}, []string{was}},
		"it finished before":        {v1.PhaseSucceeded, Job{State: "succeeded", Completed: start.Add(time.Second)}, nil},
		"it finished just before":   {v1.PhaseSucceeded, Job{State: "failed", Completed: start.Add(time.Second), Stopped: "its GPUs idle (policy idle)"}, nil},
		"its owner stopped it":      {v1.PhaseSucceeded, Job{State: "stopped", Completed: start.Add(time.Second)}, nil},
		"the policy has stopped it": {v1.PhaseSucceeded, Job{State: "stopped", Completed: start.Add(time.Second), Stopped: "its GPUs idle (policy idle)"}, []string{was}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			a := s.job(1, "ann")
			s.end(a, c.phase, "", true)
			c.job.UID, c.job.User, c.job.Name, c.job.Selects = a.Spec.Job.UID, "ann", "train1", true
			s.world.Jobs = []Job{c.job}
			s.replica().round()
			require.Equal(t, c.want, s.sent)
		})
	}
}

// A person's choices select notices, unless the job file has its own selection.
func TestChoices(t *testing.T) {
	done := Job{UID: "j", User: "ann", Name: "train", State: "succeeded", Started: start, Completed: start.Add(time.Minute)}
	selected := done
	selected.Selects, selected.Notify = true, []jobv1.NotifyState{jobv1.NotifyFailed}
	again := Job{UID: "j", User: "ann", Name: "train", State: "waiting", Retries: 1, Retried: start.Add(time.Minute), Preempted: true}
	at := metav1.NewTime(start.Add(90 * time.Second))
	for name, c := range map[string]struct {
		job    Job
		chosen *peoplev1.Notifications
		config Config
		want   []string
	}{
		"nothing is chosen":            {job: done},
		"finished":                     {job: done, chosen: &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFinished}}, want: []string{"ann@example.org: job ann/train succeeded"}},
		"another kind":                 {job: done, chosen: &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFailed}}},
		"chosen later":                 {job: done, chosen: &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFinished}, From: map[string]metav1.Time{"finished": at}}},
		"the job file selects another": {job: selected, chosen: &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFinished}}},
		"required":                     {job: selected, chosen: &peoplev1.Notifications{NoMail: true}, config: Config{Required: []peoplev1.NoticeEvent{peoplev1.NoticeFinished}}, want: []string{"ann@example.org: job ann/train succeeded"}},
		"preempted":                    {job: again, chosen: &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticePreempted}}, want: []string{"ann@example.org: job ann/train was preempted"}},
		"retried means preempted, too": {job: again, chosen: &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeRetried}}, want: []string{"ann@example.org: job ann/train was preempted"}},
		"a webhook": {job: done, chosen: &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFinished}, NoMail: true, Webhook: "slack"}, config: Config{PersonalWebhooks: true},
			want: []string{"~ann: job ann/train succeeded"}},
		"a webhook that the site doesn't permit": {job: done, chosen: &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFinished}, NoMail: true, Webhook: "slack"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.config.Required, s.config.PersonalWebhooks = c.config.Required, c.config.PersonalWebhooks
			s.now = s.now.Add(2 * time.Minute)
			s.chosen["ann"] = c.chosen
			s.world.Jobs = []Job{c.job}
			s.replica().round()
			s.replica().round()
			require.Equal(t, c.want, s.sent)
		})
	}
}

// Required notices are sent by mail even to people who have turned mail off, regardless of the job file.
func TestRequiredNoticesAndJobFiles(t *testing.T) {
	done := Job{UID: "j", User: "ann", Name: "train", State: "failed", Started: start, Completed: start.Add(time.Minute)}
	again := Job{UID: "j", User: "ann", Name: "train", State: "waiting", Retries: 1, Retried: start.Add(time.Minute), Preempted: true}
	for name, c := range map[string]struct {
		job      Job
		selected []jobv1.NotifyState // nil: the job file has no selection
		required peoplev1.NoticeEvent
		want     string
	}{
		"no selection":                  {done, nil, peoplev1.NoticeFailed, "job ann/train failed"},
		"selected":                      {done, []jobv1.NotifyState{jobv1.NotifyFailed}, peoplev1.NoticeFailed, "job ann/train failed"},
		"another is selected":           {done, []jobv1.NotifyState{jobv1.NotifyRetried}, peoplev1.NoticeFailed, "job ann/train failed"},
		"selected, another is required": {done, []jobv1.NotifyState{jobv1.NotifyFailed}, peoplev1.NoticeStopped, ""},
		"preempted":                     {again, []jobv1.NotifyState{jobv1.NotifyRetried}, peoplev1.NoticePreempted, "job ann/train was preempted"},
		"retried means preempted, and is selected": {again, []jobv1.NotifyState{jobv1.NotifyRetried}, peoplev1.NoticeRetried, "job ann/train was preempted"},
		"retried means preempted, and isn't":       {again, []jobv1.NotifyState{jobv1.NotifyFailed}, peoplev1.NoticeRetried, "job ann/train was preempted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.config.Required = []peoplev1.NoticeEvent{c.required}
			s.chosen["ann"] = &peoplev1.Notifications{NoMail: true}
			c.job.Selects, c.job.Notify = c.selected != nil, c.selected
			s.now = s.now.Add(2 * time.Minute)
			s.world.Jobs = []Job{c.job}
			s.replica().round()
			if c.want == "" {
				require.Empty(t, s.sent)
				return
			}
			require.Equal(t, []string{"ann@example.org: " + c.want}, s.sent)
		})
	}
}

// The job file selects the notice about a stop, and the owner doesn't get the notice about the policy. The owner then gets the selected notice.
func TestAStoppedJobWhoseFileSelectsTheNotice(t *testing.T) {
	s := newScene(t)
	s.chosen["ann"] = &peoplev1.Notifications{}
	a := s.job(1, "ann")
	s.end(a, v1.PhaseSucceeded, "", true)
	s.world.Jobs = []Job{{UID: a.Spec.Job.UID, User: "ann", Name: "train1", Selects: true, Notify: jobv1.NotifyStates(), State: "stopped", Completed: s.now, Stopped: "idle"}}
	s.replica().round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 was stopped"}, s.sent)
	require.Contains(t, s.last.Text, "Reason: idle")
}

// The owner gets one notice when a job has waited longer than the owner has chosen.
func TestAJobThatWaits(t *testing.T) {
	s := newScene(t)
	s.chosen["ann"] = &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeWaiting}, WaitMinutes: 120}
	s.world.Jobs = []Job{{UID: "j", User: "ann", Name: "train", State: "waiting", Waits: start, Why: "8 GPUs in one piece are not free"}, {UID: "k", User: "bob", Name: "train", State: "waiting", Waits: start}}
	r := s.replica()
	s.now = start.Add(119 * time.Minute)
	r.round()
	require.Empty(t, s.sent)
	s.now = start.Add(2 * time.Hour)
	r.round()
	r.round()
	require.Equal(t, []string{"ann@example.org: job ann/train has waited for 2 hours"}, s.sent)
	require.Contains(t, s.last.Text, "Reason: 8 GPUs in one piece are not free\n")
	require.Contains(t, s.last.Text, "paictl job why train")
	require.Contains(t, s.last.Text, "paictl notify show")
}

// Required notices are sent to a person who has turned off all notices. Other notices are not.
func TestRequiredNotices(t *testing.T) {
	for _, required := range []bool{true, false} {
		s := newScene(t)
		s.chosen["ann"] = &peoplev1.Notifications{NoMail: true}
		if required {
			s.config.Required = []peoplev1.NoticeEvent{peoplev1.NoticeStopping}
		}
		s.job(1, "ann")
		s.replica().round()
		if required {
			require.Len(t, s.sent, 1)
		} else {
			require.Empty(t, s.sent)
		}
	}
}

// A test message is sent once to each channel of a person, and the record contains the results.
func TestATestMessage(t *testing.T) {
	s := newScene(t)
	s.config.PersonalWebhooks = true
	at := metav1.NewTime(s.now)
	s.chosen["ann"] = &peoplev1.Notifications{Webhook: "slack", Test: &at}
	s.world.TestRequests = []Person{s.world.Person("ann")}
	l, err := ParseLedger(s.stored)
	require.NoError(t, err)
	mail, own := l.TestOf("ann", at.Time)
	require.Equal(t, []TestResult{TestWaiting, TestWaiting}, []TestResult{mail, own})
	r := s.replica()
	r.round()
	r.round()
	require.ElementsMatch(t, []string{"ann@example.org: test message", "~ann: test message"}, s.sent)
	l, err = ParseLedger(s.stored)
	require.NoError(t, err)
	mail, own = l.TestOf("ann", at.Time)
	require.Equal(t, []TestResult{TestSent, TestSent}, []TestResult{mail, own})
	mail, _ = l.TestOf("ann", at.Add(time.Hour))
	require.Equal(t, TestWaiting, mail)
}

// People's own webhooks that never respond take only a limited part of a round, and share it fairly.
func TestOwnWebhooksTakeTurns(t *testing.T) {
	s := newScene(t)
	s.config.PersonalWebhooks = true
	for _, name := range []string{"ann", "bob", "eve"} {
		s.chosen[name] = &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFinished}, NoMail: true, Webhook: "generic"}
		s.world.Jobs = append(s.world.Jobs, Job{UID: "j", User: name, Name: "train", State: "succeeded", Started: start, Completed: s.now})
	}
	s.killed = func() { s.now = s.now.Add(15 * time.Second) }
	r := s.replica()
	r.round()
	require.Len(t, s.sent, 2)
	r.round()
	require.Equal(t, []string{"~ann: job ann/train succeeded", "~bob: job bob/train succeeded", "~eve: job eve/train succeeded"}, s.sent)
}

// The notice about the end of a plan is sent even if the grace period is longer than the record keeps other notices.
func TestAPlanWithALongGrace(t *testing.T) {
	s := newScene(t)
	a := s.job(1, "ann")
	act := metav1.NewTime(s.now.Add(7 * 24 * time.Hour))
	a.Status.ActTime = &act
	r := s.replica()
	r.round()
	require.Len(t, s.sent, 1)
	for range 6 {
		s.now = s.now.Add(24 * time.Hour)
		r.round()
	}
	s.end(a, v1.PhaseCanceled, "canceled: the alert has ended", false)
	s.replica().round()
	require.Len(t, s.sent, 2)
	require.Equal(t, "ann@example.org: job ann/train1 won't be stopped", s.sent[1])
}
