package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

const podUID = "0c7a6f5e-1d3b-4b52-8f5e-5f0d2a7b9c11"

func group(t *testing.T, root, path, processes string) string {
	t.Helper()
	dir := filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pids.current"), []byte(processes+"\n"), 0o600))
	return dir
}

func TestWhetherProcessesOfAPodRun(t *testing.T) {
	t.Parallel()
	const lined = "0c7a6f5e_1d3b_4b52_8f5e_5f0d2a7b9c11"
	for name, tt := range map[string]struct {
		unified bool
		groups  map[string]string
		want    bool
	}{
		"systemd":                    {true, map[string]string{"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + lined + ".slice": "3"}, true},
		"systemd, guaranteed":        {true, map[string]string{"kubepods.slice/kubepods-pod" + lined + ".slice": "1"}, true},
		"cgroupfs":                   {true, map[string]string{"kubepods/besteffort/pod" + podUID: "1"}, true},
		"version 1":                  {false, map[string]string{"pids/kubepods/besteffort/pod" + podUID: "2"}, true},
		"version 1, another place":   {false, map[string]string{"pids/machine.slice/m1/kubepods/pod" + podUID: "2"}, true},
		"it has ended":               {true, map[string]string{"kubepods/besteffort/pod" + podUID: "0"}, false},
		"it is gone":                 {true, map[string]string{"kubepods/besteffort/pod1c7a6f5e-1d3b-4b52-8f5e-5f0d2a7b9c11": "1"}, false},
		"another one, in version 1":  {false, map[string]string{"pids/kubepods/besteffort/pod1c7a6f5e-1d3b-4b52-8f5e-5f0d2a7b9c11": "1"}, false},
		"the same name, another use": {true, map[string]string{"other/" + podUID: "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if tt.unified {
				require.NoError(t, os.WriteFile(filepath.Join(root, "cgroup.controllers"), nil, 0o600))
			}
			for path, n := range tt.groups {
				group(t, root, path, n)
			}
			running, err := (&processes{root}).runs(podUID)
			require.NoError(t, err)
			assert.Equal(t, tt.want, running)
		})
	}
	_, err := (&processes{t.TempDir()}).runs(podUID)
	require.ErrorContains(t, err, "is unknown", "version 1 without its tree")
}

// A force-deleted pod no longer exists in the API, but its containers still run.
func TestNothingIsTakenBackFromPodsThatRun(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	c := claimOf("a", "gpu-3")
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: podUID}}
	_, err := m.prepare(c)
	require.NoError(t, err)
	dir := group(t, m.cgroups, "pids/kubepods/pod"+podUID, "1")
	m.restart(8) // the record has the pod
	unprepare := func() error {
		out, err := m.UnprepareResourceClaims(t.Context(), []kubeletplugin.NamespacedObject{{UID: "a"}})
		require.NoError(t, err)
		return out[types.UID("a")]
	}
	require.ErrorContains(t, unprepare(), "processes of the pod "+podUID+" still run")
	_, err = m.prepare(claimOf("b", "gpu-3"))
	require.ErrorContains(t, err, "gpu-3 belongs to the claim jobs/claim-a")

	none := filepath.Join(t.TempDir(), "none")
	require.NoError(t, os.WriteFile(none, []byte("0\n"), 0o600))
	time.AfterFunc(300*time.Millisecond, func() { _ = os.Rename(none, filepath.Join(dir, "pids.current")) })
	require.NoError(t, unprepare(), "they may take a moment to end")
	_, err = m.prepare(claimOf("b", "gpu-3"))
	require.NoError(t, err)
}
