package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

func TestAJobRunsToItsEnd(t *testing.T) {
	w := newWorld(t, role("worker", 2))
	w.run()
	assert.Equal(t, v1.AttemptPreparing, w.status.State)
	require.Len(t, w.pods, 2)
	w.starts("f-worker-0")
	w.run()
	assert.Equal(t, v1.AttemptRunning, w.status.State)
	assert.NotNil(t, w.status.RunTime)
	assert.Nil(t, w.status.AttemptStatus.PeersTime, "one task has no address yet")
	w.starts("f-worker-1")
	w.run()
	assert.NotNil(t, w.status.AttemptStatus.PeersTime)
	w.exits("f-worker-0", 0)
	w.run()
	assert.Equal(t, v1.TaskCounts{Total: 2, Running: 1, Succeeded: 1}, w.status.AttemptStatus.TaskRoleStatuses[0].Counts)
	w.exits("f-worker-1", 0)
	w.run()
	assert.Equal(t, v1.Completed, w.status.State)
	c := w.status.AttemptStatus.CompletionStatus
	assert.Equal(t, v1.Succeeded, c.Type.Name)
	assert.Equal(t, "SucceededTaskCount 2 has reached MinSucceededTaskCount 2 in the TaskRole", c.Trigger.Message)
	assert.Equal(t, "worker", c.Trigger.TaskRoleName)
	assert.Len(t, w.pods, 2, "ended pods stay for their logs")
	assert.LessOrEqual(t, w.writes, 8)
}

func TestOfTasksThatStartOneByOneSomeHavePodsThatWait(t *testing.T) {
	for name, c := range map[string]struct {
		gang, asks string
		pods       int
	}{
		"a gang":                     {"", "affinityGroup: {name: g, members: []}\n", 500},
		"a gang of the scheduler's":  {"false", "leafCellNumber: 1\naffinityGroup: {name: g, members: []}\n", 500},
		"one by one":                 {"false", "leafCellNumber: 1\naffinityGroup: null\n", 200},
		"one by one, without cells":  {"false", "", 200},
		"tasks that need each other": {"", "", 500},
	} {
		t.Run(name, func(t *testing.T) {
			one := role("worker", 500)
			one.FrameworkAttemptCompletionPolicy.MinFailedTaskCount = -1
			one.Task.Pod.Annotations = map[string]string{annotation.SpecKey: c.asks}
			w := newWorld(t, one)
			if c.gang != "" {
				w.f.Annotations[v1.AnnotationGang] = c.gang
			}
			w.run()
			require.Len(t, w.pods, c.pods)
			if c.pods == 500 {
				return
			}
			assert.False(t, w.last.Acts(), "it waits until one has a machine")
			w.starts("f-worker-7")
			w.starts("f-worker-199")
			w.exits("f-worker-3", exitPermanent) // evicted while it waited, for example
			w.run()
			require.Len(t, w.pods, 203)
			assert.Contains(t, w.pods, "f-worker-202")
			for range 4 {
				for name, p := range w.pods {
					if p.Spec.NodeName == "" && p.Status.Phase != corev1.PodFailed {
						w.starts(name)
					}
				}
				w.run()
			}
			assert.Equal(t, int32(499), w.status.AttemptStatus.TaskRoleStatuses[0].Counts.Running)
		})
	}
}

func TestOneFailureEndsTheAttemptAndStopsTheOthers(t *testing.T) {
	w := newWorld(t, role("worker", 3))
	w.run()
	for _, p := range []string{"f-worker-0", "f-worker-1", "f-worker-2"} {
		w.starts(p)
	}
	w.run()
	w.exits("f-worker-1", exitPermanent)
	w.run()
	assert.Equal(t, v1.AttemptDeleting, w.status.State)
	assert.Equal(t, int32(exitPermanent), w.status.AttemptStatus.CompletionStatus.Code)
	assert.Equal(t, int32(1), *w.status.AttemptStatus.CompletionStatus.Trigger.TaskIndex)
	assert.NotNil(t, w.pods["f-worker-0"].DeletionTimestamp)
	assert.Nil(t, w.pods["f-worker-1"].DeletionTimestamp, "it holds nothing; its log is still wanted")
	w.reap()
	w.run()
	assert.Equal(t, v1.Completed, w.status.State)
	assert.Equal(t, int32(-220), w.task("worker", 0).AttemptStatus.CompletionStatus.Code)
	assert.Equal(t, "The job failed: code210 (code 210) because of task worker-1, after 0 retries.", w.status.Message)
}

