package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePlatformIsReadFromTheMachine(t *testing.T) {
	tests := map[string]struct {
		release, mounts string
		want            platform
	}{
		"Debian with hybrid control groups": {
			"ID=debian\nVERSION_ID=\"12\"\n",
			"cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n",
			platform{System: "debian 12", Cgroup: "v1"},
		},
		"Ubuntu": {
			"PRETTY_NAME=\"Ubuntu 24.04\"\nVERSION_ID='24.04'\nID=ubuntu\n",
			"proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
			platform{System: "ubuntu 24.04", Cgroup: "v2"},
		},
		"a machine without these files": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range map[string]string{"etc/os-release": test.release, "proc/mounts": test.mounts} {
				require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
			}
			test.want.Arch = runtime.GOARCH
			assert.Equal(t, test.want, thisPlatform(root))
		})
	}
}

func TestTheReleaseOfKubernetesIsThatOfTheBundle(t *testing.T) {
	dir := t.TempDir()
	assert.Empty(t, kubernetesOf(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte("kind: Bundle\nkubernetes: v1.36.3\nartifacts:\n  - {kubernetes: v1}\n"), 0o600))
	assert.Equal(t, "v1.36.3", kubernetesOf(dir))
}

func TestHostsOfAnotherReleaseAreAnotherSystem(t *testing.T) {
	system, err := systemOfHosts("debian 12", "")
	require.NoError(t, err)
	assert.Equal(t, "debian 12", system)
	system, err = systemOfHosts("debian 12", "noble")
	require.NoError(t, err)
	assert.Equal(t, "ubuntu 24.04", system)
	_, err = systemOfHosts("debian 12", "wheezy")
	require.ErrorContains(t, err, "bookworm, jammy, noble, trixie")
}
