package sandbox

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/renameio/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
)

func TestOptionsAreRefusedWithARemedy(t *testing.T) {
	for name, tt := range map[string]struct {
		opts Options
		want string
	}{
		"no hosts":                  {Options{Hosts: 0}, "0 hosts can't be made"},
		"more hosts than addresses": {Options{Hosts: 201}, "201 hosts can't be made"},
		"a name too long":           {Options{Hosts: 1, Name: "ninechars"}, `the sandbox name "ninechars"`},
		"a name with capitals":      {Options{Hosts: 1, Name: "Pai"}, `the sandbox name "Pai"`},
		"a name that ends wrong":    {Options{Hosts: 1, Name: "pai-"}, `the sandbox name "pai-"`},
		"a release's version":       {Options{Hosts: 1, Release: "24.04"}, `"24.04" is not the codename of a release`},
		"a release with a path":     {Options{Hosts: 1, Release: "../x"}, "is not the codename of a release"},
		"a mirror without scheme":   {Options{Hosts: 1, Release: "sid", Mirror: "deb.debian.org"}, "is not the address of a mirror"},
		"a mirror for no release":   {Options{Hosts: 1, Mirror: "http://deb.debian.org"}, "without the release"},
		"keys for no release":       {Options{Hosts: 1, Keyring: "/k"}, "without the release"},
		"a mirror that is a file":   {Options{Hosts: 1, Release: "sid", Mirror: "file:///srv"}, "is not the address of a mirror"},
		"a directory with a colon":  {Options{Hosts: 1, Dir: "/tmp/a:b"}, "mount options can't hold"},
		"a directory with a space":  {Options{Hosts: 1, Dir: "/tmp/a b"}, "mount options can't hold"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tt.opts.complete()
			require.ErrorContains(t, err, tt.want)
			assert.NotEmpty(t, hint.Of(err))
			var coded interface{ ExitCode() int }
			require.ErrorAs(t, err, &coded)
			assert.Equal(t, 2, coded.ExitCode())
		})
	}
}

func TestOptionsMustAgreeWithTheSandboxThatIsThere(t *testing.T) {
	st := state{Name: "pai", Kind: Full, Subnet: netip.MustParsePrefix("10.77.0.0/24")}
	for name, tt := range map[string]struct {
		opts Options
		want string
	}{
		"nothing said":   {Options{}, ""},
		"the same":       {Options{Name: "pai", Kind: Full, Subnet: "10.77.0.0/24"}, ""},
		"another name":   {Options{Name: "lab"}, "has the name pai, not lab"},
		"another kind":   {Options{Kind: Light}, "has the kind full, not light"},
		"another subnet": {Options{Subnet: "10.1.2.0/24"}, "has the subnet 10.77.0.0/24, not 10.1.2.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			err := st.agree(tt.opts)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
			assert.Contains(t, hint.Of(err), "sandbox down")
		})
	}
}

func TestFirstFreeStepsOverWhatIsTaken(t *testing.T) {
	first := netip.MustParsePrefix("10.77.0.0/24")
	for name, tt := range map[string]struct {
		taken []string
		want  string
	}{
		"nothing is taken":                 {nil, "10.77.0.0/24"},
		"a part of it is taken":            {[]string{"10.77.0.128/25"}, "10.78.0.0/24"},
		"a larger network holds two of it": {[]string{"10.76.0.0/14"}, "10.80.0.0/24"},
		"a name server lies in it":         {[]string{"10.77.0.53/32"}, "10.78.0.0/24"},
		"other networks":                   {[]string{"192.0.2.0/24", "fd00::/64"}, "10.77.0.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			var taken []netip.Prefix
			for _, p := range tt.taken {
				taken = append(taken, netip.MustParsePrefix(p))
			}
			got, ok := firstFree(first, 10, taken)
			require.True(t, ok)
			assert.Equal(t, tt.want, got.String())
		})
	}
	_, ok := firstFree(first, 10, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	assert.False(t, ok)
}

func TestRoutesAreReadFromTheKernelsTable(t *testing.T) {
	const table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
		"docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
	assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("172.17.0.0/16")}, parseRoutes(table))
}

