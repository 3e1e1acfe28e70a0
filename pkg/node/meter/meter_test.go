package meter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	"github.com/openpai/paictl/test/tier"
)

const (
	ours   = "11111111-2222-3333-4444-555555555555"
	others = "99999999-2222-3333-4444-555555555555"
)

// id returns a container ID that contains the number n.
func id(n int) string { return fmt.Sprintf("%064x", n) }

type machine struct {
	*Meter

	t       *testing.T
	now     time.Time
	version int
	// grows is the CPU time that each container uses per second. cpu is the total CPU time of each container.
	grows  map[string]time.Duration
	cpu    map[string]time.Duration
	pauses int
	reads  int
}

func newMachine(t *testing.T, version int) *machine {
	m := &machine{Meter: New(t.TempDir()), t: t, now: time.Now(), version: version, grows: map[string]time.Duration{}, cpu: map[string]time.Duration{}}
	if version == 2 {
		m.write("cgroup.controllers", "cpu memory\n")
	} else {
		m.write("memory/memory.stat", "")
		require.NoError(t, os.Mkdir(filepath.Join(m.folder, "cpu,cpuacct"), 0o700))
		require.NoError(t, os.Symlink("cpu,cpuacct", filepath.Join(m.folder, "cpuacct")))
	}
	m.Meter.now = func() time.Time { return m.now }
	m.pause = func(_ context.Context, d time.Duration) error {
		m.pauses++
		m.pass(d)
		return nil
	}
	m.read = func(pods map[string]bool) (reading, error) {
		m.reads++
		return m.readGroups(pods)
	}
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	name = filepath.Join(m.folder, name)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(m.t, os.WriteFile(name, []byte(text), 0o600))
}

// pass advances the clock and the CPU time of the containers.
func (m *machine) pass(d time.Duration) {
	m.t.Helper()
	m.now = m.now.Add(d)
	for group, by := range m.grows {
		m.cpu[group] += time.Duration(by.Seconds() * float64(d))
		m.count(group)
	}
}

func (m *machine) count(group string) {
	m.t.Helper()
	if m.version == 2 {
		m.write(group+"/cpu.stat", fmt.Sprintf("usage_usec %d\nuser_usec 1\nsystem_usec 1\n", m.cpu[group].Microseconds()))
		return
	}
	m.write("cpuacct/"+group+"/cpuacct.usage", fmt.Sprintf("%d\n", m.cpu[group].Nanoseconds()))
}

// run starts a container in a control group. cores and used are the CPU and memory use. idle is the size of the caches of idle files, which are a
// part of used.
func (m *machine) run(group string, cores float64, used, idle int64) {
	m.t.Helper()
	m.grows[group], m.cpu[group] = time.Duration(cores*float64(time.Second)), time.Hour
	if m.version == 2 {
		m.write(group+"/memory.current", fmt.Sprintf("%d\n", used))
		m.write(group+"/memory.stat", fmt.Sprintf("anon 5\ninactive_file %d\nactive_file 7\n", idle))
	} else {
		m.write("memory/"+group+"/memory.usage_in_bytes", fmt.Sprintf("%d\n", used))
		m.write("memory/"+group+"/memory.stat", fmt.Sprintf("inactive_file 1\ntotal_inactive_file %d\n", idle))
	}
	m.count(group)
}

func (m *machine) use() []logapi.Use {
	m.t.Helper()
	list, err := m.Use(m.t.Context(), map[string]bool{ours: true})
	require.NoError(m.t, err)
	return list
}

// inSystemd and inFolders return the control group of a container. The names have the form of the kubelet's two cgroup drivers.
func inSystemd(pod string, n int) string {
	return "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(pod, "-", "_") + ".slice/cri-containerd-" + id(n) + ".scope"
}

func inFolders(pod string, n int) string { return "kubepods/pod" + pod + "/" + id(n) }