func TestTheEarliestTriggerDecides(t *testing.T) {
	w := newWorld(t, role("a", 1), role("b", 1))
	w.run()
	w.starts("f-a-0")
	w.starts("f-b-0")
	w.run()
	// The controller didn't run while both tasks came to their end.
	w.exits("f-b-0", 0)
	w.pass(time.Second)
	w.exits("f-a-0", exitPermanent)
	w.run()
	assert.Equal(t, v1.Succeeded, w.status.AttemptStatus.CompletionStatus.Type.Name)
	assert.Equal(t, "b", w.status.AttemptStatus.CompletionStatus.Trigger.TaskRoleName)
}

func TestAFailureWinsOverASuccessAtTheSameTime(t *testing.T) {
	w := newWorld(t, role("a", 1), role("b", 1))
	w.run()
	w.exits("f-a-0", 0)
	w.exits("f-b-0", exitPermanent)
	w.run()
	assert.Equal(t, int32(exitPermanent), w.status.AttemptStatus.CompletionStatus.Code)
}

func TestWithoutConditionsTheEndOfAllTasksIsASuccess(t *testing.T) {
	r := role("worker", 2)
	r.FrameworkAttemptCompletionPolicy = v1.CompletionPolicy{MinFailedTaskCount: -1, MinSucceededTaskCount: -1}
	w := newWorld(t, r)
	w.run()
	w.exits("f-worker-0", exitPermanent)
	w.run()
	assert.NotEqual(t, v1.Completed, w.status.State)
	w.exits("f-worker-1", exitUnknown)
	w.run()
	assert.Equal(t, v1.Completed, w.status.State)
	assert.Equal(t, int32(0), w.status.AttemptStatus.CompletionStatus.Code)
	assert.Contains(t, w.status.AttemptStatus.CompletionStatus.Trigger.Message, "CompletedTaskCount 2 has reached TotalTaskCount 2")
}

func TestRetries(t *testing.T) {
	for name, test := range map[string]struct {
		policy      v1.RetryPolicy
		code        int32
		retries     bool
		min, max    time.Duration
		accountable int32
	}{
		"a permanent failure ends the job":                        {v1.RetryPolicy{FancyRetryPolicy: true, MaxRetryCount: 5}, exitPermanent, false, 0, 0, 0},
		"a transient one is retried after a pause, not counted":   {v1.RetryPolicy{FancyRetryPolicy: true}, exitTransient, true, 5 * time.Second, 5 * time.Second, 0},
		"a conflict waits a random time":                          {v1.RetryPolicy{FancyRetryPolicy: true}, exitConflict, true, time.Minute, 15 * time.Minute, 0},
		"an unknown one is counted and retried at once":           {v1.RetryPolicy{FancyRetryPolicy: true, MaxRetryCount: 1}, exitUnknown, true, 0, 0, 1},
		"an unknown one with no retries left ends the job":        {v1.RetryPolicy{FancyRetryPolicy: true}, exitUnknown, false, 0, 0, 0},
		"without the fancy policy transient failures are counted": {v1.RetryPolicy{MaxRetryCount: 1}, exitTransient, true, 0, 0, 1},
		"without it permanent ones are retried too":               {v1.RetryPolicy{MaxRetryCount: 1}, exitPermanent, true, 0, 0, 1},
		"-1 retries every failure, with a pause":                  {v1.RetryPolicy{MaxRetryCount: -1}, exitPermanent, true, 5 * time.Second, 5 * time.Second, 1},
		"-1 doesn't retry a success":                              {v1.RetryPolicy{MaxRetryCount: -1}, 0, false, 0, 0, 0},
		"-2 retries a success":                                    {v1.RetryPolicy{MaxRetryCount: -2}, 0, true, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, role("worker", 1))
			w.f.Spec.RetryPolicy = test.policy
			w.run()
			w.starts("f-worker-0")
			w.run()
			w.exits("f-worker-0", test.code)
			w.run()
			if !test.retries {
				assert.Equal(t, v1.Completed, w.status.State)
				assert.Empty(t, w.attempts)
				return
			}
			if test.min > 0 {
				assert.Equal(t, v1.AttemptCompleted, w.status.State)
				delay := time.Duration(*w.status.RetryPolicyStatus.RetryDelaySec) * time.Second
				assert.GreaterOrEqual(t, delay, test.min)
				assert.LessOrEqual(t, delay, test.max)
				assert.Contains(t, w.status.Message, "the next starts at")
				assert.Len(t, w.pods, 1, "the log can be read meanwhile")
				assert.Equal(t, w.status.TransitionTime.Add(delay), w.last.Wake)
				w.pass(delay)
				w.run()
			}
			assert.Equal(t, int32(1), w.status.AttemptStatus.ID)
			assert.Equal(t, int32(1), w.status.RetryPolicyStatus.TotalRetriedCount)
			require.NotNil(t, w.status.PreviousAttempt, "notices say how it ended")
			assert.Zero(t, w.status.PreviousAttempt.ID)
			assert.NotEmpty(t, w.status.PreviousAttempt.Phrase)
			assert.False(t, w.status.PreviousAttempt.Preempted())
			assert.Equal(t, test.accountable, w.status.RetryPolicyStatus.AccountableRetriedCount)
			assert.Nil(t, w.status.RetryPolicyStatus.RetryDelaySec)
			assert.True(t, w.attempts[0], "the first attempt lies in the archive")
			assert.Equal(t, "1", w.pods["f-worker-0"].Annotations[v1.AnnotationFrameworkAttempt])
		})
	}
}

