package e2e

import (
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKilledRunsAreContinued kills paictl at five random moments, one after the other on the
// same hosts, and then lets it finish: the cluster must be as if nothing had happened.
func TestKilledRunsAreContinued(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	l := newLab(t, "e2ek", 3)
	l.generate()
	for range 5 {
		cmd, _ := l.start()
		after := time.Duration(500+random.IntN(9000)) * time.Millisecond
		timer := time.NewTimer(after)
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case <-timer.C:
			require.NoError(t, cmd.Process.Kill())
			<-done
			t.Logf("killed after %s", after)
		case err := <-done:
			timer.Stop()
			t.Logf("done before %s: %v", after, err)
		}
	}
	l.up(0)
	l.isReady(3)
	s := l.up(0)
	assert.Zero(t, s.Changes)
	l.podsReachEachOther()
}

// TestPoweredOffWorkerIsSetAside unplugs a worker while it is being worked on.
func TestPoweredOffWorkerIsSetAside(t *testing.T) {
	l := newLab(t, "e2ep", 3)
	l.generate()
	cmd, out := l.start()
	eventually(t, time.Minute, "the worker has begun", func() bool {
		_, err := l.try(l.names[2], "test -s /var/lib/paictl/journal")
		return err == nil
	})
	ok(t, "sandbox", "stop", "--dir", l.dir, "--unplug", l.names[2])
	_ = cmd.Wait() // its exit code is looked at below
	assert.Equal(t, 3, cmd.ProcessState.ExitCode(), out.String())
	s := lastSummary(t, jsonLines(out.String()))
	require.Len(t, s.Failed, 1)
	assert.Equal(t, l.names[2], s.Failed[0].Host)
	assert.Contains(t, s.Retry, "--limit "+l.names[2])
	assert.Equal(t, 2, strings.Count(l.kubectl("get nodes --no-headers"), " Ready "))

	r := run(t, "cluster", "up", "-p", l.cluster)
	assert.Equal(t, 3, r.code, "while it is off, a run says partial: %s", r)
	assert.Contains(t, r.stderr, "--limit "+l.names[2])

	ok(t, "sandbox", "start", "--dir", l.dir, l.names[2])
	l.up(0)
	l.isReady(3)
}

// TestSecondRunIsRefused checks the lock, and that it dies with its owner.
func TestSecondRunIsRefused(t *testing.T) {
	l := newLab(t, "e2el", 2)
	l.generate()
	cmd, _ := l.start()
	eventually(t, time.Minute, "the first run works", func() bool {
		_, err := l.try(l.names[0], "test -s /run/paictl.lock")
		return err == nil
	})
	start := time.Now()
	r := run(t, "cluster", "up", "-p", l.cluster)
	assert.Equal(t, 5, r.code, r)
	assert.Less(t, time.Since(start), 30*time.Second)
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Contains(t, r.stderr, "@"+host)
	assert.Contains(t, r.stderr, "since 2")

	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait() // killed
	l.up(0)
	l.isReady(2)
}

// jsonLines keeps the lines of a mixed output that are events.
func jsonLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, "{") {
			b.WriteString(line)
		}
	}
	return b.String()
}
