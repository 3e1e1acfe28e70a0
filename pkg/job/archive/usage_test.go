package archive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// holding returns a copy of a job in which every task holds GPUs since the given second.
func holding(f *v1.Framework, gpus int32, since int) *v1.Framework {
	f = f.DeepCopy()
	for _, t := range f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
		uid := string(f.UID) + "/" + *t.AttemptStatus.PodUID
		t.AttemptStatus.PodUID = &uid
		t.AttemptStatus.GPUs = &v1.TaskGPUs{Count: gpus, Type: "H100", Since: at(since)}
	}
	return f
}

// lab is an archive with a clock that the test sets. The clock is in seconds after epoch.
type lab struct {
	archive.Store
	now int
}

func newLab(t *testing.T, p place) *lab {
	l := &lab{}
	p.Now = func() time.Time { return at(l.now).Time }
	l.Store = p.open(t)
	return l
}

// used returns the GPU time, grouped by dimensions, as lines of text.
func (l *lab) used(t *testing.T, by ...string) []string {
	t.Helper()
	u, err := l.Usage(t.Context(), api.UsageQuery{Since: epoch.AddDate(-2, 0, 0), Until: epoch.AddDate(2, 0, 0), By: by})
	require.NoError(t, err)
	lines := []string{}
	var total api.GPUTime
	for _, i := range u.Items {
		period := ""
		if i.Period != nil {
			period = i.Period.Format("01-02T15")
		}
		of := strings.Fields(fmt.Sprint(period, " ", i.VirtualCluster, " ", i.User, " ", i.Type))
		lines = append(lines, strings.Join(append(of, fmt.Sprintf("%d+%d preempted %d failed %d", i.Guaranteed, i.Opportunistic, i.Preempted, i.Failed)), " "))
		total.Add(i.GPUTime)
	}
	assert.Equal(t, total, u.Total)
	return lines
}

func TestGPUTimeIsCountedByTheHour(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		f := holding(run(job("ann", "train", 0, 2), 0, 1800), 4, 1800) // from 12:30
		l.now = 3700
		require.NoError(t, l.SaveHolds(t.Context(), f))
		assert.Equal(t, []string{"03-01T12 default 14400+0 preempted 0 failed 0", "03-01T13 default 800+0 preempted 0 failed 0"}, l.used(t, api.ByVC, api.ByHour)[:2], "while it runs")
		l.now = 9000
		require.NoError(t, l.SaveJob(t.Context(), end(f, 0, 8100, false))) // to 14:15
		want := []string{"03-01T12 14400+0 preempted 0 failed 0", "03-01T13 28800+0 preempted 0 failed 0", "03-01T14 7200+0 preempted 0 failed 0"}
		assert.Equal(t, want, l.used(t, api.ByHour))
		assert.Equal(t, []string{"03-01T00 ann H100 50400+0 preempted 0 failed 0"}, l.used(t, api.ByDay, api.ByUser, api.ByType))

		u, err := l.Usage(t.Context(), api.UsageQuery{Since: at(3600).Time, Until: at(7199).Time})
		require.NoError(t, err)
		assert.Equal(t, int64(28800), u.Total.Held(), "the times of a question are widened to whole hours")
		u, err = l.Usage(t.Context(), api.UsageQuery{User: "bob"})
		require.NoError(t, err)
		assert.Zero(t, u.Total)
	})
}

func TestATaskThatIsRetriedElsewhereInTheSameHourCountsTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		l.now = 3000
		f := holding(run(job("ann", "train", 0, 1), 0, 0), 8, 0)
		failed := end(f, 1, 600, true)
		failed.Status.State, failed.Status.AttemptStatus.CompletionStatus = v1.AttemptRunning, nil // the job continues
		task := *failed.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]
		require.NoError(t, l.SaveTaskAttempts(t.Context(), failed, []archive.TaskAttempt{{Role: "worker", Status: task}}))
		again := f.DeepCopy()
		a := &again.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus
		a.ID, a.StartTime, a.GPUs.Since, a.PodUID, a.PodNodeName = 1, at(700), at(700), ptr("another pod"), ptr("node-2")
		require.NoError(t, l.SaveJob(t.Context(), end(again, 0, 1000, false)))
		assert.Equal(t, []string{"7200+0 preempted 0 failed 4800"}, l.used(t))
	})
}

