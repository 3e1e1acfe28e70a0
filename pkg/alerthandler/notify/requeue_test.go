package notify

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// The owner of a job that a policy requeues gets the same notices as for a stop. The owner gets another notice if the requeue is canceled.
func TestTheOwnerOfARequeuedJob(t *testing.T) {
	s := newScene(t)
	a := s.job(1, "ann")
	a.Spec.Do = v1.OperationRequeueJob
	s.replica().round()
	require.Contains(t, s.last.Text, "All of its tasks are stopped, and run again when the scheduler has placed them.")
	s.now = s.now.Add(4 * time.Hour)
	s.end(a, v1.PhaseSucceeded, "", true)
	all := &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeStopping, peoplev1.NoticeRetried}}
	s.chosen["ann"] = all
	s.world.Jobs = []Job{{UID: a.Spec.Job.UID, User: "ann", Name: "train1", State: "waiting", Retries: 1, Retried: s.now, Requeued: a.Name, Requests: []string{a.Name}}}
	s.replica().round()
	stays := s.job(2, "ann")
	stays.Spec.Do, stays.Status.NoticeTime, stays.Status.ActTime = v1.OperationRequeueJob, nil, nil
	s.end(stays, v1.PhaseRefused, "ann/train2: it isn't requeued: policies have done so 3 times within a day", false)
	s.replica().round()
	require.Contains(t, s.last.Text, "3 times within a day")
	s.world.Jobs[0].Retries, s.world.Jobs[0].Requeued = 2, ""
	s.replica().round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 will be requeued at 2026-11-30 12:00 UTC", "ann@example.org: job ann/train1 was requeued",
		"ann@example.org: job ann/train2 won't be requeued", "ann@example.org: job ann/train1 is retried"}, s.sent)
}

// A job may finish between the decision to requeue it and the request.
func TestAJobThatEndedBeforeItsRequeueWasNotRequeued(t *testing.T) {
	s := newScene(t)
	a := s.job(1, "ann")
	a.Spec.Do = v1.OperationRequeueJob
	s.end(a, v1.PhaseSucceeded, "ann/train1 has ended", true)
	s.world.Jobs = []Job{{UID: a.Spec.Job.UID, User: "ann", Name: "train1", State: "running"}}
	s.replica().round()
	require.Empty(t, s.sent)
	s.world.Jobs[0].Requests = []string{a.Name}
	s.replica().round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 was requeued"}, s.sent)
}

// eight returns eight Actions that requeue a job, one for each of its eight GPUs.
func (s *scene) eight() (out []*v1.Action) {
	for i := range 8 {
		a := s.job(i, "ann")
		a.Spec.Do, a.Spec.Reason = v1.OperationRequeueJob, fmt.Sprintf("GPU %d of node3 is broken", i)
		a.Spec.Job = &v1.Job{Object: "x", UID: "j1", Name: "ann/train1"}
		if i > 0 {
			a.Status = v1.ActionStatus{Phase: v1.PhasePending}
		}
		out = append(out, a)
	}
	return out
}

// All eight GPUs of a job break. The owner gets one notice before the requeue, and one notice after it. Both notices list all GPUs.
func TestOneNoticeNamesAllBrokenGPUsOfAJob(t *testing.T) {
	s := newScene(t)
	all := s.eight()
	reasons := "Reasons:"
	for i := range 8 {
		reasons += fmt.Sprintf("\n- GPU %d of node3 is broken", i)
	}
	s.replica().round()
	require.Contains(t, s.last.Text, reasons+"\nRequested by: the policy idle")
	s.now = s.now.Add(4 * time.Hour)
	s.world.Jobs = []Job{{UID: "j1", User: "ann", Name: "train1", State: "running", Requests: []string{all[0].Name}}}
	for i, a := range all {
		s.end(a, v1.PhaseSucceeded, "", i == 0)
	}
	s.replica().round()
	require.Contains(t, s.last.Text, reasons+"\nRequested by: the policy idle")
	require.Equal(t, []string{"ann@example.org: job ann/train1 will be requeued at 2026-11-30 12:00 UTC", "ann@example.org: job ann/train1 was requeued"}, s.sent)
}