func TestThePauseGrowsWithEachTransientFailureUntilAnAttemptRanLong(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	var pauses []int64
	fail := func(after time.Duration) {
		w.run()
		w.starts("f-worker-0")
		w.run()
		w.pass(after)
		w.exits("f-worker-0", exitTransient)
		w.run()
		pauses = append(pauses, *w.status.RetryPolicyStatus.RetryDelaySec)
		w.pass(time.Duration(pauses[len(pauses)-1]) * time.Second)
	}
	for range 9 {
		fail(time.Second)
	}
	assert.Equal(t, []int64{5, 10, 20, 40, 80, 160, 320, 600, 600}, pauses)
	fail(time.Hour)
	assert.Equal(t, int64(5), pauses[9])
}

func TestTasksAreRetriedByTheirOwnPolicy(t *testing.T) {
	r := role("worker", 2)
	r.Task.RetryPolicy = v1.RetryPolicy{FancyRetryPolicy: true, MaxRetryCount: 1}
	w := newWorld(t, r)
	w.run()
	w.starts("f-worker-0")
	w.starts("f-worker-1")
	w.run()
	w.exits("f-worker-0", exitTransient)
	w.run()
	assert.Equal(t, "Task worker-0 failed (code200) and will be retried at 2027-01-15T08:00:05Z.", w.status.Message)
	assert.Equal(t, int32(1), w.status.AttemptStatus.TaskRoleStatuses[0].Counts.Waiting)
	w.pass(5 * time.Second)
	w.run()
	assert.Equal(t, int32(1), w.task("worker", 0).AttemptStatus.ID)
	assert.Equal(t, int32(0), w.status.AttemptStatus.ID, "the job's attempt goes on")
	assert.Len(t, w.tasks, 1, "the task's first attempt lies in the archive")
	assert.Nil(t, w.status.AttemptStatus.PeersTime, "the new pod's address has to be published")
	w.starts("f-worker-0")
	w.run()
	assert.NotNil(t, w.status.AttemptStatus.PeersTime)
	w.exits("f-worker-0", exitUnknown)
	w.run()
	w.exits("f-worker-0", exitUnknown)
	w.run()
	assert.Equal(t, int32(exitUnknown), w.status.AttemptStatus.CompletionStatus.Code, "its one counted retry is used up")
}

