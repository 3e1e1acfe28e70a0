package env_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

// job returns a job with two roles. One role has a different name in the Framework.
func job() *spec.Spec {
	ports := []spec.Port{{Label: "ssh", Count: 1}, {Label: "http", Count: 2}}
	return &spec.Spec{
		Version: 1, Framework: "0123abcd", User: "alice", Job: "train", VirtualCluster: "vc1", Gang: true,
		Domain: "0123abcd.pai-jobs.svc.cluster.local", CheckpointDir: "/mnt/data/.checkpoints/alice/train",
		Code: &spec.Code{Dir: "/usr/local/pai/code"},
		Roles: []spec.Role{
			{Name: "ps_server", Object: "psserver", Instances: 1, CPU: 2, MemoryMB: 512, MinFailed: 1, MinSucceeded: -1, Ports: ports, Command: "x"},
			{Name: "Worker", Object: "worker", Instances: 2, GPU: 4, CPU: 8, MemoryMB: 1024, ShmMB: 256, MinFailed: 1, MinSucceeded: 2, Ports: ports, Command: "x"},
		},
	}
}

func addresses(uids bool) *peers.Peers {
	p := &peers.Peers{Attempt: 2, Roles: []peers.Role{
		{Name: "psserver", PodIPs: []string{"10.0.0.1"}, HostIPs: []string{"192.168.1.1"}},
		{Name: "worker", PodIPs: []string{"10.0.0.2", "10.0.0.3"}, HostIPs: []string{"192.168.1.1", "192.168.1.2"}},
	}}
	if uids {
		p.Roles[0].PodUIDs = []string{"uid-a"}
		p.Roles[1].PodUIDs = []string{"uid-b", "uid-c"}
	}
	return p
}

func self() env.Self {
	return env.Self{Role: "worker", Index: 1, Attempt: 2, TaskAttempt: 1, PodIP: "10.0.0.3", HostIP: "192.168.1.2", PodUID: "uid-c", WorkDir: "/workspace"}
}

func layout(t *testing.T, s *spec.Spec, p *peers.Peers, me env.Self) *env.Layout {
	t.Helper()
	l, err := env.New(s, p, me)
	require.NoError(t, err)
	return l
}

func TestATaskIsToldOfItsJobInBothSpellings(t *testing.T) {
	l := layout(t, job(), addresses(false), self())
	vars, notes := l.Vars(0)
	assert.Empty(t, notes)
	golden(t, "pod-network.sh", env.Script(vars))
	golden(t, "pod-network.hostfile", l.Hostfile())
	golden(t, "pod-network.hosts", l.Hosts([]byte("127.0.0.1\tlocalhost\n")))
	data, err := l.PeersJSON()
	require.NoError(t, err)
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, data, "", "  "))
	golden(t, "pod-network.json", pretty.Bytes())
}

func TestOnTheHostNetworkPortsAreDrawnByTheUIDsOfPods(t *testing.T) {
	s := job()
	s.HostNetwork, s.PortStart, s.PortEnd, s.Domain = true, 20000, 30000, ""
	vars, _ := layout(t, s, addresses(true), self()).Vars(0)
	golden(t, "host-network.sh", env.Script(vars))
}

func TestAJobOfOneTaskMeetsItself(t *testing.T) {
	s := job()
	s.Roles = s.Roles[:1]
	l := layout(t, s, nil, env.Self{Role: "psserver"})
	address, port := l.Master()
	assert.Equal(t, "127.0.0.1", address)
	assert.Equal(t, 29500, port)
	assert.Equal(t, 1, l.World)
}

func TestWithoutPeersATaskKnowsItsOwnAddressOnly(t *testing.T) {
	vars, _ := layout(t, job(), nil, self()).Vars(0)
	got := values(vars)
	assert.Equal(t, "10.0.0.3", got["PAI_HOST_IP_Worker_1"])
	assert.NotContains(t, got, "PAI_HOST_IP_Worker_0")
	assert.Equal(t, "psserver-0.0123abcd.pai-jobs.svc.cluster.local", got["MASTER_ADDR"])
	assert.Equal(t, "9", got["WORLD_SIZE"])
}

