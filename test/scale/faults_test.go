package scale

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/test/scheduler/schedulertest"
	"github.com/openpai/paictl/test/tier"
)

// TestNoGPUIsGivenTwiceWhereTheControlPlaneFalters delays the responses of etcd by 200 ms, kills the leader, and stops the API server for longer
// than the duration of a lease. Gangs arrive during all of this. The test counts the GPUs in claims.
func TestNoGPUIsGivenTwiceWhereTheControlPlaneFalters(t *testing.T) {
	tier.More(t, "etcd, an API server and controllers")
	if out, err := exec.CommandContext(t.Context(), "unshare", "--uts", "--map-root-user", "hostname", "x").CombinedOutput(); err != nil {
		t.Skipf("no host names of one's own: %v %s", err, out)
	}
	w := newWorld(t, size(t, 16))
	w.fill(number(t, "PAICTL_SCALE_RUNNING", 0))
	list := gangs(w.nodes)
	for _, g := range list {
		g.Claims = true
	}
	third := (len(list) + 2) / 3
	parts := slices.Collect(slices.Chunk(list, third))
	require.Len(t, parts, 3)
	start := func(name string) *schedulertest.Scheduler {
		return schedulertest.Start(t, w.c, schedulertest.Options{Name: name, Namespace: namespace, Elect: true, Restart: true, QPS: 1000})
	}
	done := 0
	// come creates gangs, and waits until all of them are bound. It returns the time until the first gang was bound.
	come := func(part []*schedulertest.Gang) time.Duration {
		created, began := make(chan error, 1), time.Now()
		go func() { created <- w.create(t.Context(), part) }()
		pods, _ := count(part)
		w.waitBound(done+1, limit(pods))
		first := time.Since(began)
		w.waitBound(done+pods, 2*limit(pods))
		require.NoError(t, <-created)
		done += pods
		return first
	}

	leader := start("first")
	leads(t, leader)
	heir := start("second")
	fast := w.slow("etcd", 200*time.Millisecond)
	t.Logf("etcd answers after 200 ms: the first pod is bound after %.1f s", come(parts[0]).Seconds())

	leader.Kill()
	t.Logf("and the leader was killed: after %.1f s", come(parts[1]).Seconds())
	leads(t, heir)
	fast()
	start("third") // a leader that has lost its lease ends, and the other one leads until then

	const away = 15 * time.Second
	back := w.away("kube-apiserver")
	time.AfterFunc(away, back)
	t.Logf("the API server was unavailable for %s: after %.1f s", away, come(parts[2]).Seconds())

	w.check(list)
	claims, err := w.c.Client.ResourceV1().ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, gpus := count(list)
	used, err := schedulertest.ClaimedTwice(claims.Items)
	require.NoError(t, err)
	require.Equal(t, gpus, used)
}

// away stops a program of the control plane until back is called.
func (w *world) away(program string) (back func()) {
	w.t.Helper()
	pid := w.pid(program)
	signal := func(s syscall.Signal) { _ = syscall.Kill(pid, s) } // if the process has ended, the test fails anyway
	signal(syscall.SIGSTOP)
	w.t.Cleanup(func() { signal(syscall.SIGCONT) })
	return func() { signal(syscall.SIGCONT) }
}

// slow makes a program of the control plane respond more slowly, until fast is called.
func (w *world) slow(program string, by time.Duration) (fast func()) {
	w.t.Helper()
	pid := w.pid(program)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			time.Sleep(by)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			time.Sleep(by / 8)
		}
	}()
	fast = func() {
		cancel()
		<-ended
	}
	w.t.Cleanup(fast)
	return fast
}

// pid returns the id of the process of a control-plane program that this process has started.
func (w *world) pid(program string) int {
	w.t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(w.t, err)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if _, parent, _, err := stat(pid); err != nil || parent != os.Getpid() {
			continue
		}
		if link, err := os.Readlink("/proc/" + entry.Name() + "/exe"); err == nil && filepath.Base(link) == program {
			return pid
		}
	}
	require.Failf(w.t, "no such program", "%s", program)
	return 0
}
