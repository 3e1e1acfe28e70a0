package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// restartable is a drained machine that the agent may restart.
type restartable struct {
	*ordered
	proc string
	// signals is the number of restart signals that systemd has received.
	signals int
	// signal is called for each signal.
	signal func() error
}

func newRestartable(t *testing.T) *restartable {
	t.Helper()
	r := &restartable{ordered: newOrdered(t), proc: t.TempDir(), signal: func() error { return nil }}
	r.firstProcess("systemd", 11)
	r.kernel("kubelet-1")
	r.boots("kubelet-1")
	r.cordon(true)
	r.agent()
	return r
}

func (r *restartable) firstProcess(name string, started int) {
	r.t.Helper()
	for file, text := range map[string]string{
		"1/comm": name + "\n",
		"1/stat": "1 (system d) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 " + strconv.Itoa(started) + " 9 9\n",
	} {
		r.file(file, text)
	}
}

// kernel sets the boot ID of the kernel. In a sandbox, this boot ID never changes.
func (r *restartable) kernel(boot string) { r.file("sys/kernel/random/boot_id", boot+"\n") }

func (r *restartable) file(name, text string) {
	r.t.Helper()
	name = filepath.Join(r.proc, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(r.t, os.WriteFile(name, []byte(text), 0o600))
}

func (r *restartable) boots(id string) {
	r.t.Helper()
	n := r.node()
	n.Status.NodeInfo.BootID = id
	_, err := r.client.CoreV1().Nodes().Update(r.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(r.t, err)
}

func (r *restartable) cordon(is bool) {
	r.t.Helper()
	n := r.node()
	n.Spec.Unschedulable = is
	_, err := r.client.CoreV1().Nodes().Update(r.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(r.t, err)
}

// agent simulates the start of the next agent.
func (r *restartable) agent() {
	r.t.Helper()
	r.restart(8)
	r.host.restarts, r.host.proc = true, r.proc
	r.host.signal = func(pid int, s syscall.Signal) error {
		assert.Equal(r.t, 1, pid)
		assert.EqualValues(r.t, 39, s, "SIGRTMIN+5")
		r.signals++
		return r.signal()
	}
}

func (r *restartable) order(change ...func(*repair.Restart)) {
	r.t.Helper()
	o := repair.Restart{ID: "one", Boot: "kubelet-1", Reason: "XID 79", By: "root", At: r.gpus.now()}
	for _, c := range change {
		c(&o)
	}
	require.NoError(r.t, repair.WriteRestart(r.t.Context(), r.client, r.node(), o))
}

// look makes the agent check its Node. look returns the agent's answer, or nil.
func (r *restartable) look() *repair.Answer {
	r.t.Helper()
	_, err := r.answerRestart(r.t.Context(), r.client, r.node())
	require.NoError(r.t, err)
	a, err := repair.ReadRestartAnswer(r.node())
	require.NoError(r.t, err)
	return a
}

func TestAMachineIsRestartedOnceAndItsGPUsAreChecked(t *testing.T) {
	r := newRestartable(t)
	require.Nil(t, r.look(), "nothing is ordered")
	r.order()
	for range 3 {
		require.Nil(t, r.look())
	}
	require.Equal(t, 1, r.signals, "one signal for half a minute")

	r.firstProcess("systemd", 99) // the next boot
	r.agent()
	for range 2 { // the kubelet hasn't reported the new boot ID at first
		a := r.look()
		require.NotNil(t, a)
		assert.True(t, a.Done, a.Message)
		assert.Contains(t, a.Message, "has restarted, and none of its 8 GPUs has a fault")
		r.boots("kubelet-2")
	}
	r.agent()
	assert.True(t, r.look().Done)
	assert.Equal(t, 1, r.signals)
}

func TestARestartContinuesAfterTheAgentWasKilled(t *testing.T) {
	r := newRestartable(t)
	r.order()
	r.signal = func() error { panic(killed{}) } // before systemd gets it
	require.PanicsWithValue(t, killed{}, func() { r.look() })
	r.signal = func() error { return nil }
	r.agent()
	require.Nil(t, r.look())
	require.Equal(t, 2, r.signals, "the boot is the same")
	r.firstProcess("systemd", 99)
	r.agent()
	require.True(t, r.look().Done)
	require.Equal(t, 2, r.signals, "the boot is another one")
}

func TestAMachineThatHasRestartedAlreadyIsLeftAlone(t *testing.T) {
	r := newRestartable(t)
	r.order()
	r.boots("kubelet-2") // a person was faster
	require.NoError(t, os.Remove(filepath.Join(r.proc, "1/stat")))
	require.True(t, r.look().Done)
	require.Zero(t, r.signals)
}

// A user resets the machine while the request waits. The kubelet reports the previous boot ID for some seconds.
func TestAMachineThatWasResetBeforeTheAgentSawTheOrder(t *testing.T) {
	r := newRestartable(t)
	r.order()
	r.kernel("kubelet-2")
	r.firstProcess("systemd", 99)
	r.agent()
	for range 3 {
		require.Nil(t, r.look())
	}
	require.Zero(t, r.signals)
	r.boots("kubelet-2")
	require.True(t, r.look().Done)
	require.Zero(t, r.signals)
}

// On a sandbox host, the kubelet's boot ID differs from the kernel's boot ID.
func TestAHostOfASandboxIsRestartedAfterTheAgentsFirstMinutes(t *testing.T) {
	r := newRestartable(t)
	r.kernel("shared")
	r.order()
	require.Nil(t, r.look())
	require.Zero(t, r.signals)
	r.host.since = r.host.since.Add(-settling)
	require.Nil(t, r.look())
	require.Equal(t, 1, r.signals)
}

// An agent that may not restart the machine reads its container's first process instead of the machine's first process.
func TestAnAgentWithoutTheRightNeverSaysThatTheMachineHasRestarted(t *testing.T) {
	for _, began := range []bool{false, true} {
		r := newRestartable(t)
		r.order()
		if began {
			require.Nil(t, r.look())
		}
		r.firstProcess("pai-agent", 5000)
		r.boots("kubelet-2")
		r.agent()
		r.host.restarts = false
		a := r.look()
		require.NotNil(t, a)
		require.False(t, a.Done)
		require.Contains(t, a.Message, "set agent.restartMachines to true")
	}
}

func TestARestartThatCantBeSaysWhy(t *testing.T) {
	for want, spoil := range map[string]func(*restartable){
		"set agent.restartMachines to true": func(r *restartable) { r.host.restarts = false },
		"isn't cordoned":                    func(r *restartable) { r.cordon(false) },
		"the claim default/job holds GPUs": func(r *restartable) {
			require.NoError(r.t, r.Driver.records.add(&record{UID: "u", Namespace: "default", Name: "job", Devices: []assigned{{"gpus", "gpu-2"}}}))
		},
		"too old, or the clocks differ":          func(r *restartable) { r.order(func(o *repair.Restart) { o.At = o.At.Add(-16 * time.Minute) }) },
		`is "pai-agent" and not systemd`:         func(r *restartable) { r.firstProcess("pai-agent", 11) },
		"can't read the machine's boot ID":       func(r *restartable) { require.NoError(r.t, os.Remove(filepath.Join(r.proc, "1/stat"))) },
		"operation not permitted":                func(r *restartable) { r.signal = func() error { return syscall.EPERM } },
		"install linux-headers-6.9 and run dkms": func(r *restartable) { r.next = nextWithout(r.t) },
		"the agent can't record it":              func(r *restartable) { r.ledger.file = filepath.Join(r.t.TempDir(), "gone", "orders.json") },
	} {
		r := newRestartable(t)
		r.order()
		spoil(r)
		a := r.look()
		require.NotNil(t, a, want)
		assert.False(t, a.Done)
		assert.Contains(t, a.Message, want)
		assert.Equal(t, strings.Contains(want, "permitted"), r.signals == 1, want)
		signals := r.signals
		r.cordon(true)
		r.agent()
		r.look()
		assert.Equal(t, signals, r.signals, "%s: an order has one answer", want)
	}
}

// nextWithout returns a machine whose next kernel has no module of the driver.
func nextWithout(t *testing.T) *nextBoot {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "boot"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "boot", "vmlinuz-6.9"), nil, 0o600))
	return &nextBoot{root: root}
}

