package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/secret"
)

// handWritten is a layout that looks as if an operator had edited it for months.
const handWritten = `# our cluster, ask Ann
apiVersion: paictl.openpai.org/v1
kind: Layout
ssh: {username: root, keyfile-path: id}

machine-sku:
  cpu-8c-16g:
    mem: 15Gi
    cpu: {vcore: 8}     # the old blades
    os: debian12
    arch: amd64
    discovered: true

# rack 1
machine-list:
- hostname: a
  hostip: 10.0.0.1
  machine-type: cpu-8c-16g
  roles: [master]

  # b was repaired in May
- hostname: b   # noisy fan
  hostip: 10.0.0.2
  machine-type: cpu-8c-16g
  roles:
  - worker
  labels: {rack: "1"}
# rack 2
- hostname: c
  hostip: 10.0.0.3
  machine-type: cpu-8c-16g
  roles: [worker]

# the end
`

func layoutFolder(t *testing.T, layoutText string) string {
	t.Helper()
	dir := t.TempDir()
	quick := filepath.Join(dir, "quick-start.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "id"), nil, 0o600))
	require.NoError(t, os.WriteFile(quick, []byte("ssh-username: root\nssh-keyfile-path: id\ndns: 10.0.0.53\nmachines: [10.0.0.1]\n"), 0o600))
	out := filepath.Join(dir, "cluster")
	_, err := Generate(t.Context(), Generation{QuickStart: quick, OutDir: out, Offline: true})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(out, LayoutFile), []byte(layoutText), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(out, "id"), nil, 0o600))
	return out
}

func layoutOf(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, LayoutFile))
	require.NoError(t, err)
	return string(b)
}

func blade(name string) layout.Facts {
	return layout.Facts{Hostname: name, OSID: "debian", OSVersion: "12", Arch: "amd64", VCores: 8, MemKiB: 15<<20 + 300<<10}
}

func worker(ip string) layout.Machine {
	return layout.Machine{HostIP: ip, Roles: []string{layout.RoleWorker}}
}

func TestAnAddedMachineComesBehindTheLastAndAllElseStays(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	e, err := AddMachines(dir, []layout.Machine{worker("10.0.0.4")}, map[string]layout.Facts{"10.0.0.4": blade("D")}, ServiceRules{})
	require.NoError(t, err)
	assert.Equal(t, handWritten, layoutOf(t, dir), "nothing is written yet")
	require.NoError(t, e.Write())
	added := "- hostname: d\n  hostip: 10.0.0.4\n  machine-type: cpu-8c-16g\n  roles:\n    - worker\n"
	assert.Equal(t, strings.Replace(handWritten, "\n# the end\n", added+"\n# the end\n", 1), layoutOf(t, dir))
	require.Len(t, e.Machines, 1)
	assert.Len(t, e.Cluster.Layout.MachineList, 4)

	require.NoError(t, e.Undo())
	assert.Equal(t, handWritten, layoutOf(t, dir))
}

func TestAddingAMachineTwiceChangesNothingTheSecondTime(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	facts := map[string]layout.Facts{"10.0.0.4": blade("d")}
	e, err := AddMachines(dir, []layout.Machine{worker("10.0.0.4")}, facts, ServiceRules{})
	require.NoError(t, err)
	require.NoError(t, e.Write())
	once := layoutOf(t, dir)
	e, err = AddMachines(dir, []layout.Machine{worker("10.0.0.4")}, facts, ServiceRules{})
	require.NoError(t, err)
	assert.Empty(t, e.Machines)
	require.NoError(t, e.Write())
	assert.Equal(t, once, layoutOf(t, dir))
}

func TestNewHardwareGetsASKUOfItsOwn(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	big := blade("d")
	big.VCores, big.MemKiB = 64, 503<<20
	small := blade("e")
	small.MemKiB = 8 << 20 // the same processors, half the memory, another name
	e, err := AddMachines(dir, []layout.Machine{worker("10.0.0.4"), worker("10.0.0.5")}, map[string]layout.Facts{"10.0.0.4": big, "10.0.0.5": small}, ServiceRules{})
	require.NoError(t, err)
	require.NoError(t, e.Write())
	text := layoutOf(t, dir)
	assert.Contains(t, text, "    cpu: {vcore: 8}     # the old blades\n")
	assert.Contains(t, text, "    discovered: true\n  cpu-64c-512g:\n    mem: 503Gi\n")
	l := e.Cluster.Layout
	assert.Equal(t, "cpu-64c-512g", l.MachineList[3].SKU)
	assert.Equal(t, "8Gi", l.MachineSKU[l.MachineList[4].SKU].Mem)
}

func TestARemovedMachineTakesItsCommentAlong(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	e, err := RemoveMachines(dir, []string{"b"}, ServiceRules{})
	require.NoError(t, err)
	require.NoError(t, e.Write())
	text := layoutOf(t, dir)
	from := strings.Index(handWritten, "  # b was repaired")
	to := strings.Index(handWritten, "# rack 2")
	assert.Equal(t, handWritten[:from]+handWritten[to:], text)

	again, err := RemoveMachines(dir, []string{"b"}, ServiceRules{})
	require.NoError(t, err)
	assert.Empty(t, again.Machines)
	require.NoError(t, again.Write())
	assert.Equal(t, text, layoutOf(t, dir))
}