func TestContainersOfJobsAreMeasuredByTheirControlGroups(t *testing.T) {
	for name, group := range map[string]func(string, int) string{"systemd": inSystemd, "cgroupfs": inFolders} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, version %d", name, version), func(t *testing.T) {
				m := newMachine(t, version)
				m.run(group(ours, 1), 1.5, 100<<20, 30<<20)
				m.run(group(ours, 2), 0, 1<<20, 2<<20) // the two numbers aren't read at once
				m.run(group(others, 3), 8, 1<<30, 0)
				m.run("system.slice/some.service", 8, 1<<30, 0)
				busy, idle := 1.5, 0.0
				want := []logapi.Use{{Pod: ours, Container: id(1), CPU: &busy, Memory: 70 << 20}, {Pod: ours, Container: id(2), CPU: &idle}}
				assert.Equal(t, want, m.use())
			})
		}
	}
}

func TestProcessesOfTheRuntimeBesideAContainerAreNotIt(t *testing.T) {
	m := newMachine(t, 2)
	pod := filepath.Dir(inSystemd(ours, 1))
	m.run(pod+"/crio-"+id(1)+".scope", 1, 5, 0)
	m.run(pod+"/crio-conmon-"+id(1)+".scope", 7, 70, 0)
	list := m.use()
	require.Len(t, list, 1)
	assert.Equal(t, int64(5), list[0].Memory)
}

func TestManyQuestionsReadTheMachineOnce(t *testing.T) {
	m := newMachine(t, 2)
	group := inSystemd(ours, 1)
	m.run(group, 1, 1, 0)
	assert.InDelta(t, 1, *m.use()[0].CPU, 1e-6)
	assert.Equal(t, []int{2, 1}, []int{m.reads, m.pauses}, "before the second in which it measures, and after it")
	m.grows[group] = 3 * time.Second
	m.pass(shortest / 2)
	for range 20 {
		assert.InDelta(t, 1, *m.use()[0].CPU, 1e-6, "as answered half a second before")
	}
	assert.Equal(t, 2, m.reads, "questions within a second are answered from what was read")
	m.pass(5 * time.Second)
	assert.InDelta(t, 3, *m.use()[0].CPU, 1e-6, "the mean since the last reading")
	assert.Equal(t, []int{3, 1}, []int{m.reads, m.pauses}, "only the first question waits")
	m.pass(time.Hour)
	m.grows[group] = 2 * time.Second
	assert.InDelta(t, 2, *m.use()[0].CPU, 1e-6, "what was an hour ago says nothing about now")
	assert.Equal(t, []int{5, 2}, []int{m.reads, m.pauses})
}

func TestQuestionsAtOnceWaitForOneReading(t *testing.T) {
	m := newMachine(t, 2)
	m.run(inSystemd(ours, 1), 1, 1, 0)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			list, err := m.Use(t.Context(), map[string]bool{ours: true})
			assert.NoError(t, err)
			assert.Len(t, list, 1)
		})
	}
	all.Wait()
	assert.Equal(t, []int{2, 1}, []int{m.reads, m.pauses})
}

func TestPodsThatWereNotAskedAboutAreLookedForAtOnce(t *testing.T) {
	m := newMachine(t, 2)
	asks := func(pods ...string) (containers []string) {
		set := map[string]bool{}
		for _, uid := range pods {
			set[uid] = true
		}
		list, err := m.Use(t.Context(), set)
		require.NoError(t, err)
		for _, u := range list {
			containers = append(containers, u.Container)
		}
		return containers
	}
	m.run(inSystemd(ours, 1), 1, 1, 0)
	m.run(inSystemd(others, 2), 1, 1, 0)
	assert.Equal(t, []string{id(1)}, asks(ours))
	assert.Equal(t, []string{id(1), id(2)}, asks(ours, others))
	reads := m.reads
	assert.Equal(t, []string{id(2)}, asks(others), "only what was asked about is told")
	assert.Equal(t, reads, m.reads)
	for range 2 {
		assert.Equal(t, []string{id(1)}, asks(ours, "a pod without containers"))
	}
	assert.Equal(t, reads+1, m.reads)
}