func TestAFaultAfterARestartIsReported(t *testing.T) {
	r := newRestartable(t)
	r.order()
	require.Nil(t, r.look())
	r.firstProcess("systemd", 99)
	r.agent()
	r.sees(3, func(g *gpu.GPU) { g.Values[gpu.RowRemapFailed] = 1 })
	require.Nil(t, r.look(), "GPUs may take a while")
	r.host.since = r.host.since.Add(-settling)
	a := r.look()
	require.NotNil(t, a)
	assert.False(t, a.Done)
	assert.Contains(t, a.Message, "still has faults: GPU 3: it can no longer replace damaged memory")
}

// The time limit of systemd begins with the signal, because the request may already be old.
func TestASystemdThatDoesNotRestartTheMachineIsReported(t *testing.T) {
	r := newRestartable(t)
	r.order(func(o *repair.Restart) { o.At = o.At.Add(-repair.Valid + 10*time.Second) })
	require.Nil(t, r.look())
	at := time.Now()
	after := func(d time.Duration) *repair.Answer {
		r.agent()
		r.gpus.now = func() time.Time { return at.Add(d) }
		return r.look()
	}
	require.Nil(t, after(systemdTime-time.Minute), "also for the next agent")
	assert.Equal(t, 2, r.signals)
	assert.Contains(t, after(systemdTime+time.Minute).Message, "systemctl list-jobs")
	assert.Equal(t, 2, r.signals)
}