// The owner of a job that policies no longer requeue gets one notice about all GPUs that break within an hour.
func TestOneNoticeOfAJobThatStays(t *testing.T) {
	s := newScene(t)
	all := s.eight()
	const stays = "ann@example.org: job ann/train1 won't be requeued"
	for i, a := range all {
		a.Status.NoticeTime, a.Status.ActTime = nil, nil
		if i == 7 {
			s.now = s.now.Add(time.Hour)
		}
		s.end(a, v1.PhaseRefused, "3 times within a day", false)
		s.replica().round()
		if i == 0 {
			require.Contains(t, s.last.Text, "Reason: GPU 0 of node3 is broken\n")
		}
	}
	require.Equal(t, []string{stays, stays}, s.sent)
	require.Contains(t, s.last.Text, "Reason: GPU 7 of node3 is broken\n")
}

// If a person's request is refused, only that person gets a notice. An owner who got a notice about the plan also gets the next notice.
func TestARefusedRequestToRequeueAJob(t *testing.T) {
	for _, c := range []struct {
		by      v1.RequesterKind
		phase   v1.Phase
		noticed bool
		want    []string
	}{
		{v1.ByPerson, v1.PhaseRefused, false, []string{"root1@example.org: job ann/train1 won't be requeued"}},
		{v1.ByPerson, v1.PhaseFailed, false, []string{"root1@example.org: job ann/train1 won't be requeued"}},
		{v1.ByOperator, v1.PhaseRefused, false, nil},
		{v1.ByPolicy, v1.PhaseFailed, false, []string{"ann@example.org: job ann/train1 won't be requeued", ": job ann/train1 won't be requeued"}},
		{v1.ByPerson, v1.PhaseFailed, true, []string{"ann@example.org: job ann/train1 will be requeued at 2026-11-30 12:00 UTC", ": job ann/train1 will be requeued at 2026-11-30 12:00 UTC",
			"ann@example.org: job ann/train1 won't be requeued", ": job ann/train1 won't be requeued"}},
	} {
		s := newScene(t)
		s.config.Webhooks = []Webhook{{Name: "chat"}}
		a := s.job(1, "ann")
		a.Spec.Do, a.Spec.By = v1.OperationRequeueJob, v1.Requester{Kind: c.by, Name: "root1"}
		s.world.Jobs = []Job{{UID: a.Spec.Job.UID, User: "ann", Name: "train1", State: "running"}}
		if c.noticed {
			s.replica().round()
		} else {
			a.Status.NoticeTime, a.Status.ActTime = nil, nil
		}
		s.end(a, c.phase, "it couldn't requeue ann/train1 within 10m0s: forbidden", c.phase == v1.PhaseFailed)
		s.replica().round()
		require.ElementsMatch(t, c.want, s.sent, "%s %s", c.by, c.phase)
	}
}

// An Action to stop a job fails, so the job isn't stopped. The owner got a notice about the planned stop. The owner then gets a notice about the
// failure, and later a notice about another stop.
func TestAStopThatFailedStoppedNothing(t *testing.T) {
	s := newScene(t)
	a := s.job(1, "ann")
	s.replica().round()
	s.end(a, v1.PhaseFailed, "it couldn't stop ann/train1 within 10m0s: forbidden", true)
	s.world.Jobs = []Job{{UID: a.Spec.Job.UID, User: "ann", Name: "train1", State: "running"}}
	s.replica().round()
	s.world.Jobs[0].State, s.world.Jobs[0].Completed, s.world.Jobs[0].Selects, s.world.Jobs[0].Notify = "stopped", s.now, true, jobv1.NotifyStates()
	s.replica().round()
	require.Equal(t, []string{"ann@example.org: job ann/train1 will be stopped at 2026-11-30 12:00 UTC", "ann@example.org: job ann/train1 won't be stopped", "ann@example.org: job ann/train1 was stopped"}, s.sent)
}