func TestAJobThatWasScaledIsCountedAsItIs(t *testing.T) {
	p := addresses(false)
	p.Roles[1].PodIPs = append(p.Roles[1].PodIPs, "10.0.0.4")
	p.Roles[1].HostIPs = append(p.Roles[1].HostIPs, "192.168.1.3")
	got := values(first(layout(t, job(), p, self()).Vars(0)))
	assert.Equal(t, "3", got["PAI_TASK_ROLE_TASK_COUNT_Worker"])
	assert.Equal(t, "13", got["WORLD_SIZE"])

	p.Roles = p.Roles[1:] // the parameter servers are gone
	got = values(first(layout(t, job(), p, self()).Vars(0)))
	assert.Equal(t, "0", got["PAI_TASK_ROLE_TASK_COUNT_ps_server"])
	assert.Equal(t, "12", got["WORLD_SIZE"])

	late := self()
	late.Index, late.PodIP = 5, "10.0.0.9"
	got = values(first(layout(t, job(), p, late).Vars(0)))
	assert.Equal(t, "10.0.0.9", got["PAI_HOST_IP_Worker_5"], "a task that was added later knows itself")
}

func TestATaskThatCannotBeIsRefused(t *testing.T) {
	_, err := env.New(job(), nil, env.Self{Role: "Worker"})
	require.ErrorContains(t, err, `no role "Worker"`)
	_, err = env.New(job(), nil, env.Self{Role: "worker", Index: 1 << 30})
	require.Error(t, err)
}

func TestTheUsersSpellingWinsWhereItIsAnothersObjectName(t *testing.T) {
	s := job()
	s.Roles[0].Name, s.Roles[0].Object = "worker", "worker2" // and the second is Worker, worker
	got := values(first(layout(t, s, nil, self()).Vars(0)))
	assert.Equal(t, "1", got["PAI_TASK_ROLE_TASK_COUNT_worker"])
	assert.Equal(t, "2", got["PAI_TASK_ROLE_TASK_COUNT_Worker"])
}

func TestManyTasksAreLeftOutOfTheEnvironmentButNotOfTheFile(t *testing.T) {
	s, p := job(), addresses(false)
	s.Roles[1].Instances = 10_000
	for i := 2; i < 10_000; i++ {
		p.Roles[1].PodIPs = append(p.Roles[1].PodIPs, fmt.Sprintf("10.%d.%d.%d", i>>16+1, i>>8&255, i&255))
		p.Roles[1].HostIPs = append(p.Roles[1].HostIPs, "192.168.1.1")
	}
	l := layout(t, s, p, self())
	vars, notes := l.Vars(100)
	size := 0
	for _, v := range vars {
		size += len(v.Name) + len(v.Value) + 2
		assert.Less(t, len(v.Name)+len(v.Value)+2, 128<<10)
	}
	assert.Less(t, size, env.MaxBytes)
	assert.Contains(t, strings.Join(notes, "\n"), "peers.json has all of them")
	got := values(vars)
	assert.NotContains(t, got, "PAI_HOST_IP_Worker_1")
	assert.Equal(t, "10001", got["PAI_TASKS_NUM"])
	data, err := l.PeersJSON()
	require.NoError(t, err)
	assert.Contains(t, string(data), `"address":"10.1.39.15"`, "the last one is there")

	cmd := exec.Command("/bin/sh", "-c", "echo $PAI_TASKS_NUM")
	cmd.Env = env.Merge([]string{"PATH=/bin:/usr/bin"}, vars)
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, "10001\n", string(out))
}