func TestStop(t *testing.T) {
	t.Run("ends pods with their grace period", func(t *testing.T) {
		w := newWorld(t, role("worker", 1))
		w.run()
		w.starts("f-worker-0")
		w.run()
		w.f.Spec.ExecutionType = v1.ExecutionStop
		w.run()
		assert.NotNil(t, w.pods["f-worker-0"].DeletionTimestamp)
		w.reap()
		w.run()
		assert.Equal(t, v1.Completed, w.status.State)
		assert.Equal(t, int32(-210), w.status.AttemptStatus.CompletionStatus.Code)
		assert.Equal(t, int32(-220), w.task("worker", 0).AttemptStatus.CompletionStatus.Code)
	})
	t.Run("before the start makes no pod", func(t *testing.T) {
		w := newWorld(t, role("worker", 1))
		w.f.Spec.ExecutionType = v1.ExecutionCreate
		w.run()
		assert.Contains(t, w.status.Message, "waits to be started")
		w.f.Spec.ExecutionType = v1.ExecutionStop
		w.run()
		assert.Equal(t, v1.Completed, w.status.State)
		assert.Zero(t, w.creates)
	})
	t.Run("during a retry's delay ends at once", func(t *testing.T) {
		w := newWorld(t, role("worker", 1))
		w.run()
		w.exits("f-worker-0", exitConflict)
		w.run()
		w.f.Spec.ExecutionType = v1.ExecutionStop
		w.run()
		assert.Equal(t, v1.Completed, w.status.State)
		assert.Contains(t, w.status.Message, "stopped while it waited for a retry")
	})
	t.Run("the deletion of the Framework stops it too", func(t *testing.T) {
		w := newWorld(t, role("worker", 1))
		w.run()
		w.f.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.run()
		w.reap()
		w.run()
		assert.Equal(t, v1.Completed, w.status.State)
	})
	t.Run("is final, although the job is to run again before its pods are gone", func(t *testing.T) {
		w := newWorld(t, role("worker", 1))
		w.f.Spec.RetryPolicy = v1.RetryPolicy{MaxRetryCount: -1}
		w.run()
		w.f.Spec.ExecutionType = v1.ExecutionStop
		w.run()
		w.f.Spec.ExecutionType = v1.ExecutionStart
		w.reap()
		w.run()
		assert.Equal(t, v1.Completed, w.status.State)
		assert.Zero(t, w.status.RetryPolicyStatus.TotalRetriedCount)
	})
	t.Run("a task that ended by itself keeps its outcome", func(t *testing.T) {
		w := newWorld(t, role("worker", 2))
		w.run()
		w.exits("f-worker-0", 0)
		w.f.Spec.ExecutionType = v1.ExecutionStop
		w.run()
		assert.Equal(t, int32(0), w.task("worker", 0).AttemptStatus.CompletionStatus.Code)
	})
}

func TestARestartThatIsAskedForMakesAnotherAttemptUncounted(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.run()
	w.starts("f-worker-0")
	w.run()
	w.f.Annotations[v1.AnnotationRestart] = "1"
	w.run()
	w.reap()
	w.run()
	assert.Equal(t, int32(1), w.status.AttemptStatus.ID)
	assert.Zero(t, w.status.RetryPolicyStatus.AccountableRetriedCount)
	assert.Equal(t, v1.AttemptPreparing, w.status.State)
	assert.True(t, w.attempts[0])
	w.exits("f-worker-0", exitConflict)
	w.run()
	w.f.Annotations[v1.AnnotationRestart] = "2"
	w.run()
	assert.Equal(t, int32(2), w.status.AttemptStatus.ID, "it cuts a delay short")
}

func TestAnAttemptThatThePlatformRequeuesSaysWhy(t *testing.T) {
	w := newWorld(t, role("worker", 2))
	w.run()
	w.starts("f-worker-0")
	w.starts("f-worker-1")
	w.run()
	text, err := v1.WriteRequeues(nil, v1.Requeue{Restart: "action-1", Reason: "GPU 3 of gpu-1 is broken (policy gpu)"})
	require.NoError(t, err)
	w.f.Annotations[v1.AnnotationRestart], w.f.Annotations[v1.AnnotationRequeues] = "action-1", text
	w.run()
	assert.Equal(t, "Another attempt was requested. GPU 3 of gpu-1 is broken (policy gpu)", w.status.AttemptStatus.CompletionStatus.Diagnostics)
	w.reap()
	w.run()
	assert.Equal(t, int32(1), w.status.AttemptStatus.ID)
	assert.Equal(t, "action-1", w.status.AttemptStatus.Restart)
	assert.Zero(t, w.status.RetryPolicyStatus.AccountableRetriedCount, "jobRetryCount doesn't count it")
	w.starts("f-worker-0")
	w.run()
	w.f.Annotations[v1.AnnotationRestart] = "2026-11-30T09:00:00.000Z"
	w.run()
	assert.Equal(t, "Another attempt was requested.", w.status.AttemptStatus.CompletionStatus.Diagnostics, "a person did")
}

