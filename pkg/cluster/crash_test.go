package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// moment says when a crash comes, relative to one remote command.
type moment string

const (
	beforeCommand moment = "before"
	duringCommand moment = "during" // the command has come, and runs or is about to
	afterCommand  moment = "after"  // it has ended; paictl never hears of it
)

// crash ends paictl as kill -9 does: all its connections at once, and it never comes back.
type crash struct {
	lab    *lab
	at     int    // the command, counted over all hosts; 0 for none
	when   moment //
	breaks int    // or: the power fails at that point inside the stubs; 0 for none

	once sync.Once
	mu   sync.Mutex
	dead bool
}

func (c *crash) happened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// dial makes connections until the crash.
func (c *crash) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return nil, errors.New("this paictl is dead")
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func (c *crash) now() {
	c.once.Do(func() { // others who come wait for its end
		c.mu.Lock()
		c.dead = true
		c.mu.Unlock()
		for _, h := range c.lab.hosts {
			h.server.Drop()
		}
	})
}

// exec runs the n-th command on a host.
func (c *crash) exec(ctx context.Context, h *fakeHost, shell sshtest.Shell, n int, e *sshtest.Exec) int {
	if c.breaks != 0 {
		shell.Path = append([]string{h.lab.path[0] + "/../break"}, shell.Path...)
		shell.Env = append(shell.Env, "FAKE_BREAK="+strconv.Itoa(c.breaks))
	}
	if n == c.at && c.when == beforeCommand {
		c.now()
		return 255
	}
	if n == c.at && c.when == duringCommand {
		e.Stdin = &cutting{r: e.Stdin, cut: c.now}
	}
	code := shell.Exec(ctx, e)
	if n == c.at || c.breaks > 0 && c.hits() >= c.breaks {
		c.now()
	}
	return code
}

// hits counts the points inside the stubs that were passed.
func (c *crash) hits() int {
	info, err := os.Stat(c.lab.cluster + "/hits")
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// cutting cuts when something has been read and nothing more is there: when the whole
// script has come, or the first packets of an upload.
type cutting struct {
	r   io.Reader
	cut func()
	n   int
}

func (c *cutting) Read(b []byte) (int, error) {
	if c.n > 0 {
		c.cut()
	}
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}

// crashOnce prepares a lab, lets c happen to a run of up there, and runs it again to its end.
func crashOnce(t testing.TB, prepare func(*lab), c *crash) *lab {
	l := newLab(t, 1, 1)
	prepare(l)
	c.lab = l
	l.crash.Store(c)
	l.commands.Store(0)
	first := l.up(t.Context())
	if c.happened() {
		c.now() // wait for its end
	} else {
		require.NoError(t, first.err)
	}
	l.crash.Store(nil)
	// At once: what the dead paictl has started may still be at work. Only the lock is
	// waited for, which the machine gives up when it sees the connection end.
	second := l.up(t.Context())
	for errors.As(second.err, new(*LockedError)) {
		second = l.up(t.Context())
	}
	require.NoError(t, second.err, "%s", l.story(second))
	return l
}

// TestEveryCrashHealsByTheNextRun cuts paictl off at its remote commands: before, during and
// after them. It also kills everything at points inside of what they run, as a power failure
// does. Each time the next run must come to the state of one that no one disturbed. The usual
// run takes every eighth command, at one moment each, and a few points; PAICTL_TEST_CRASH=all
// all commands, moments and points, which takes long.
func TestEveryCrashHealsByTheNextRun(t *testing.T) {
	all := allCrashes()
	for name, prepare := range map[string]func(*lab){
		"new machines": func(l *lab) {
			l.host("w1").swap()
			l.host("w1").gpus()
			l.driver(config.GPUDriver{Policy: config.GPUDriverInstall})
		},
		"a changed configuration": changeMuch,
	} {
		clean := newLab(t, 1, 1)
		prepare(clean)
		clean.crash.Store(&crash{lab: clean, breaks: 1 << 30})
		clean.commands.Store(0)
		clean.mustUp()
		commands, points := int(clean.commands.Load()), clean.crash.Load().hits()
		t.Logf("%s: %d commands, %d points", name, commands, points)
		clean.crash.Store(nil)
		require.Empty(t, clean.mustUp().changes)
		want := strings.Join(clean.state(), "\n")
		run := func(what string, c *crash) {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				l := crashOnce(t, prepare, c)
				assert.Empty(t, unified("state", []byte(strings.Join(l.state(), "\n")), []byte(want)))
			})
		}
		moments := []moment{beforeCommand, duringCommand, afterCommand}
		for k := 1; k <= commands; k++ {
			for i, m := range moments {
				if all || k%8 == 0 && k/8%3 == i && (!testing.Short() || k%16 == 0) {
					run(fmt.Sprintf("%s command %d", m, k), &crash{at: k, when: m})
				}
			}
		}
		step := 257 // a prime, so that the points do not fall into the rhythm of a script
		if all {
			step = 1
		}
		for k := 1; k <= points && !testing.Short(); k += step {
			run(fmt.Sprintf("power off at point %d", k), &crash{breaks: k})
		}
	}
}

// allCrashes reports whether the tests that cut paictl off leave no moment out, which takes long.
func allCrashes() bool { return os.Getenv("PAICTL_TEST_CRASH") == "all" }

// changeMuch makes a cluster, and then changes what leads to work in every phase.
func changeMuch(l *lab) {
	l.host("w1").write("/proc/sys/vm/swappiness", "60\n")
	l.host("m1").write("/proc/sys/vm/swappiness", "60\n")
	l.conf.Layout.MachineList[1].Labels = map[string]string{"rack": "a", "disk": "ssd"}
	l.conf.Layout.MachineList[1].Taints = []string{"dedicated=ml:NoSchedule", "old:NoExecute"}
	l.host("w1").gpus()
	l.driver(at("535.247.01"))
	l.made()
	l.driver(at("535.261.03"))
	k := &l.conf.Kubernetes.Kubernetes
	k.Extra.Sysctl = map[string]string{"vm.swappiness": "10"}
	k.Extra.Containerd = map[string]any{"debug": map[string]any{"level": "debug"}}
	k.Extra.Kubelet = map[string]any{"maxPods": 200}
	k.Extra.Kubeadm = map[string]any{"scheduler": map[string]any{"extraArgs": args("v", "4")}}
	l.conf.Layout.MachineList[1].Labels = map[string]string{"rack": "b"}
	l.conf.Layout.MachineList[1].Taints = []string{"dedicated=dl:NoSchedule"}
	l.host("w1").remove("/opt/cni/bin/bridge")
	l.host("w1").remove("/.fake/images/registry.k8s.io%pause:3.10.1")
}