func TestTheSecondSpellingIsLeftOutFirst(t *testing.T) {
	l := layout(t, job(), addresses(false), self())
	all, _ := l.Vars(0)
	size := 0
	for _, v := range all {
		size += len(v.Name) + len(v.Value) + 10
	}
	vars, notes := l.Vars(env.MaxBytes - size + 1)
	assert.Empty(t, notes, "nothing of it is missing")
	assert.Contains(t, values(vars), "PAI_HOST_IP_Worker_0")
	assert.NotContains(t, values(vars), "PAI_HOST_IP_worker_0")
}

func TestAShellReadsTheFileAsItIs(t *testing.T) {
	want := []env.Var{
		{Name: "A", Value: `it's "quoted" $HOME $(id) \ back` + "`tick`"},
		{Name: "B", Value: "two\nlines\n\n"},
		{Name: "C", Value: ""},
		{Name: "D", Value: "''"},
		{Name: "E", Value: "bytes \xff\xfe é"},
	}
	script := env.Script(append(want, env.Var{Name: "not-a-name", Value: "x"}, env.Var{Name: "NUL", Value: "a\x00b"}))
	name := filepath.Join(t.TempDir(), "env.sh")
	require.NoError(t, os.WriteFile(name, script, 0o644))
	out, err := exec.Command("sh", "-eu", "-c", `. "$0"; env -0`, name).Output()
	require.NoError(t, err)
	for _, v := range want {
		assert.Contains(t, "\x00"+string(out), "\x00"+v.Name+"="+v.Value+"\x00")
	}
	assert.NotContains(t, string(out), "NUL=")
	got, err := env.ParseScript(script)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestAFileThatSomebodyChangedIsRefusedWithTheLine(t *testing.T) {
	for _, text := range []string{"export A='1'\nA=2\n", "export A='1'\nexport B='", "export A='1'\nexport B='x'y\n", "export A='1'\nexport 1B='x'\n"} {
		_, err := env.ParseScript([]byte(text))
		assert.ErrorContains(t, err, "line 2", "%q", text)
	}
}

func TestVariablesReplaceThoseOfTheContainer(t *testing.T) {
	got := env.Merge([]string{"PATH=/bin", "RANK=7"}, []env.Var{{Name: "RANK", Value: "1"}})
	assert.Equal(t, []string{"PATH=/bin", "RANK=1"}, got)
}

func TestNamesOfTasksAreAddedToTheHostsFileOnce(t *testing.T) {
	l := layout(t, job(), addresses(false), self())
	once := l.Hosts([]byte("127.0.0.1 localhost"))
	assert.Equal(t, string(once), string(l.Hosts(once)))
	assert.True(t, strings.HasPrefix(string(once), "127.0.0.1 localhost\n"))
}

func TestFilesAreWrittenWhereTheEnvironmentSaysTheyAre(t *testing.T) {
	root := t.TempDir()
	l := layout(t, job(), addresses(false), self())
	vars, _ := l.Vars(0)
	require.NoError(t, l.Write(root, vars))
	got := values(vars)
	for _, name := range []string{got["PAI_PEERS_FILE"], got["PAI_HOSTFILE"], env.ScriptFile} {
		assert.FileExists(t, filepath.Join(root, name))
	}
}

func FuzzScript(f *testing.F) {
	f.Add("A", "it's", "_b1", "\n'\\''")
	f.Fuzz(func(t *testing.T, n1, v1, n2, v2 string) {
		in := []env.Var{{Name: n1, Value: v1}, {Name: n2, Value: v2}}
		out, err := env.ParseScript(env.Script(in))
		require.NoError(t, err)
		for _, v := range out {
			assert.Contains(t, in, v)
		}
		_, _ = env.ParseScript([]byte(v1)) // no panic
	})
}

func values(vars []env.Var) map[string]string {
	out := map[string]string{}
	for _, v := range vars {
		out[v.Name] = v.Value
	}
	return out
}

func first(vars []env.Var, _ []string) []env.Var { return vars }
