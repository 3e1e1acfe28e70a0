package sandbox

import (
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

var (
	morning = time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)
	noon    = morning.Add(4 * time.Hour)
)

func lose(f *gpu.Fault) { f.Lost = true }
func heal(f *gpu.Fault) { *f = gpu.Fault{} }
func wear(f *gpu.Fault) { f.ECC++ }
func fail(f *gpu.Fault) { f.XID = 79 }
func twoHosts(k Kind) state {
	return state{Version: stateVersion, Name: "gpu", Kind: k, Hosts: []Host{
		{Name: "gpu-1", Address: netip.MustParseAddr("10.77.0.10"), Kind: k}, {Name: "gpu-2", Address: netip.MustParseAddr("10.77.0.11"), Kind: k},
	}}
}

// withAgent returns a sandbox whose first host has run an agent, and the path of the agent's file with faults.
func withAgent(t *testing.T) (s *Sandbox, file string) {
	t.Helper()
	s = &Sandbox{dir: t.TempDir(), state: twoHosts(Full)}
	folder := filepath.Join(s.dir, "hosts/gpu-1/var/lib/kubelet/plugins/gpu.paictl.openpai.org")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	return s, filepath.Join(folder, "faults.json")
}

func TestFaultsOfAGPUAddUpUntilItIsHealed(t *testing.T) {
	s, file := withAgent(t)
	for _, change := range []func(*gpu.Fault){wear, fail, wear} {
		_, err := s.FaultGPU("gpu-1", 3, morning, change)
		require.NoError(t, err)
	}
	_, err := s.FaultGPU("gpu-1", 0, morning, lose)
	require.NoError(t, err)
	got, err := s.FaultGPU("gpu-1", 3, noon, lose)
	require.NoError(t, err)
	want := gpu.Fault{XID: 79, ECC: 2, Lost: true, At: noon}
	assert.Equal(t, want, got)
	faults, err := gpu.ReadFaults(file)
	require.NoError(t, err)
	assert.Equal(t, map[int32]gpu.Fault{0: {Lost: true, At: morning}, 3: want}, faults)

	got, err = s.FaultGPU("gpu-1", 3, noon, heal)
	require.NoError(t, err)
	assert.Equal(t, gpu.Fault{}, got)
	faults, err = gpu.ReadFaults(file)
	require.NoError(t, err)
	assert.Equal(t, map[int32]gpu.Fault{0: {Lost: true, At: morning}}, faults, "others keep theirs")
}

func TestFaultsAreRefusedWithARemedyWhereNoAgentReportsThem(t *testing.T) {
	s, _ := withAgent(t)
	light := &Sandbox{dir: s.dir, state: twoHosts(Light)}
	simulated := &Sandbox{dir: s.dir, state: state{API: &apiState{}, Hosts: s.state.Hosts}}
	for name, tt := range map[string]struct {
		sandbox *Sandbox
		node    string
		want    string
		remedy  string
	}{
		"an unknown host":          {s, "gpu-3", `no host "gpu-3"`, "gpu-1, gpu-2"},
		"a host without agent":     {s, "gpu-2", "no agent has run on gpu-2", "paictl service start -n agent"},
		"a host of sshd alone":     {light, "gpu-1", "gpu-1 is a light host", "without --light"},
		"a node without a machine": {simulated, "gpu-1", "are simulated", "sandbox up --hosts 3"},
		"no node, and no machine":  {simulated, "x", "are simulated", "sandbox up --hosts 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tt.sandbox.FaultGPU(tt.node, 0, noon, lose)
			require.ErrorContains(t, err, tt.want)
			assert.Contains(t, hint.Of(err), tt.remedy)
		})
	}
	require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "hosts/gpu-2/var/lib/kubelet"), 0o755))
	_, err := s.FaultGPU("gpu-2", 0, noon, lose)
	require.ErrorContains(t, err, "no agent has run on gpu-2", "a host with a disk, too")
}