func TestAnEditThatWouldBreakARuleIsRefused(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	_, err := RemoveMachines(dir, []string{"a"}, ServiceRules{})
	require.ErrorContains(t, err, "no machine runs the control plane")
	twin := worker("10.0.0.9")
	twin.Hostname, twin.SKU = "c", "cpu-8c-16g"
	_, err = AddMachines(dir, []layout.Machine{twin}, nil, ServiceRules{})
	require.EqualError(t, err, "c (10.0.0.9) cannot be added: the layout has c (10.0.0.3)")
	lost := worker("10.0.0.9")
	lost.Hostname, lost.SKU = "d", "no-such-sku"
	_, err = AddMachines(dir, []layout.Machine{lost}, nil, ServiceRules{})
	require.ErrorContains(t, err, "no-such-sku")
	assert.Equal(t, handWritten, layoutOf(t, dir))
}

func TestOtherStylesOfYAMLAreEditedToo(t *testing.T) {
	for name, edit := range map[string]func(string) string{
		"no newline at the end": func(s string) string { return strings.TrimSuffix(s, "\n\n# the end\n") },
		"indented list": func(s string) string {
			i := strings.Index(s, "- hostname: a")
			j := strings.Index(s, "\n# the end")
			return s[:i] + "  " + strings.ReplaceAll(strings.TrimSuffix(s[i:j], "\n"), "\n", "\n  ") + "\n" + s[j:]
		},
		"flow style": func(s string) string {
			i := strings.Index(s, "machine-list:")
			return s[:i] + "machine-list: [{hostname: a, hostip: 10.0.0.1, machine-type: cpu-8c-16g, roles: [master]}, {hostname: b, hostip: 10.0.0.2, machine-type: cpu-8c-16g, roles: [worker]}]\n"
		},
		"machines before SKUs": func(s string) string {
			i, j := strings.Index(s, "machine-sku:"), strings.Index(s, "# rack 1")
			return s[:i] + s[j:] + s[i:j]
		},
		"dash on its own line": func(s string) string { return strings.Replace(s, "- hostname: b ", "-\n  hostname: b ", 1) },
		"Windows line ends":    func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := layoutFolder(t, edit(handWritten))
			e, err := AddMachines(dir, []layout.Machine{worker("10.0.0.4")}, map[string]layout.Facts{"10.0.0.4": blade("d")}, ServiceRules{})
			require.NoError(t, err)
			require.NoError(t, e.Write())
			assert.Contains(t, layoutOf(t, dir), "# our cluster, ask Ann")
			e, err = RemoveMachines(dir, []string{"b"}, ServiceRules{})
			require.NoError(t, err)
			require.NoError(t, e.Write())
			c, _, err := LoadValid(dir)
			require.NoError(t, err)
			var names []string
			for _, m := range c.Layout.MachineList {
				names = append(names, m.Hostname)
			}
			assert.NotContains(t, names, "b")
			assert.Equal(t, "d", names[len(names)-1])
		})
	}
}

func TestALayoutWithAPasswordBecomesPrivate(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	m := worker("10.0.0.4")
	m.SSH = &layout.SSH{Username: "ops", Password: secret.String(`a"b'c: #d`)}
	e, err := AddMachines(dir, []layout.Machine{m}, map[string]layout.Facts{"10.0.0.4": blade("d")}, ServiceRules{})
	require.NoError(t, err)
	require.NoError(t, e.Write())
	info, err := os.Stat(filepath.Join(dir, LayoutFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	c, _, err := LoadValid(dir)
	require.NoError(t, err)
	assert.Equal(t, `a"b'c: #d`, c.Layout.MachineList[3].SSH.Password.Reveal())
}

func TestMachinesToAddAreNamedInSeveralWays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`machine-list:
- {hostname: x, hostip: 10.0.0.8, roles: [worker], ssh: {port: 2222}}
- {hostname: y, hostip: 10.0.0.9, machine-type: GENERIC, username: ops, password: "p'w", sshport: 22, k8s-role: worker, nodename: 10.0.0.9}
`), 0o600))
	got, err := NewMachines{Hosts: []string{"10.0.0.6", "z=10.0.0.7"}, File: file, User: "root", Roles: []string{"worker"}, SKU: "auto"}.Machines()
	require.NoError(t, err)
	ssh := func(u string, p secret.String, port int) *layout.SSH {
		return &layout.SSH{Username: u, Password: p, Port: port}
	}
	assert.Equal(t, []layout.Machine{
		{HostIP: "10.0.0.6", Roles: []string{"worker"}, SSH: ssh("root", "", 0)},
		{Hostname: "z", HostIP: "10.0.0.7", Roles: []string{"worker"}, SSH: ssh("root", "", 0)},
		{Hostname: "x", HostIP: "10.0.0.8", Roles: []string{"worker"}, SSH: ssh("root", "", 2222)},
		{Hostname: "y", HostIP: "10.0.0.9", SKU: "GENERIC", Roles: []string{"worker"}, SSH: ssh("ops", "p'w", 22)},
	}, got)
}

func TestAMachineThatIsNamedWronglyIsExplained(t *testing.T) {
	for host, message := range map[string]string{
		"z=nowhere": `"nowhere" is not an IPv4 address`, "fe80::1": `"fe80::1" is not an IPv4 address`,
		"no.such.host.invalid": `"no.such.host.invalid" is neither an IPv4 address nor a name in DNS`,
	} {
		_, err := NewMachines{Hosts: []string{host}}.Machines()
		require.EqualError(t, err, message)
		assert.NotEmpty(t, hint.Of(err))
	}
	file := filepath.Join(t.TempDir(), "new.yaml")
	for text, message := range map[string]string{
		"machine-list: []\n": "has no machines", "machine-list: [{hostip: 10.0.0}]\n": "machine-list[0].hostip",
		"machine-list: [{hostip: 10.0.0.1, colour: red}]\n": "colour",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := NewMachines{File: file}.Machines()
		require.ErrorContains(t, err, message)
	}
}
