package controller_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// calls returns the controller's numbers of API calls by verb and resource.
func (w *cluster) calls() map[string]float64 {
	w.t.Helper()
	families, err := w.o.Registry.(*prometheus.Registry).Gather()
	require.NoError(w.t, err)
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "pai_controller_api_calls_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			out[label(m, "verb")+" "+label(m, "resource")] += m.GetCounter().GetValue()
		}
	}
	return out
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func report(t *testing.T, calls map[string]float64, per int) {
	names := make([]string, 0, len(calls))
	sum := 0.0
	for n, c := range calls {
		names = append(names, fmt.Sprintf("%s %.0f", n, c))
		if !strings.HasPrefix(n, "GET") {
			sum += c
		}
	}
	slices.Sort(names)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%.2f writes per task; heap %d MiB; %s", sum/float64(per), m.HeapInuse>>20, strings.Join(names, ", "))
}

// To test a job with ten thousand tasks, which takes a few minutes, set PAICTL_TEST_TASKS=10000.
func TestALargeJobCostsFewWritesPerTask(t *testing.T) {
	w := begin(t)
	n := number("PAICTL_TEST_TASKS", 200)
	k := w.kubelet(func(*corev1.Pod) int32 { return 0 })
	r := workers(int32(n))
	r.FrameworkAttemptCompletionPolicy.MinFailedTaskCount = -1
	begun := time.Now()
	w.submit("large", r)
	for {
		f := &v1.Framework{}
		require.True(t, w.get(f, "large"))
		if f.Status != nil && f.Status.State == v1.Completed {
			break
		}
		require.Less(t, time.Since(begun), 3*time.Minute+time.Duration(n)*100*time.Millisecond)
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the watch of a large job would be most of the load
	}
	t.Logf("%d tasks in %s", n, time.Since(begun).Round(time.Millisecond))
	f := w.job("large")
	assert.Equal(t, int32(n), f.Status.AttemptStatus.TaskRoleStatuses[0].Counts.Succeeded)
	assert.Len(t, w.store.job("large").Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses, n)
	calls := w.calls()
	report(t, calls, n)
	assert.InDelta(t, n, calls["POST pods"], 0, "one call makes a pod")
	assert.Less(t, calls["PUT frameworks/status"]+calls["PUT configmaps"], float64(n), "writes of statuses are shared")
	k.mu.Lock()
	defer k.mu.Unlock()
	assert.Len(t, k.ran, n)
}

// To test five thousand jobs, which takes a few minutes, set PAICTL_TEST_MANY=5000.
func TestManyJobsCostFewCallsEach(t *testing.T) {
	w := begin(t)
	n := number("PAICTL_TEST_MANY", 24)
	w.kubelet(func(*corev1.Pod) int32 { return 0 })
	begun := time.Now()
	tasks := 0
	for i := range n {
		w.submit(fmt.Sprintf("many%d", i), workers(int32(1+i%8)))
		tasks += 1 + i%8
	}
	submitted := time.Since(begun)
	for {
		list := &v1.FrameworkList{}
		require.NoError(t, w.c.List(t.Context(), list, client.InNamespace(w.namespace)))
		done := 0
		for i := range list.Items {
			if s := list.Items[i].Status; s != nil && s.State == v1.Completed && s.ArchivedTime != nil {
				done++
			}
		}
		if done == n {
			break
		}
		require.Less(t, time.Since(begun), 3*time.Minute+time.Duration(tasks)*200*time.Millisecond, "%d of %d have ended", done, n)
		time.Sleep(200 * time.Millisecond) //nolint:forbidigo // as above
	}
	t.Logf("%d jobs of %d tasks: submitted in %s, ended after %s", n, tasks, submitted.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	calls := w.calls()
	report(t, calls, tasks)
	assert.InDelta(t, tasks, calls["POST pods"], 0)
	// The number of writes depends on the load of the machine, because a write may combine several changes. Each task has at least three changes,
	// and causes at most two writes.
	assert.LessOrEqual(t, calls["PUT frameworks/status"], float64(4*n+2*tasks))
}

// The barrier is the time that a gang still waits after its last task got an address.
func TestTheAddressesOfALargeGangArePublishedAtOnce(t *testing.T) {
	w := begin(t)
	n := number("PAICTL_TEST_GANG", 60)
	w.submit("gang", workers(int32(n)))
	w.until("gang", "has told its tasks of each other", func(f *v1.Framework) bool { return f.Status.AttemptStatus.PeersTime != nil })
	families, err := w.o.Registry.(*prometheus.Registry).Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "pai_controller_barrier_duration_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			require.Equal(t, uint64(1), h.GetSampleCount(), "published once")
			t.Logf("%d tasks: %.0f ms after the last address", n, 1000*h.GetSampleSum())
			return
		}
	}
	t.Fatal("no metric of the barrier")
}
