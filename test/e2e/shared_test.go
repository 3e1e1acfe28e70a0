package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// shared is the cluster for tests that need a running cluster. The tests use it one after the other, because its creation takes as long as many of
// the tests. It has a master, and four workers that simulate eight GPUs each. It is removed after the last of these tests.
var (
	shared     *services
	sharedTurn = newTurns("TestJobs", "TestTheSchedulerSharesGPUsBetweenTwoTeams", "TestTheAgentHandsOutGPUs")
	sharedLeft atomic.Int32
)

const (
	sharedName  = "e2es"
	sharedHosts = 5
	asGenerated = "services-configuration.yaml.generated"
)

// sharedServices waits for the turn of the test. It returns the shared cluster without services, jobs and their data. After a failed test, the next
// test gets a new cluster.
func sharedServices(t testing.TB) *services {
	t.Helper()
	sharedLeft.Add(1) // all of them are counted before the first continues: it is parallel
	sharedTurn.enter(t.Name())
	besides(t)
	sharedTurn.take(t.Name())
	t.Cleanup(func() {
		if sharedLeft.Add(-1) == 0 || t.Failed() {
			endShared()
		}
		sharedTurn.release()
	})
	if shared != nil {
		s := &services{lab: labIn(t, filepath.Dir(shared.cluster)), kubeconfig: shared.kubeconfig}
		s.names = shared.names
		s.empty()
		return s
	}
	base := kept(sharedName)
	if base == "" {
		base = filepath.Join(work, sharedName)
	}
	s := &services{lab: labIn(t, base)}
	require.NoError(t, room.Acquire(t.Context(), sharedHosts))
	shared = s // from here on there is a cluster to end
	s.hosts(sharedName, sharedHosts)
	edit(t, filepath.Join(s.dir, "quick-start.yaml"), "gpu: none", "gpu: simulate")
	s.bringUp()
	file := filepath.Join(s.cluster, "services-configuration.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(base, asGenerated), []byte(read(t, file)), 0o600))
	return s
}

// empty removes everything that a test may have left, except for the history of the configuration.
func (s *services) empty() {
	s.t.Helper()
	s.isReady(len(s.names)) // a machine may be starting
	// A Framework is gone only after its controller has removed the Framework's finalizer.
	s.kubectl("-n pai-jobs delete frameworks --all --timeout=120s --ignore-not-found || true")
	s.kubectl("-n pai-jobs delete pods --all --grace-period=1 --timeout=120s")
	file := filepath.Join(s.cluster, "services-configuration.yaml")
	require.NoError(s.t, os.WriteFile(file, []byte(read(s.t, filepath.Join(filepath.Dir(s.cluster), asGenerated))), 0o600))
	ok(s.t, s.args("config", "push", "--yes", "--force", "-p", s.cluster)...)
	s.run(0, "delete", "--yes")
}

// endShared removes the hosts of the shared cluster, unless they are to be kept.
func endShared() {
	if shared == nil {
		return
	}
	defer room.Release(sharedHosts)
	if kept(sharedName) != "" {
		shared = nil
		return
	}
	if out, err := exec.Command(paictl, "sandbox", "down", "--dir", shared.dir).CombinedOutput(); err != nil {
		fmt.Printf("sandbox down: %v\n%s", err, out)
	}
	_ = os.RemoveAll(filepath.Dir(shared.dir))
	shared = nil
}

// turns lets tests run one after the other. The tests that it names run first, in the given order. The other tests follow in the order in which they
// arrived. So a run with a time limit includes the most important tests.
type turns struct {
	first   []string
	mu      sync.Mutex
	free    *sync.Cond
	taken   bool
	waiting []string
}

func newTurns(first ...string) *turns {
	q := &turns{first: first}
	q.free = sync.NewCond(&q.mu)
	return q
}

// enter registers a test that will wait for its turn.
func (q *turns) enter(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, name)
}

// take waits for the turn of a registered test.
func (q *turns) take(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.taken || q.next() != name {
		q.free.Wait()
	}
	q.taken = true
	q.waiting = slices.DeleteFunc(q.waiting, func(other string) bool { return other == name })
}

func (q *turns) next() string {
	for _, name := range q.first {
		if slices.Contains(q.waiting, name) {
			return name
		}
	}
	return q.waiting[0]
}

// release ends the turn of a test.
func (q *turns) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = false
	q.free.Broadcast()
}