func TestPodsThatOthersTakeAway(t *testing.T) {
	for name, test := range map[string]struct {
		take  func(w *world, p *corev1.Pod) *corev1.Pod
		code  int32
		blame bool
	}{
		"deleted": {deleting, -101, false},
		"gone":    {func(*world, *corev1.Pod) *corev1.Pod { return nil }, -101, false},
		"its node is lost": {func(w *world, p *corev1.Pod) *corev1.Pod {
			return disrupted(deleting(w, p), "DeletionByTaintManager")
		}, -1001, true},
		"evicted by a drain": {func(w *world, p *corev1.Pod) *corev1.Pod {
			return disrupted(deleting(w, p), "EvictionByEvictionAPI")
		}, -102, false},
		"ended as its machine shut down": {func(_ *world, p *corev1.Pod) *corev1.Pod {
			p.Status.Phase, p.Status.Reason, p.Status.ContainerStatuses = corev1.PodFailed, "Terminated", nil
			return disrupted(p, corev1.PodReasonTerminationByKubelet)
		}, -1007, true},
		"evicted by its kubelet, with a condition": {func(_ *world, p *corev1.Pod) *corev1.Pod {
			p.Status.Phase, p.Status.Reason, p.Status.ContainerStatuses = corev1.PodFailed, "Evicted", nil
			return disrupted(p, corev1.PodReasonTerminationByKubelet)
		}, -1000, true},
		"preempted": {func(w *world, p *corev1.Pod) *corev1.Pod {
			return disrupted(deleting(w, p), corev1.PodReasonPreemptionByScheduler)
		}, -1003, false},
		"evicted by its kubelet": {func(_ *world, p *corev1.Pod) *corev1.Pod {
			p.Status.Phase, p.Status.Reason, p.Status.ContainerStatuses = corev1.PodFailed, "Evicted", nil
			return p
		}, -1000, true},
		"it failed because it was preempted": {func(w *world, p *corev1.Pod) *corev1.Pod {
			p = disrupted(deleting(w, p), corev1.PodReasonPreemptionByScheduler)
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, FinishedAt: metav1.NewTime(w.now)}}
			return p
		}, -1003, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, role("worker", 1))
			w.run()
			w.starts("f-worker-0")
			w.run()
			if p := test.take(w, w.pods["f-worker-0"].DeepCopy()); p != nil {
				w.pods["f-worker-0"] = p
			} else {
				delete(w.pods, "f-worker-0")
			}
			w.run()
			w.reap()
			w.run()
			assert.Equal(t, v1.AttemptCompleted, w.status.State)
			assert.Equal(t, test.code, w.status.AttemptStatus.CompletionStatus.Code)
			assert.NotNil(t, w.status.RetryPolicyStatus.RetryDelaySec)
			assert.Equal(t, test.blame, len(w.status.AvoidedNodes) == 1)
		})
	}
}

func TestAPodThatVanishesAtOnceCountsByItsLastState(t *testing.T) {
	for name, tt := range map[string]struct {
		last  func(w *world, p *corev1.Pod)
		code  int32
		blame bool
	}{
		"it had succeeded": {func(_ *world, p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, 0, false},
		"its node was lost": {func(_ *world, p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			disrupted(p, "DeletionByPodGC")
		}, -1001, true},
		"it ran": {func(*world, *corev1.Pod) {}, -101, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, role("worker", 1))
			w.run()
			w.starts("f-worker-0")
			w.run()
			last := w.pods["f-worker-0"].DeepCopy()
			tt.last(w, last)
			w.seenLast[last.UID] = last
			delete(w.pods, last.Name)
			w.run()
			assert.Equal(t, tt.code, w.status.AttemptStatus.CompletionStatus.Code)
			assert.Equal(t, tt.blame, len(w.status.AvoidedNodes) == 1)
			assert.Empty(t, w.seenLast)
		})
	}
}

func deleting(w *world, p *corev1.Pod) *corev1.Pod {
	grace := int64(30)
	p.DeletionGracePeriodSeconds = &grace
	p.DeletionTimestamp = &metav1.Time{Time: w.now.Add(30 * time.Second)}
	return p
}