func TestAnIndexMustBeThatOfAGPU(t *testing.T) {
	for name, tt := range map[string]struct {
		files  []string // the files in the folders of the agent's pods
		index  int32
		remedy string // "" if the index is valid
	}{
		"negative":                     {nil, -1, "numbered from 0"},
		"their number isn't known":     {nil, 100, ""},
		"the last one":                 {[]string{`{"gpu-1":{"model":"A100","count":8,"simulated":true},"gpu-2":{"model":"A100","count":2,"simulated":true}}`}, 7, ""},
		"one beyond":                   {[]string{`{"gpu-1":{"model":"A100","count":8,"simulated":true}}`}, 8, "its GPUs are 0 to 7"},
		"one beyond the only one":      {[]string{`{"gpu-1":{"model":"A100","count":1,"simulated":true}}`}, 1, "its only GPU is 0"},
		"others are of other hosts":    {[]string{`{"gpu-2":{"model":"A100","count":8,"simulated":true}}`}, 8, ""},
		"a file that isn't one":        {[]string{`{`}, 8, ""},
		"two agents, one of them gone": {[]string{`{"gpu-1":{"model":"A100","count":8,"simulated":true}}`, `{"gpu-1":{"model":"A100","count":4,"simulated":true}}`}, 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, file := withAgent(t)
			for i, text := range tt.files {
				podFile(t, filepath.Join(s.dir, "hosts/gpu-1/var/lib/kubelet/pods", string(rune('a'+i))), text)
			}
			_, err := s.FaultGPU("gpu-1", tt.index, noon, lose)
			if tt.remedy == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "gpu-1 has no GPU ")
			assert.Contains(t, hint.Of(err), tt.remedy)
			var coded interface{ ExitCode() int }
			require.ErrorAs(t, err, &coded)
			assert.Equal(t, 2, coded.ExitCode())
			assert.NoFileExists(t, file)
		})
	}
}

// podFile writes a ConfigMap's file in the folder of a pod, with the symbolic links that the kubelet creates.
func podFile(t *testing.T, pod, text string) {
	t.Helper()
	volume := filepath.Join(pod, "volumes/kubernetes.io~configmap/machines")
	require.NoError(t, os.MkdirAll(filepath.Join(volume, "..2026_01_02"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(volume, "..2026_01_02/machines.json"), []byte(text), 0o600))
	require.NoError(t, os.Symlink("..2026_01_02", filepath.Join(volume, "..data")))
	require.NoError(t, os.Symlink("..data/machines.json", filepath.Join(volume, "machines.json")))
}

func TestTheChartOfTheAgentNamesItsFilesAsTheyAreLookedFor(t *testing.T) {
	b, err := os.ReadFile("../../../templates/charts/agent/templates/daemonset.yaml")
	require.NoError(t, err)
	for _, line := range []string{"--machines=/etc/pai-agent/machines.json", "{name: machines, mountPath: /etc/pai-agent,", "        - name: machines\n          configMap:", "  machines.json:"} {
		assert.Contains(t, string(b), line)
	}
}

func TestALinkOfTheHostDoesNotLeadToFilesOfThisMachine(t *testing.T) {
	s, _ := withAgent(t)
	mine := t.TempDir()
	plugins := filepath.Join(s.dir, "hosts/gpu-2/var/lib/kubelet/plugins")
	require.NoError(t, os.MkdirAll(plugins, 0o755))
	require.NoError(t, os.Symlink(mine, filepath.Join(plugins, "gpu.paictl.openpai.org")))
	_, err := s.FaultGPU("gpu-2", 0, noon, lose)
	require.ErrorContains(t, err, "look for the agent's folder on gpu-2")
	entries, err := os.ReadDir(mine)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestFaultsThatCannotBeReadAreKept(t *testing.T) {
	s, file := withAgent(t)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := s.FaultGPU("gpu-1", 0, noon, heal)
	require.ErrorContains(t, err, file)
	assert.Contains(t, hint.Of(err), "rm "+file)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "{", string(b))
}

func TestFaultsOfCommandsThatRunAtOnceAreAllThereOrRefused(t *testing.T) {
	s, file := withAgent(t)
	unlock, err := lock(s.dir)
	require.NoError(t, err)
	_, err = s.FaultGPU("gpu-1", 0, noon, lose)
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	assert.NoFileExists(t, file)
	unlock()

	var all sync.WaitGroup
	done := make([]bool, 16)
	for i := range done {
		all.Go(func() {
			_, err := s.FaultGPU("gpu-1", int32(i), noon, lose)
			done[i] = err == nil
		})
	}
	all.Wait()
	faults, err := gpu.ReadFaults(file)
	require.NoError(t, err)
	for i, ok := range done {
		assert.Equal(t, ok, faults[int32(i)].Lost, "GPU %d", i)
	}
	assert.Contains(t, done, true)
}