func TestContainersThatComeAndGoAreMeasuredWhileTheyAreThere(t *testing.T) {
	m := newMachine(t, 2)
	assert.Empty(t, m.use())
	assert.Empty(t, m.use())
	assert.Equal(t, []int{1, 0}, []int{m.reads, m.pauses}, "where nothing runs nothing is waited for")
	m.pass(shortest)
	m.run(inSystemd(ours, 1), 1, 1, 0)
	require.Len(t, m.use(), 1)
	m.run(inSystemd(ours, 2), 2, 1, 0)
	assert.Len(t, m.use(), 1, "within a second the answer is the same")
	m.pass(shortest)
	list := m.use()
	require.Len(t, list, 2)
	assert.InDelta(t, 2, *list[1].CPU, 1e-6, "of one that has just come, too")
	require.NoError(t, os.RemoveAll(filepath.Join(m.folder, inSystemd(ours, 1))))
	delete(m.grows, inSystemd(ours, 1))
	m.pass(shortest)
	assert.Len(t, m.use(), 1, "one that has ended is not told")

	began := false
	m.pause = func(_ context.Context, d time.Duration) error {
		if !began {
			m.run(inSystemd(ours, 4), 1, 9, 0)
		}
		began = true
		m.pass(d)
		return nil
	}
	m.pass(time.Hour)
	list = m.use()
	require.Len(t, list, 2)
	assert.Nil(t, list[1].CPU, "it began while the others were measured")
	assert.Equal(t, int64(9), list[1].Memory)
}

func TestAContainerWhoseCountersStartOverHasNoCPUYet(t *testing.T) {
	m := newMachine(t, 2)
	group := inSystemd(ours, 1)
	m.run(group, 1, 1, 0)
	m.use()
	m.pass(5 * time.Second)
	m.cpu[group] = 0
	m.count(group)
	assert.Nil(t, m.use()[0].CPU)
}

func TestWhoLeavesWhileItIsMeasuredLeavesTheAnswerToOthers(t *testing.T) {
	m := newMachine(t, 2)
	m.run(inSystemd(ours, 1), 1, 1, 0)
	leave, waits := errors.New("left"), m.pause
	m.pause = func(context.Context, time.Duration) error { return leave }
	_, err := m.Use(t.Context(), map[string]bool{ours: true})
	require.ErrorIs(t, err, leave)
	m.pause = waits
	assert.NotNil(t, m.use()[0].CPU)

	m.turn <- struct{}{} // another one reads
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Use(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestDamagedCountersAreLeftOut(t *testing.T) {
	for file, text := range map[string]string{"cpu.stat": "user_usec 5\n", "memory.current": "much\n", "memory.stat": ""} {
		m := newMachine(t, 2)
		m.run(inSystemd(ours, 1), 1, 1, 0)
		m.grows = nil
		m.write(inSystemd(ours, 1)+"/"+file, text)
		assert.Empty(t, m.use(), file)
	}
}

func TestAMachineWithoutControlGroupsIsAnError(t *testing.T) {
	_, err := New(filepath.Join(t.TempDir(), "absent")).Use(t.Context(), nil)
	require.ErrorContains(t, err, "read the machine's control groups")
}

// The numbers come from the real kernel, for a process in a control group.
func TestAProcessIsMeasuredByTheKernel(t *testing.T) {
	tier.More(t, "control groups")
	const folder = "/sys/fs/cgroup"
	trees := []string{"."}
	if _, err := os.Stat(folder + "/cgroup.controllers"); err != nil {
		trees = []string{"memory", "cpuacct"}
	}
	pod := fmt.Sprintf("%08x-0000-4000-8000-000000000000", os.Getpid())
	for _, tree := range trees {
		group := filepath.Join(folder, tree, "pod"+pod, id(1))
		if err := os.MkdirAll(group, 0o700); err != nil {
			t.Skip("control groups can't be made here: " + err.Error())
		}
		t.Cleanup(func() { assert.NoError(t, errors.Join(os.Remove(group), os.Remove(filepath.Dir(group)))) })
	}
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	require.NoError(t, busy.Start())
	t.Cleanup(func() { // before its groups go
		_ = busy.Process.Kill()
		_ = busy.Wait()
	})
	for _, tree := range trees {
		group := filepath.Join(folder, tree, "pod"+pod, id(1))
		if _, err := os.Stat(group + "/memory.stat"); tree != "cpuacct" && err != nil {
			t.Skip("groups that are made here don't count memory")
		}
		require.NoError(t, os.WriteFile(group+"/cgroup.procs", []byte(strconv.Itoa(busy.Process.Pid)), 0o600))
	}
	list, err := New(folder).Use(t.Context(), map[string]bool{pod: true})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NotNil(t, list[0].CPU)
	assert.Positive(t, *list[0].CPU)
	assert.Equal(t, id(1), list[0].Container)
}