func disrupted(p *corev1.Pod, reason string) *corev1.Pod {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason})
	return p
}

func TestAPodThatFailedBeforeItsDeletionKeepsItsOutcome(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.run()
	w.exits("f-worker-0", exitPermanent)
	w.pass(time.Minute)
	w.pods["f-worker-0"] = deleting(w, w.pods["f-worker-0"])
	w.run()
	assert.Equal(t, int32(exitPermanent), w.status.AttemptStatus.CompletionStatus.Code)
}

func TestAPodOnADeadNodeIsDeletedByForceOnlyAfterItsTimeout(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.run()
	w.starts("f-worker-0")
	w.run()
	w.pods["f-worker-0"] = disrupted(deleting(w, w.pods["f-worker-0"].DeepCopy()), "DeletionByTaintManager")
	w.run()
	assert.Equal(t, v1.AttemptDeleting, w.task("worker", 0).State)
	assert.Equal(t, v1.AttemptRunning, w.status.State, "a task counts only when nothing of it runs")
	w.pass(599 * time.Second)
	w.run()
	assert.Len(t, w.pods, 1)
	w.pass(time.Second)
	w.run()
	assert.Empty(t, w.pods)
	assert.Equal(t, v1.AttemptCompleted, w.status.State)
	require.NotEmpty(t, w.notes)
	assert.Equal(t, "ForcedDeletion", w.notes[0].Reason)
}

func TestWithoutATimeoutAPodIsNeverDeletedByForce(t *testing.T) {
	r := role("worker", 1)
	r.Task.PodGracefulDeletionTimeoutSec = nil
	w := newWorld(t, r)
	w.run()
	w.starts("f-worker-0")
	w.run()
	w.pods["f-worker-0"] = deleting(w, w.pods["f-worker-0"].DeepCopy())
	w.pass(1000 * time.Hour)
	w.run()
	assert.Len(t, w.pods, 1)
	assert.Equal(t, v1.AttemptDeleting, w.task("worker", 0).State)
	assert.Zero(t, w.last.Wake)
}

func TestTheLossOfTheConfigMapEndsTheAttempt(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.run()
	w.starts("f-worker-0")
	w.run()
	w.cm.UID = ""
	w.run()
	w.reap()
	w.run()
	assert.Equal(t, int32(-100), w.status.AttemptStatus.CompletionStatus.Code)
	w.pass(5 * time.Second)
	w.run()
	assert.Equal(t, int32(1), w.status.AttemptStatus.ID)
	assert.Equal(t, v1.AttemptPreparing, w.status.State)
}

// A job whose tasks request their addresses from the controller has no ConfigMap. Its first pods are created after a single write.
func TestAFrameworkThatOwnsItsPodsBeginsInOneStep(t *testing.T) {
	w := newWorld(t, role("worker", 2))
	w.f.Annotations[v1.AnnotationRuntime] = v1.RuntimeV2
	w.reconcile()
	assert.Equal(t, 1, w.writes)
	assert.Len(t, w.pods, 2)
	w.run()
	assert.Empty(t, w.cm.UID)
	assert.Empty(t, w.status.AttemptStatus.ConfigMapName)
	assert.Equal(t, "0_fuid", *w.status.AttemptStatus.InstanceUID)
	w.starts("f-worker-0")
	w.starts("f-worker-1")
	w.run()
	assert.NotNil(t, w.status.AttemptStatus.PeersTime)
	w.exits("f-worker-0", exitTransient)
	w.run()
	w.reap()
	w.run()
	w.pass(5 * time.Second)
	w.run()
	assert.Equal(t, "1_fuid", *w.status.AttemptStatus.InstanceUID)
	assert.Equal(t, v1.AttemptPreparing, w.status.State)
	assert.Empty(t, w.cm.UID)
}

// Such a Framework also waits for the jobs that must end first, and for its start.
func TestAFrameworkThatOwnsItsPodsWaitsBeforeItBegins(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.f.Annotations[v1.AnnotationRuntime] = v1.RuntimeV2
	w.f.Spec.ExecutionType = v1.ExecutionCreate
	w.after = machine.After{Waits: []string{"u"}}
	w.run()
	w.f.Spec.ExecutionType = v1.ExecutionStart
	w.run()
	assert.Empty(t, w.pods)
	assert.Equal(t, v1.AttemptCreationPending, w.status.State)
	w.after = machine.After{Done: []string{"u"}}
	w.run()
	assert.Len(t, w.pods, 1)
}