func TestAnAnswerOfARestartIsWrittenLater(t *testing.T) {
	r := newRestartable(t)
	r.order()
	require.Nil(t, r.look())
	r.firstProcess("systemd", 99)
	r.agent()
	seen := r.node()
	_, err := r.answerRestart(t.Context(), newOrdered(t).client, seen)
	require.NoError(t, err, "another Node has no such order")
	r.order(func(o *repair.Restart) { o.ID = "two" })
	_, err = r.answerRestart(t.Context(), r.client, seen)
	require.NoError(t, err)
	a, err := repair.ReadRestartAnswer(r.node())
	require.NoError(t, err)
	require.Nil(t, a, "the answer of an order that another one has replaced")
}

func TestHostileRestartOrdersDoNothing(t *testing.T) {
	r := newRestartable(t)
	for _, text := range []string{"{", "null", "[]", `{"id":1}`, `{"id":"a"}`, `{"boot":"kubelet-1"}`, `{"id":"` + strings.Repeat("x", 65) + `","boot":"kubelet-1"}`} {
		n := r.node()
		n.Annotations = map[string]string{repair.RestartAnnotation: text, repair.RestartAnswer: "]["}
		_, err := r.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
		_, err = r.answerRestart(t.Context(), r.client, n)
		require.NoError(t, err, text)
	}
	require.Zero(t, r.signals)
	_, err := repair.ReadRestartAnswer(r.node())
	require.Error(t, err)
}

// A user uncordons or removes the machine, or withdraws the request, while the agent waits and the watch is interrupted.
func TestTheAgentReadsItsNodeAgainBeforeARestart(t *testing.T) {
	for name, change := range map[string]func(*restartable){
		"uncordoned": func(r *restartable) { r.cordon(false) },
		"removed": func(r *restartable) {
			require.NoError(r.t, r.client.CoreV1().Nodes().Delete(r.t.Context(), "n1", metav1.DeleteOptions{}))
		},
		"withdrawn": func(r *restartable) {
			n := r.node()
			n.Annotations = nil
			_, err := r.client.CoreV1().Nodes().Update(r.t.Context(), n, metav1.UpdateOptions{})
			require.NoError(r.t, err)
		},
	} {
		r := newRestartable(t)
		r.order()
		seen := r.node()
		change(r)
		_, err := r.answerRestart(t.Context(), r.client, seen)
		require.NoError(t, err, name)
		require.Zero(t, r.signals, name)
	}
}