func TestAGangThatIsPreemptedHasWastedTheTimeOfAllItsTasks(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		l.now = 3000
		f := holding(run(job("ann", "train", 0, 3), 0, 0), 1, 0)
		for _, task := range f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
			task.AttemptStatus.GPUs.Opportunistic = true
		}
		f = end(f, -1003, 100, true)
		for i, task := range f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[1:] {
			c := *task.AttemptStatus.CompletionStatus.CompletionStatus
			c.Code = -220 // stopped with the first
			if i == 1 {
				c.Code, c.Type.Name = 0, v1.Succeeded // and one that had finished
			}
			task.AttemptStatus.CompletionStatus.CompletionStatus = &c
		}
		open := f.DeepCopy() // its own end is known before that of the attempt
		open.Status.AttemptStatus.CompletionStatus = nil
		require.NoError(t, l.SaveHolds(t.Context(), open))
		assert.Equal(t, []string{"0+300 preempted 100 failed 0"}, l.used(t))
		require.NoError(t, l.SaveAttempt(t.Context(), f))
		assert.Equal(t, []string{"0+300 preempted 300 failed 0"}, l.used(t))
		require.NoError(t, l.SaveHolds(t.Context(), open))
		assert.Equal(t, []string{"0+300 preempted 300 failed 0"}, l.used(t), "a replica that is late takes nothing back")
	})
}

func TestWhatAUserEndsIsNotThrownAway(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		l.now = 3000
		for n, code := range []int32{-210, -240, 137} {
			f := holding(run(job("ann", fmt.Sprint("job", n), n, 1), 0, 10), 1, 10)
			require.NoError(t, l.SaveJob(t.Context(), end(f, code, 110, false)))
		}
		assert.Equal(t, []string{"300+0 preempted 0 failed 100"}, l.used(t))
	})
}

func TestGPUTimeStaysWhenJobsAreDeletedAndTheirNamesUsedAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		l.now = 3000
		first := holding(run(job("ann", "train", 0, 1), 0, 10), 2, 10)
		require.NoError(t, l.SaveJob(t.Context(), end(first, 0, 110, false)))
		n, err := l.Delete(t.Context(), first.Name)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		second := holding(run(job("ann", "train", 200, 1), 0, 210), 2, 210)
		second.Labels[v1.LabelUser], second.Labels[v1.LabelVC] = "bob", "other" // a new job may have the Framework's name by now
		require.NoError(t, l.SaveJob(t.Context(), end(second, 0, 220, false)))
		want := []string{"default ann 200+0 preempted 0 failed 0", "other bob 20+0 preempted 0 failed 0"}
		assert.Equal(t, want, l.used(t, api.ByVC, api.ByUser))
		l.now = 30 * 86400
		_, err = l.Prune(t.Context(), at(l.now-86400).Time, nil)
		require.NoError(t, err)
		assert.Equal(t, want, l.used(t, api.ByVC, api.ByUser), "nor when they are pruned")
	})
}

func TestWhateverIsWrittenAgainCountsOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		f := holding(run(job("ann", "train", 0, 3), 0, 0), 4, 100)
		ended := end(f, 0, 7300, false)
		l.now = 5000
		for range 3 { // a controller that is killed after each of its writes, and begins again
			require.NoError(t, l.SaveHolds(t.Context(), f))
			require.NoError(t, l.Close())
			l.Store = newLabStore(t, p, l)
			l.now += 100
		}
		l.now = 8000
		require.NoError(t, l.SaveJob(t.Context(), ended))
		l.now = 8500
		require.NoError(t, l.SaveHolds(t.Context(), f), "a replica that no longer leads")
		require.Equal(t, []string{"86400+0 preempted 0 failed 0"}, l.used(t), "an end stays")
		require.NoError(t, l.SaveJob(t.Context(), ended))
		hours := l.used(t, api.ByHour)
		require.Equal(t, []string{"03-01T12 42000+0 preempted 0 failed 0", "03-01T13 43200+0 preempted 0 failed 0", "03-01T14 1200+0 preempted 0 failed 0"}, hours)

		l.now = 9 * 86400
		for range 2 {
			_, err := l.Prune(t.Context(), time.Time{}, nil)
			require.NoError(t, err)
			rest := p.content(t)
			assert.Contains(t, fmt.Sprint(rest), "gpu_hours")
			assert.NotContains(t, fmt.Sprint(rest), "gpu_holds", "they are summed up")
			assert.Equal(t, hours, l.used(t, api.ByHour))
			// The job's status still contains all tasks until the Framework is removed.
			require.NoError(t, l.SaveJob(t.Context(), ended))
			assert.Equal(t, hours, l.used(t, api.ByHour), "what was summed up isn't begun again")
		}
	})
}

func newLabStore(t *testing.T, p place, l *lab) archive.Store {
	p.Now = func() time.Time { return at(l.now).Time }
	return p.open(t)
}

func TestAJobThatRunsIsNotSummedUp(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		f := holding(run(job("ann", "train", 0, 2), 0, 0), 1, 0)
		f.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.CompletionTime = ptr(at(100)) // one ended early
		l.now = 200
		require.NoError(t, l.SaveHolds(t.Context(), f))
		l.now = 20 * 86400
		_, err := l.Prune(t.Context(), time.Time{}, nil)
		require.NoError(t, err)
		require.NoError(t, l.SaveHolds(t.Context(), f))
		assert.Equal(t, []string{fmt.Sprintf("%d+0 preempted 0 failed 0", 100+l.now)}, l.used(t))
		holds, err := l.Holds(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []api.Hold{{Pod: v1.PodName(f.Name, "worker", 1), Job: "train", User: "ann", VirtualCluster: "default", Type: "H100", GPUs: 1}}, holds)
	})
}