func TestANodeThatFailedTheJobTwiceIsAvoided(t *testing.T) {
	w := newWorld(t, role("worker", 2))
	fail := func() {
		w.run()
		for _, name := range []string{"f-worker-0", "f-worker-1"} {
			w.starts(name)
			w.pods[name].Spec.NodeName = "bad"
		}
		w.run()
		w.exits("f-worker-0", exitBadNode)
		w.exits("f-worker-1", exitBadNode)
		w.run()
		w.pass(time.Hour / 2)
		w.run()
	}
	fail()
	require.Len(t, w.status.AvoidedNodes, 1)
	assert.Equal(t, int32(1), w.status.AvoidedNodes[0].Failures, "two tasks that fall at once are one incident")
	fail()
	assert.Equal(t, int32(2), w.status.AvoidedNodes[0].Failures)
	assert.Contains(t, reasons(w), "NodeAvoided")
	assert.Equal(t, []string{"bad"}, machine.Avoided(w.status, machine.DefaultPolicy(), w.now))
	assert.Empty(t, machine.Avoided(w.status, machine.DefaultPolicy(), w.now.Add(7*time.Hour)), "not for ever")
}

func reasons(w *world) []string {
	var out []string
	for _, n := range w.notes {
		out = append(out, n.Reason)
	}
	return out
}

func TestMoreTasksStartWhileTheOthersRun(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.run()
	w.starts("f-worker-0")
	w.run()
	w.f.Spec.TaskRoles[0].TaskNumber = 3
	w.f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinSucceededTaskCount = 3
	w.f.Spec.TaskRoles = append(w.f.Spec.TaskRoles, role("more", 1))
	w.run()
	assert.Len(t, w.pods, 4)
	assert.Equal(t, corev1.PodRunning, w.pods["f-worker-0"].Status.Phase)
	assert.Nil(t, w.status.AttemptStatus.PeersTime)
	for _, name := range []string{"f-worker-1", "f-worker-2", "f-more-0"} {
		w.starts(name)
	}
	w.run()
	assert.NotNil(t, w.status.AttemptStatus.PeersTime, "the new tasks are told of all")
}

func TestFewerTasksStopTheLastOnesAndCountAtOnce(t *testing.T) {
	w := newWorld(t, role("worker", 3))
	w.run()
	for _, name := range []string{"f-worker-0", "f-worker-1", "f-worker-2"} {
		w.starts(name)
	}
	w.run()
	w.exits("f-worker-0", 0)
	w.run()
	w.f.Spec.TaskRoles[0].TaskNumber = 1
	w.f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinSucceededTaskCount = 5
	w.run()
	assert.Equal(t, int32(0), w.status.AttemptStatus.CompletionStatus.Code, "all tasks that are left have ended")
	assert.Equal(t, int32(-230), w.task("worker", 2).AttemptStatus.CompletionStatus.Code)
	w.reap()
	w.run()
	assert.Equal(t, v1.Completed, w.status.State)
}

func TestATaskThatWasRemovedAndAddedAgainIsAnother(t *testing.T) {
	w := newWorld(t, role("worker", 2))
	w.run()
	w.starts("f-worker-0")
	w.starts("f-worker-1")
	w.run()
	before := w.task("worker", 1).InstanceUID
	w.f.Spec.TaskRoles[0].TaskNumber = 1
	w.run()
	assert.NotNil(t, w.pods["f-worker-1"].DeletionTimestamp)
	assert.Equal(t, int32(1), w.status.AttemptStatus.TaskRoleStatuses[0].Counts.Total)
	w.f.Spec.TaskRoles[0].TaskNumber = 2
	w.run()
	assert.Equal(t, before, w.task("worker", 1).InstanceUID, "its pod still ends")
	w.pass(time.Second)
	w.reap()
	w.run()
	assert.NotEqual(t, before, w.task("worker", 1).InstanceUID)
	assert.Equal(t, v1.AttemptPreparing, w.task("worker", 1).State)
	assert.Len(t, w.tasks, 1, "the removed task lies in the archive")
}

