package notify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// The owner of a job that a policy requeues gets the same notices, and one more if the policy no longer does so.
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

// The job may finish between the decision and the request.
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
