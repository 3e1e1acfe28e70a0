package e2e

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRunsThatEndEarlyAreContinued interrupts runs on the same hosts, one after the other: with a second run at the same time, with SIGKILL at
// random moments, and with a worker that loses power. The last run must produce the same cluster as a run without interruptions.
func TestRunsThatEndEarlyAreContinued(t *testing.T) {
	l := newLab(t, "e2ek", 3)
	l.generate()

	t.Run("a second run is refused, and the lock dies with its owner", func(t *testing.T) {
		cmd, _ := l.start()
		eventually(t, time.Minute, "the first run works", func() bool {
			_, err := l.try(l.names[0], "test -s /run/paictl.lock")
			return err == nil
		})
		r := run(t, "cluster", "up", "-p", l.cluster)
		assert.Equal(t, 5, r.code, r)
		host, err := os.Hostname()
		require.NoError(t, err)
		assert.Contains(t, r.stderr, "@"+host)
		assert.Contains(t, r.stderr, "since 2")
		require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		_ = cmd.Wait() // killed
	})
	t.Run("killed at random moments", func(t *testing.T) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		for range 4 { // together shorter than a whole run
			cmd, out := l.start()
			after := time.Duration(500+random.IntN(5500)) * time.Millisecond
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
				t.Fatalf("it ended before %s: %v\n%s", after, err, out)
			}
		}
	})
	t.Run("a worker that is unplugged is set aside", func(t *testing.T) {
		cmd, out := l.start()
		began := regexp.MustCompile(`"phase-started","host":"` + l.names[2] + `","phase":"(base|containerd|kubelet|images|join)"`)
		eventually(t, time.Minute, "the worker is being worked on", func() bool { return began.MatchString(out.String()) })
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
	})
	l.up(0)
	l.isReady(3)
	s := l.up(0)
	assert.Zero(t, s.Changes)
	l.podsReachEachOther()
}

// jsonLines returns those lines of a mixed output that are JSON events.
func jsonLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, "{") {
			b.WriteString(line)
		}
	}
	return b.String()
}