func TestTasksThatWereRemovedLeaveTheStatusOnceTheyAreArchived(t *testing.T) {
	w := newWorld(t, role("worker", 3), role("gone", 1))
	w.run()
	w.f.Spec.TaskRoles = w.f.Spec.TaskRoles[:1]
	w.f.Spec.TaskRoles[0].TaskNumber = 1
	w.run()
	w.reap()
	w.run()
	require.Len(t, w.status.AttemptStatus.TaskRoleStatuses, 1)
	assert.Len(t, w.status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, 1)
	assert.Len(t, w.tasks, 3)
	assert.Len(t, w.pods, 1)
	assert.Equal(t, v1.AttemptPreparing, w.status.State, "the rest goes on")
}

func TestAPodThatTheAPIRefusesEndsItsTask(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.view.Refuse("f-worker-0", machine.Refusal{Code: machine.CodePodCreationPermanent, Message: "spec.containers: Required value"})
	w.reconcile()
	w.view.Refuse("f-worker-0", machine.Refusal{Code: machine.CodePodCreationPermanent, Message: "spec.containers: Required value"})
	w.run()
	assert.Equal(t, v1.Completed, w.status.State)
	assert.Equal(t, int32(-200), w.status.AttemptStatus.CompletionStatus.Code)
	assert.Contains(t, w.status.AttemptStatus.CompletionStatus.Diagnostics, "spec.containers")
}

func TestAPodThatIsNeverSeenIsAskedForAndThenMadeAgain(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.lag = true
	w.run()
	assert.Equal(t, v1.AttemptCreationRequested, w.task("worker", 0).State)
	delete(w.pods, "f-worker-0") // and the watch never told
	w.run()
	assert.Equal(t, v1.AttemptCreationRequested, w.task("worker", 0).State)
	w.pass(w.last.Wake.Sub(w.now))
	w.run()
	assert.Equal(t, int32(-111), w.status.AttemptStatus.CompletionStatus.Code)
}

func TestAPodThatNobodyKnowsIsRemoved(t *testing.T) {
	w := newWorld(t, role("worker", 1))
	w.run()
	w.exits("f-worker-0", 0)
	w.run()
	p := w.pods["f-worker-0"].DeepCopy()
	p.UID, p.Status = "another", corev1.PodStatus{Phase: corev1.PodPending}
	w.pods["f-worker-0"] = p // by a replica that doesn't know that it lost its lease
	w.run()
	assert.NotNil(t, w.pods["f-worker-0"].DeletionTimestamp)
}

func TestAJobWithoutTasksSaysSo(t *testing.T) {
	w := newWorld(t)
	w.run()
	assert.Contains(t, w.status.Message, "no task")
}

func TestOnlyAPodOfThisVeryAttemptIsTakenOver(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"of another attempt of the job":         func(p *corev1.Pod) { p.Annotations[v1.AnnotationFrameworkAttempt] = "7" },
		"of another attempt of the task":        func(p *corev1.Pod) { p.Annotations[v1.AnnotationTaskAttempt] = "7" },
		"of a task that had the index before":   func(p *corev1.Pod) { p.Annotations[machine.AnnotationTaskUID] = "other" },
		"under another ConfigMap":               func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" },
		"of nobody":                             func(p *corev1.Pod) { p.OwnerReferences = nil },
		"whose controller was killed just then": func(*corev1.Pod) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, role("worker", 1))
			w.crash = func() bool { return len(w.pods) > 0 } // before the answer arrives
			w.reconcile()
			for len(w.pods) == 0 {
				w.reconcile()
			}
			w.crash = nil
			require.Nil(t, w.persisted.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.PodUID)
			p := w.pods["f-worker-0"].DeepCopy()
			change(p)
			w.pods[p.Name] = p
			w.run()
			if name == "whose controller was killed just then" {
				assert.Equal(t, string(p.UID), *w.task("worker", 0).AttemptStatus.PodUID)
				assert.Equal(t, 1, w.creates)
				return
			}
			assert.NotNil(t, w.pods[p.Name].DeletionTimestamp, "it has to go first")
			w.reap()
			w.run()
			assert.NotEqual(t, string(p.UID), *w.task("worker", 0).AttemptStatus.PodUID)
		})
	}
}
