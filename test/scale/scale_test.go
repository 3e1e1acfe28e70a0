package scale

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/scheduler/schedulertest"
	"github.com/openpai/paictl/test/tier"
)

// perSecond is the minimum number of pods that a slow machine binds per second. Time limits are derived from it.
const perSecond = 10

func limit(pods int) time.Duration { return 2*time.Minute + time.Duration(pods/perSecond)*time.Second }

func TestGangsOfALargeClusterAreBound(t *testing.T) {
	tier.More(t, "etcd, an API server and controllers")
	w := newWorld(t, size(t, 16))
	w.run(func(text string) { t.Log(text) })
}

// run creates all gangs and then starts the scheduler, so that the scheduler never waits for gangs. It reports how many pods were bound per second,
// and which programs used the processor time.
func (w *world) run(report func(string)) (perSecond float64) {
	w.t.Helper()
	list := gangs(w.nodes)
	pods, gpus := count(list)
	require.NoError(w.t, w.create(w.t.Context(), list))
	before, start := usage(), time.Now()
	p := schedulertest.Start(w.t, w.c, schedulertest.Options{Name: "one", Namespace: namespace, QPS: 1000})
	w.waitBound(1, limit(pods))
	first := time.Since(start)
	w.waitBound(pods, limit(pods))
	took := time.Since(start)
	used := usage()
	w.check(list)
	_, text, err := p.Get("/metrics")
	require.NoError(w.t, err)
	perSecond = float64(pods) / (took - first).Seconds()
	report(fmt.Sprintf("%d nodes, %d GPUs: %d pods of %d gangs with %d GPUs; the first is bound %.1f s after the start, the last %.1f s later: %.0f pods/s",
		w.nodes, 8*w.nodes, pods, len(list), gpus, first.Seconds(), (took - first).Seconds(), perSecond))
	average := func(name, labels string) float64 {
		return 1000 * metric(text, name+"_sum"+labels) / metric(text, name+"_count"+labels)
	}
	report(fmt.Sprintf("per pod: decision %.3f ms, binding %.2f ms", average("pai_scheduler_decision_duration_seconds", ""), average("pai_scheduler_binding_duration_seconds", "")))
	report("processor time: " + used.since(before))
	return perSecond
}

func leads(t testing.TB, p *schedulertest.Scheduler) {
	t.Helper()
	schedulertest.Eventually(t, time.Minute, func() error {
		_, text, err := p.Get("/metrics")
		if err == nil && !strings.Contains(text, "pai_scheduler_leader 1") {
			err = fmt.Errorf("it doesn't lead")
		}
		return err
	})
}

func TestNothingIsLostWhereTheLeaderIsKilledInTheMiddle(t *testing.T) {
	tier.More(t, "etcd, an API server and controllers")
	if out, err := exec.CommandContext(t.Context(), "unshare", "--uts", "--map-root-user", "hostname", "x").CombinedOutput(); err != nil {
		t.Skipf("no host names of one's own: %v %s", err, out)
	}
	w := newWorld(t, size(t, 16))
	list := gangs(w.nodes)
	pods, _ := count(list)
	start := func(name string) *schedulertest.Scheduler {
		return schedulertest.Start(t, w.c, schedulertest.Options{Name: name, Namespace: namespace, Elect: true, QPS: 1000})
	}
	first := start("first")
	leads(t, first)
	second := start("second")
	created := make(chan error, 1)
	go func() { created <- w.create(t.Context(), list) }()

	w.waitBound(pods/3, limit(pods))
	killed := time.Now()
	first.Kill()
	leads(t, second)
	t.Logf("the second replica leads %.1f s after the first was killed", time.Since(killed).Seconds())
	third := start("third")
	w.waitBound(2*pods/3, limit(pods))
	killed = time.Now()
	second.Kill()
	leads(t, third)
	t.Logf("the third replica leads %.1f s after the second was killed", time.Since(killed).Seconds())
	require.NoError(t, <-created)
	w.waitBound(pods, limit(pods))
	w.check(list)
	_, text, err := third.Get("/metrics")
	require.NoError(t, err)
	schedulertest.Eventually(t, time.Minute, func() error {
		if _, text, err = third.Get("/metrics"); err != nil {
			return err
		}
		if n := int(metric(text, `pai_scheduler_pods{state="Bound"}`)); n != pods {
			return fmt.Errorf("the scheduler knows %d bound pods of %d", n, pods)
		}
		return nil
	})
	_, gpus := count(list)
	require.Equal(t, gpus, int(metric(text, "pai_scheduler_used_gpus")))
	require.Zero(t, metric(text, `pai_scheduler_pods{state="Ignored"}`))
}

func BenchmarkGangsBound(b *testing.B) {
	for range b.N {
		w := newWorld(b, size(b, 1024))
		b.ReportMetric(w.run(func(text string) { b.Log(text) }), "pods/s")
	}
}
