package notify

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
)

// ended adds n jobs of a person that have just succeeded. Their job files select notices.
func (s *scene) ended(user string, n int) {
	for i := range n {
		s.world.Jobs = append(s.world.Jobs, Job{UID: types.UID(fmt.Sprintf("%s-%d-%d", user, s.now.Unix(), i)), User: user, Name: fmt.Sprintf("x%d", i), Selects: true, Notify: jobv1.NotifyStates(),
			State: jobv1.NotifySucceeded, Started: s.now, Completed: s.now})
	}
}

// One person's notices fill the record. Other receivers still get all of their notices. This also holds if that person has no address, so that the
// notices are finished at once.
func TestAFloodToOnePersonCostsOthersNothing(t *testing.T) {
	for _, name := range []string{"nobody", "bob"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			r := s.replica()
			s.down = errors.New("away")
			s.job(1, "ann")
			r.round()
			s.now = s.now.Add(time.Minute)
			s.ended(name, mostEntries+1)
			for i := range s.world.Jobs {
				if name == "bob" { // his have been sent
					n := Notice{ID: "job/" + string(s.world.Jobs[i].UID) + "/succeeded", To: Receiver{Person: name}, At: s.now}
					r.n.ledger.finish(&n, ResultSent, s.now)
				}
			}
			r.round()
			s.down = nil
			s.now = s.now.Add(20 * time.Minute)
			r.round()
			require.Contains(t, fmt.Sprint(s.sent), "ann@example.org: job ann/train1 will be stopped at")
			require.Less(t, len(s.stored), 600<<10)
			sent := len(s.sent)
			s.replica().round()
			require.Len(t, s.sent, sent, "none is sent twice")
			l, err := ParseLedger(s.stored)
			require.NoError(t, err)
			require.NotEmpty(t, l.Of)
			require.Less(t, l.Since, start.Unix()+1, "the beginning of others' notices hasn't moved")
		})
	}
}

// A waiting notice counts as lost if its receiver gets too many other notices.
func TestANoticeThatTheRecordForgetsIsCounted(t *testing.T) {
	s := newScene(t)
	r := s.replica()
	s.down = errors.New("away")
	s.job(1, "ann")
	r.round()
	s.now = s.now.Add(time.Minute)
	for i := range mostEntries + 1 {
		n := Notice{ID: fmt.Sprint(i), To: Receiver{Person: "ann"}, At: s.now}
		r.n.ledger.finish(&n, ResultSent, s.now)
	}
	r.round()
	r.round()
	require.Equal(t, map[string]int{"mail lost": 1}, s.counts)
}

// The shares of all receivers together fit into the record.
func TestShares(t *testing.T) {
	lists := func(sizes ...int) (out [][]string) {
		for _, n := range sizes {
			out = append(out, make([]string, n))
		}
		return out
	}
	require.Equal(t, 90, share(lists(100), 90))
	require.Equal(t, 85, share(lists(200, 5), 90))
	require.Equal(t, 40, share(lists(50, 10, 60), 90))
	require.Equal(t, 0, share(lists(1, 1, 1), 2))
	require.GreaterOrEqual(t, share(lists(3, 2), 90), 3)
}

// The notice that announces a stop is sent before the stop. Beyond the limit, such notices are sent at most once a minute.
func TestThePlanComesBeforeTheStop(t *testing.T) {
	s := newScene(t)
	r := s.replica()
	s.ended("ann", s.config.PerHour)
	for range s.config.PerHour {
		r.round()
	}
	require.Len(t, s.sent, s.config.PerHour)
	s.now = s.now.Add(time.Second)
	s.ended("ann", 1)
	soon, late := metav1.NewTime(s.now.Add(30*time.Minute)), s.job(11, "ann") // late can wait for the next hour
	s.job(10, "ann").Status.ActTime = &soon
	wait := r.round()
	require.Len(t, s.sent, s.config.PerHour, "the last message is less than a minute old")
	require.LessOrEqual(t, wait, time.Minute)
	s.now = s.now.Add(wait)
	r.round()
	r.round()
	require.Equal(t, []string{"ann@example.org: job ann/train10 will be stopped at " + at(soon.Time)}, s.sent[s.config.PerHour:])
	s.now = s.now.Add(time.Hour)
	r.round()
	require.ElementsMatch(t, []string{"ann@example.org: job ann/train11 will be stopped at " + at(late.Status.ActTime.Time), "ann@example.org: job ann/x0 succeeded"}, s.sent[s.config.PerHour+1:])
}

// A choice of a kind of notice, of mail or of a webhook applies only to later events. A new choice doesn't discard waiting notices.
func TestChoicesCountFromThenOn(t *testing.T) {
	s := newScene(t)
	s.config.PersonalWebhooks = true
	s.chosen["ann"] = &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFailed}}
	r := s.replica()
	s.down = errors.New("away")
	s.world.Jobs = []Job{{UID: "j", User: "ann", Name: "train", State: "failed", Started: s.now, Completed: s.now}, {UID: "k", User: "ann", Name: "runs", State: "running", Started: s.now}}
	r.round()
	s.now = s.now.Add(10 * time.Minute)
	now := metav1.NewTime(s.now)
	s.chosen["ann"] = &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFailed, peoplev1.NoticeStarted}, Webhook: "slack",
		From: map[string]metav1.Time{"started": now, peoplev1.FromWebhook: now}}
	s.down = nil
	s.now = s.now.Add(20 * time.Minute)
	r.round()
	require.Equal(t, []string{"ann@example.org: job ann/train failed"}, s.sent)
	s.chosen["bob"] = &peoplev1.Notifications{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFailed}, From: map[string]metav1.Time{peoplev1.FromMail: metav1.NewTime(s.now)}}
	s.world.Jobs = []Job{{UID: "l", User: "bob", Name: "train", State: "failed", Started: start, Completed: s.now.Add(-time.Minute)}, {UID: "m", User: "bob", Name: "later", State: "failed", Started: start, Completed: s.now}}
	r.round()
	require.Equal(t, []string{"bob@example.org: job bob/later failed"}, s.sent[1:])
}
