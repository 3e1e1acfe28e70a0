package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

type moment string

const (
	beforeCommand moment = "before"
	duringCommand moment = "during" // the command has arrived, and runs or is about to
	afterCommand  moment = "after"  // it has ended, but paictl never gets the result
)

// countOnly is a point that no run reaches. With this point, the run only counts the points.
const countOnly = 1 << 30

// crash simulates kill -9 for paictl. All of its connections end at once, and it makes no new connections.
type crash struct {
	lab    *lab
	at     int    // the command, counted over all hosts; 0 for no command
	when   moment //
	breaks int    // or: the power fails at that point inside the stubs; 0 for no point

	once     sync.Once
	mu       sync.Mutex
	dead     bool
	commands map[int]string // kinds of the commands so far, if they are counted
}

func (c *crash) happened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// dial makes connections until the crash has happened.
func (c *crash) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return nil, errors.New("this paictl is dead")
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func (c *crash) now() {
	c.once.Do(func() { // later callers wait for its end
		c.mu.Lock()
		c.dead = true
		c.mu.Unlock()
		for _, h := range c.lab.hosts {
			h.server.Drop()
		}
	})
}

func (c *crash) exec(ctx context.Context, h *fakeHost, shell sshtest.Shell, n int, e *sshtest.Exec) int {
	if c.breaks != 0 {
		shell.Path = append([]string{h.lab.path[0] + "/../break"}, shell.Path...)
		shell.Env = append(shell.Env, "FAKE_BREAK="+strconv.Itoa(c.breaks))
	}
	if c.breaks == countOnly {
		program := &listened{r: e.Stdin}
		e.Stdin = program
		defer func() { c.note(n, program.kind()) }()
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

func (c *crash) hits() int {
	info, err := os.Stat(c.lab.cluster + "/hits")
	if err != nil {
		return 0
	}
	return int(info.Size())
}

func (c *crash) note(n int, kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commands == nil {
		c.commands = map[int]string{}
	}
	c.commands[n] = kind
}

func (c *crash) commandKinds() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, c.lab.commands.Load())
	for i := range out {
		out[i] = "held" // it hasn't ended yet, like the one that holds the lock
		if kind, ended := c.commands[i+1]; ended {
			out[i] = kind
		}
	}
	return out
}

// pointKinds returns the program of each point, in the order of the points.
func (c *crash) pointKinds() []string {
	b, _ := os.ReadFile(c.lab.cluster + "/points")
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

// cutting calls cut after it has read all available input, which is the whole script or the first packets of an upload.
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

// TestEveryCrashHealsByTheNextRun interrupts "cluster up". The next run must reach the state of an undisturbed run.
func TestEveryCrashHealsByTheNextRun(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*lab){
		"new machines": func(l *lab) {
			l.host("w1").swap()
			l.host("w1").gpus()
			l.driver(config.GPUDriver{Policy: config.GPUDriverInstall})
		},
		"a changed configuration": changeMuch,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commands, points := 6, 6
			if testing.Short() {
				commands, points = 1, 1
				if name == "new machines" {
					later(t)
				}
			}
			var want string
			cutOff(t, commands, points, func(t *testing.T) story {
				l := newLab(t, 1, 1)
				prepare(l)
				return story{lab: l, run: func() *outcome { return l.up(t.Context()) }, check: func(c *crash, _ *outcome) {
					if c == nil {
						require.Empty(t, l.mustUp().changes)
						want = strings.Join(l.state(), "\n")
						return
					}
					assert.Empty(t, engine.Unified("state", []byte(strings.Join(l.state(), "\n")), []byte(want)))
				}}
			})
		})
	}
}

// changeMuch creates a cluster and then makes changes that cause work in every phase.
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
	k.Extra.Kubeadm = map[string]any{"scheduler": map[string]any{"extraArgs": phases.Args("v", "4")}}
	l.conf.Layout.MachineList[1].Labels = map[string]string{"rack": "b"}
	l.conf.Layout.MachineList[1].Taints = []string{"dedicated=dl:NoSchedule"}
	l.host("w1").remove("/opt/cni/bin/bridge")
	l.host("w1").remove("/.fake/images/registry.k8s.io%pause:3.10.1")
}
