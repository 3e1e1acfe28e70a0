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

// shared is the cluster of the tests of what runs on one, which use it one after the other: a master, and four
// workers that pretend to have eight GPUs each. To make it takes as long as many a test. It ends with the last
// of them.
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

// sharedServices waits its turn, and returns the shared cluster without services, jobs and their data. After a test that has failed
// the next gets a new one.
func sharedServices(t testing.TB) *services {
	t.Helper()
	sharedLeft.Add(1) // all of them are counted before the first goes on: it is parallel
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
	shared = s // from here on there is something to end
	s.hosts(sharedName, sharedHosts)
	edit(t, filepath.Join(s.dir, "quick-start.yaml"), "gpu: none", "gpu: simulate")
	s.bringUp()
	file := filepath.Join(s.cluster, "services-configuration.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(base, asGenerated), []byte(read(t, file)), 0o600))
	return s
}

// empty takes away all that a test can have left, but for the history of the configuration.
func (s *services) empty() {
	s.t.Helper()
	s.isReady(len(s.names)) // a machine may be on its way back
	// A Framework goes when its controller has let it go.
	s.kubectl("-n pai-jobs delete frameworks --all --timeout=120s --ignore-not-found || true")
	s.kubectl("-n pai-jobs delete pods --all --grace-period=1 --timeout=120s")
	file := filepath.Join(s.cluster, "services-configuration.yaml")
	require.NoError(s.t, os.WriteFile(file, []byte(read(s.t, filepath.Join(filepath.Dir(s.cluster), asGenerated))), 0o600))
	ok(s.t, s.args("config", "push", "--yes", "--force", "-p", s.cluster)...)
	s.run(0, "delete", "--yes")
}

// endShared ends the hosts of the shared cluster, unless they are kept.
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

// turns lets tests go one after the other: first those that it names, in that order, and then the others as they came. A run whose time is
// limited has the most important ones then.
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

// enter says that a test is going to take a turn.
func (q *turns) enter(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, name)
}

// take waits for the turn of a test that has entered.
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

// release ends a turn.
func (q *turns) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = false
	q.free.Broadcast()
}