func TestHierarchiesAreToldApart(t *testing.T) {
	hybrid := parseCgroups("tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n")
	assert.True(t, hybrid.isV1())
	assert.Equal(t, []string{"/sys/fs/cgroup/cpu/g", "/sys/fs/cgroup/unified/g"}, hybrid.groups("g"))
	unified := parseCgroups("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
	assert.False(t, unified.isV1())
	assert.Equal(t, []string{"/sys/fs/cgroup/g"}, unified.groups("g"))
}

func TestOnlyAVersion1MachineGetsVersion1Settings(t *testing.T) {
	v1 := nestedSettings(cgroups{v1: []string{"/sys/fs/cgroup/cpu"}})["kubelet"]
	assert.Equal(t, false, v1["failCgroupV1"])
	assert.Equal(t, "cgroupfs", v1["cgroupDriver"])
	v2 := nestedSettings(cgroups{unified: "/sys/fs/cgroup"})["kubelet"]
	assert.NotContains(t, v2, "failCgroupV1")
	assert.NotContains(t, v2, "cgroupDriver")
	assert.Equal(t, false, v2["failSwapOn"])
}

func TestTheMirrorIsThatOfTheReleaseItself(t *testing.T) {
	const debian = "Packages http://security.example/d trixie-security main\nDEP-11 http://mirror.example/d trixie main\n" +
		"Packages http://mirror.example/d trixie contrib\nPackages http://mirror.example/d trixie main\n"
	mirror, components := pickMirror(debian, "trixie")
	assert.Equal(t, "http://mirror.example/d", mirror)
	assert.Equal(t, []string{"main"}, components)
	const ubuntu = "Packages http://archive.example/u noble universe\nPackages http://archive.example/u noble main\n"
	mirror, components = pickMirror(ubuntu, "noble")
	assert.Equal(t, "http://archive.example/u", mirror)
	assert.Equal(t, []string{"main", "universe"}, components)
	mirror, _ = pickMirror(debian, "bookworm")
	assert.Empty(t, mirror)
}

func TestTheLastUserOfAKernelSettingRestoresIt(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, stateFile), nil, 0o600))
	}
	l := &ledger{Original: map[string]string{}, Users: map[string][]string{}}
	l.use("k", "0", a)
	l.use("k", "1", b) // a has raised the value in the meantime
	l.use("k", "1", b)
	assert.Empty(t, l.release(a))
	assert.Equal(t, map[string]string{"k": "0"}, l.release(b))
	assert.Empty(t, l.Users)
}

func TestASandboxWhoseDirectoryIsGoneHoldsNoKernelSetting(t *testing.T) {
	l := &ledger{Original: map[string]string{}, Users: map[string][]string{}}
	l.use("k", "0", filepath.Join(t.TempDir(), "gone"))
	l.use("k", "1", "/b")
	assert.Equal(t, map[string]string{"k": "0"}, l.release("/b"))
}

func TestTheUserJoinsTheGroupSudo(t *testing.T) {
	assert.Equal(t, "root:x:0:\nsudo:x:27:pai\n", joinSudo("root:x:0:\nsudo:x:27:\n"))
	assert.Equal(t, "sudo:*::bob,pai\n", joinSudo("sudo:*::bob\n"))
}

func TestScriptsAreValidShell(t *testing.T) {
	for _, name := range []string{"full.sh", "light.sh", "prepare.sh"} {
		b, err := script(name)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		out, err := exec.CommandContext(t.Context(), "sh", "-n", path).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
}

// renameio first writes a temporary file. The file stays if the process is killed.
func TestAlsoBegunFilesGoAndThoseOfOthersStay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"id_ed25519", "sandbox.json", "lock"} {
		f, err := renameio.NewPendingFile(filepath.Join(dir, name))
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Cleanup() })
	}
	theirs := []string{".notes", ".notes12", "12", "id_ed25519.bak"}
	for _, name := range append(theirs, "id_ed25519", "lock") {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, removeFiles(dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	left := []string{}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	assert.ElementsMatch(t, theirs, left)
	require.NoError(t, removeFiles(filepath.Join(dir, "none")))
}

func TestRemoveTreeRefusesWhatIsMountedBelow(t *testing.T) {
	// Every Linux machine has this mount. removeTree must not remove files below the mount.
	err := removeTree("/proc")
	require.ErrorContains(t, err, "something is mounted at /proc")
}

func TestASecondRunIsTurnedAway(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(dir)
	require.NoError(t, err)
	_, err = lock(dir)
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	assert.Equal(t, 5, locked.ExitCode())
	unlock()
	unlock, err = lock(dir)
	require.NoError(t, err)
	unlock()
}

func TestLoadSaysThatThereIsNone(t *testing.T) {
	_, err := Load(t.TempDir(), nil)
	require.ErrorIs(t, err, ErrNone)
	assert.Contains(t, hint.Of(err), "sandbox up")
}

func TestOneHostIsRemovedAndItsNumberIsFree(t *testing.T) {
	s := &Sandbox{dir: t.TempDir(), progress: func(string) {}, state: state{Version: stateVersion, Name: "lone", Kind: Light, Subnet: netip.MustParsePrefix("192.0.2.0/24")}}
	require.NoError(t, s.addHosts(3))
	key := s.state.Hosts[1].HostKey
	require.NoError(t, s.Remove(t.Context(), "lone-2"))
	assert.Equal(t, []string{"lone-1", "lone-3"}, s.Names())
	assert.NoDirExists(t, s.hostDir("lone-2"))
	assert.DirExists(t, s.hostDir("lone-3"))
	for _, file := range []string{s.KnownHosts(), s.QuickStart(), filepath.Join(s.dir, stateFile)} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(text), s.state.addressOf(2).String(), file)
		assert.Contains(t, string(text), s.state.addressOf(3).String(), file)
	}

	require.NoError(t, s.addHosts(3))
	assert.Equal(t, []string{"lone-1", "lone-2", "lone-3"}, s.Names())
	assert.NotEqual(t, key, s.state.Hosts[1].HostKey, "it is another machine")

	require.Error(t, s.Remove(t.Context(), "lone-9"))
	err := s.Remove(t.Context(), s.Names()...)
	require.ErrorContains(t, err, "a sandbox has at least one host")
	assert.Equal(t, []string{"lone-1", "lone-2", "lone-3"}, s.Names())
}