func TestAJobThatVanishedHeldItsGPUsUntilItWasSeenLast(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		f := holding(run(job("ann", "train", 0, 1), 0, 0), 1, 0)
		l.now = 300
		require.NoError(t, l.SaveHolds(t.Context(), f))
		l.now = 5000
		open, err := l.Unended(t.Context())
		require.NoError(t, err)
		require.Len(t, open, 1)
		require.NoError(t, l.EndRemoved(t.Context(), []string{open[0].UID}))
		assert.Equal(t, []string{"300+0 preempted 0 failed 0"}, l.used(t))
		holds, err := l.Holds(t.Context())
		require.NoError(t, err)
		assert.Empty(t, holds)
	})
}

func TestATaskOfWhichNoEndWasSeenEndsWithItsJob(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		f := holding(run(job("ann", "train", 0, 2), 0, 0), 1, 0)
		l.now = 300
		require.NoError(t, l.SaveHolds(t.Context(), f))
		ended := end(f, 0, 400, false)
		role := ended.Status.AttemptStatus.TaskRoleStatuses[0]
		role.TaskStatuses = role.TaskStatuses[:1]
		l.now = 500
		require.NoError(t, l.SaveJob(t.Context(), ended))
		assert.Equal(t, []string{"700+0 preempted 0 failed 0"}, l.used(t))
		holds, err := l.Holds(t.Context())
		require.NoError(t, err)
		assert.Empty(t, holds)
	})
}

func TestAClockThatJumpsMakesNoTimeThatWasNot(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		back := holding(run(job("ann", "back", 0, 1), 0, 1000), 1, 1000)
		l.now = 900 // set back
		require.NoError(t, l.SaveHolds(t.Context(), back))
		assert.Empty(t, l.used(t))
		l.now = 2000
		require.NoError(t, l.SaveJob(t.Context(), end(back, 0, 950, false)))
		assert.Empty(t, l.used(t), "an end before the beginning is none")

		ahead := holding(run(job("ann", "ahead", 0, 1), 0, 1000), 1, 1000)
		l.now = 400 * 86400
		require.NoError(t, l.SaveHolds(t.Context(), ahead))
		l.now = 2000 // set right
		assert.Equal(t, []string{"1000+0 preempted 0 failed 0"}, l.used(t), "not what hasn't come yet")
		require.NoError(t, l.SaveJob(t.Context(), end(ahead, 0, 2500, false)))
		l.now = 3000
		assert.Equal(t, []string{"1500+0 preempted 0 failed 0"}, l.used(t))

		zero := holding(run(job("ann", "zero", 0, 1), 0, 1000), 1, 1000)
		zero.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.GPUs.Since = at(-1000 * 86400)
		require.NoError(t, l.SaveJob(t.Context(), end(zero, 0, 2500, false)))
		l.now = 500 * 86400
		_, err := l.Prune(t.Context(), time.Time{}, nil)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(p.content(t)), 24*400+100, "no rows without end")
	})
}

func TestGPUTimeIsKeptFor400DaysAtLeast(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		l := newLab(t, p)
		for n, name := range []string{"old", "new"} {
			begin := 30 * 86400 * n
			f := holding(run(job("ann", name, begin, 1), 0, begin), 1, begin)
			l.now = begin + 200
			require.NoError(t, l.SaveJob(t.Context(), end(f, 0, begin+100, false)))
		}
		l.now = 390 * 86400
		_, err := l.Prune(t.Context(), at(l.now-7*86400).Time, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"200+0 preempted 0 failed 0"}, l.used(t), "jobs are gone after a week")
		l.now = 402 * 86400
		_, err = l.Prune(t.Context(), time.Time{}, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"200+0 preempted 0 failed 0"}, l.used(t), "an archive that is kept for good keeps GPU time for good")
		_, err = l.Prune(t.Context(), at(l.now-7*86400).Time, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"100+0 preempted 0 failed 0"}, l.used(t))
	})
}

func TestQuestionsAboutGPUTimeThatMakeNoSense(t *testing.T) {
	l := newLab(t, sqlitePlace(t))
	for want, q := range map[string]api.UsageQuery{
		`GPU hours can't be grouped by "week"`: {By: []string{"week"}},
		"several periods":                      {By: []string{"day", "hour"}},
		"nothing is between":                   {Since: at(10).Time, Until: at(5).Time},
	} {
		_, err := l.Usage(t.Context(), q)
		require.ErrorIs(t, err, archive.ErrBadQuery)
		require.ErrorContains(t, err, want)
	}
}
