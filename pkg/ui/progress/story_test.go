package progress

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), got, "differs from %s", path)
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

var phases = []string{"preflight", "base", "containerd", "images", "init", "network", "join", "labels"}

// story returns the events of a run on three hosts, up to the moment when one host has failed, one is loading images and one waits.
func story() []engine.Event {
	change := func(s float64, host, phase, action, target, detail string) engine.Event {
		return engine.Event{Time: at(s), Kind: engine.EventChanged, Host: host, Phase: phase,
			Change: &engine.Change{Host: host, Phase: phase, Action: action, Target: target, Detail: detail}}
	}
	on := func(s float64, kind, host, phase string) engine.Event {
		return engine.Event{Time: at(s), Kind: kind, Host: host, Phase: phase}
	}
	done := func(s, took float64, host, phase string, n int) engine.Event {
		e := on(s, engine.EventPhaseDone, host, phase)
		e.Changes, e.Elapsed = n, time.Duration(took*float64(time.Second))
		return e
	}
	return []engine.Event{
		{Time: at(0), Kind: engine.EventRunStarted, Message: "cluster up", Hosts: []string{"gpu-1", "gpu-2", "master-01"}, Phases: phases},
		on(0, engine.EventPhaseStarted, "gpu-1", "preflight"),
		on(0, engine.EventPhaseStarted, "gpu-2", "preflight"),
		on(0, engine.EventPhaseStarted, "master-01", "preflight"),
		done(0.4, 0.4, "gpu-1", "preflight", 0),
		done(0.5, 0.5, "gpu-2", "preflight", 0),
		done(0.6, 0.6, "master-01", "preflight", 0),
		{Time: at(0.7), Kind: engine.EventWarning, Host: "gpu-2", Phase: "preflight", Message: "swap is on", Hint: "swapoff -a"},
		on(1, engine.EventPhaseStarted, "gpu-1", "base"),
		on(1, engine.EventPhaseStarted, "gpu-2", "base"),
		on(1, engine.EventPhaseSkipped, "master-01", "base"),
		change(2, "gpu-1", "base", "set", "net.ipv4.ip_forward", "0 -> 1"),
		change(2, "gpu-1", "base", "create", "/etc/modules-load.d/paictl.conf", ""),
		done(2.1, 1.1, "gpu-1", "base", 2),
		{Time: at(4.1), Kind: engine.EventPhaseFailed, Host: "gpu-2", Phase: "base", Elapsed: 3100 * time.Millisecond,
			Error: "base/apply on gpu-2: exit status 1: no space left on device", Hint: "free 2 GB below /var"},
		on(4.1, engine.EventHostSetAside, "gpu-2", "base"),
		on(5, engine.EventPhaseStarted, "master-01", "images"),
		on(5, engine.EventPhaseStarted, "gpu-1", "images"),
		{Time: at(9), Kind: engine.EventProgress, Host: "master-01", Phase: "images", Message: "upload", Done: 41e6, Total: 310e6},
		{Time: at(16), Kind: engine.EventProgress, Host: "master-01", Phase: "images", Message: "upload", Done: 120e6, Total: 310e6},
		{Time: at(16), Kind: engine.EventProgress, Host: "gpu-1", Phase: "images", Message: "import", Done: 3, Total: 12},
	}
}

// ending returns the events that complete the story.
func ending() []engine.Event {
	sum := &engine.Summary{
		Command: "cluster up", Hosts: 3, Changed: 2, Changes: 41, RoundTrips: 9, Elapsed: 38 * time.Second,
		Failed: []engine.Failed{{Host: "gpu-2", Phase: "base",
			Error: "base/apply on gpu-2: exit status 1: no space left on device", Hint: "free 2 GB below /var"}},
		Retry: "paictl cluster up -p ./cluster --limit gpu-2",
	}
	return []engine.Event{
		{Time: at(30), Kind: engine.EventPhaseDone, Host: "master-01", Phase: "images", Changes: 12, Elapsed: 25 * time.Second},
		{Time: at(31), Kind: engine.EventPhaseDone, Host: "gpu-1", Phase: "images", Changes: 12, Elapsed: 26 * time.Second},
		{Time: at(37), Kind: engine.EventHostDone, Host: "master-01"},
		{Time: at(38), Kind: engine.EventHostDone, Host: "gpu-1"},
		{Time: at(38), Kind: engine.EventRunDone, Summary: sum, Elapsed: sum.Elapsed},
	}
}

// crowd returns the events of a run on n hosts. One host has failed, two are running, a fifth of the hosts wait, and the others are done.
func crowd(n int) []engine.Event {
	es := []engine.Event{{Time: at(0), Kind: engine.EventRunStarted, Message: "cluster up", Phases: phases}}
	for i := range n {
		h := fmt.Sprintf("node-%04d", i)
		es[0].Hosts = append(es[0].Hosts, h)
		switch {
		case i == n/2:
			es = append(es, engine.Event{Time: at(3), Kind: engine.EventHostSetAside, Host: h, Phase: "connect", Error: "dial: no route to host", Hint: "is it on?"})
		case i == n/3 || i == n-1:
			es = append(es, engine.Event{Time: at(2), Kind: engine.EventPhaseStarted, Host: h, Phase: "base"})
		case i%5 != 0:
			es = append(es, engine.Event{Time: at(2), Kind: engine.EventHostDone, Host: h})
		}
	}
	return es
}
