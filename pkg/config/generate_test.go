package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// The following tests cover the defects of OpenPAI's generator. Their numbers are those in the study of OpenPAI.

func TestCase01OneMachineIsAWholeCluster(t *testing.T) {
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{}, facts("one"))
	_, out, err := f.generate("machines: [10.0.0.1]\n")
	require.NoError(t, err)
	c := valid(t, out)
	assert.Equal(t, []string{"master", "worker"}, c.Layout.MachineList[0].Roles)
	assert.Empty(t, c.TaintsOf(c.Layout.MachineList[0]), "jobs must run on it")
}

func TestCase02ThreeMachines(t *testing.T) {
	f := newFleet(t)
	for i := range 3 {
		f.add(fmt.Sprintf("10.0.0.%d:22", i+1), sshtest.Config{}, facts(fmt.Sprintf("N%d", i+1)))
	}
	g, out, err := f.generate("machines: [10.0.0.1, 10.0.0.2, 10.0.0.3]\nssh-username: root\n")
	require.NoError(t, err)
	c := valid(t, out)
	assert.Equal(t, "n1", c.Layout.MachineList[0].Hostname, "capital letters are no node name")
	assert.Equal(t, []string{"worker"}, c.Layout.MachineList[2].Roles)
	assert.Equal(t, "10.0.0.1", c.Kubernetes.Kubernetes.LoadBalanceIP)
	assert.Equal(t, []string{"cpu-4c-16g"}, skuNames(c.Layout))
	assert.Equal(t, "machines: 3, masters: 1; hardware: 3 × cpu-4c-16g", g.Summary())
}

func TestCase03AKeyAloneIsEnough(t *testing.T) {
	path, public := keyFile(t)
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{User: "pai", Keys: []cssh.PublicKey{public}}, facts("one"))
	_, out, err := f.generate("machines: [10.0.0.1]\nssh-username: pai\nssh-keyfile-path: " + path + "\nssh-secret-name: ssh-secret\n")
	require.NoError(t, err)
	c := valid(t, out)
	assert.Equal(t, path, c.Target(c.Layout.MachineList[0]).KeyFile)
	assert.Equal(t, "ssh-secret", c.Layout.SSH.SecretName)
}

func TestCase04TheSSHPortIsUsed(t *testing.T) {
	f := newFleet(t)
	f.add("10.0.0.1:2222", sshtest.Config{}, facts("one"))
	f.add("10.0.0.2:2200", sshtest.Config{}, facts("two"))
	_, out, err := f.generate("machines:\n  - 10.0.0.1\n  - hostip: 10.0.0.2\n    ssh-port: 2200\nssh-port: 2222\n")
	require.NoError(t, err)
	c := valid(t, out)
	assert.Equal(t, "10.0.0.1:2222", c.Target(c.Layout.MachineList[0]).Addr())
	assert.Equal(t, "10.0.0.2:2200", c.Target(c.Layout.MachineList[1]).Addr())
}

func TestCase05DNSAndRangeAreTakenOverAndChecked(t *testing.T) {
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{}, facts("one"))
	_, out, err := f.generate("machines: [10.0.0.1]\ndns: 9.9.9.9\nservice-cluster-ip-range: 10.96.0.0/12\n")
	require.NoError(t, err)
	k := valid(t, out).Kubernetes.Kubernetes
	assert.Equal(t, []string{"9.9.9.9"}, k.ClusterDNS)
	assert.Equal(t, "10.96.0.0/12", k.ServiceClusterIPRange)
	for text, rule := range map[string]string{
		"dns: 127.0.0.53":                                                  "quick-start/dns",
		"dns: nameserver":                                                  "quick-start/dns",
		"service-cluster-ip-range: 10.0.0.0/99":                            "quick-start/cidr",
		"service-cluster-ip-range: 10.0.0.0/16":                            "network/overlaps-machine",
		"service-cluster-ip-range: 10.1.2.3/16":                            "quick-start/cidr",
		"pod-cidr: 10.254.0.0/16\nservice-cluster-ip-range: 10.254.0.0/16": "network/overlap",
		"dns: 10.254.1.1\npod-cidr: 10.128.0.0/9":                          "network/overlaps-dns",
	} {
		_, out, err := f.generate("machines: [10.0.0.1]\n" + text + "\n")
		require.ErrorContains(t, err, "["+rule+"]", text)
		assert.NoDirExists(t, out)
	}
}

func TestCase06TheSameHostNameTwiceIsRefused(t *testing.T) {
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{}, facts("same"))
	f.add("10.0.0.2:22", sshtest.Config{}, facts("SAME"))
	_, out, err := f.generate("machines: [10.0.0.1, 10.0.0.2]\n")
	require.ErrorContains(t, err, `machines[1]: 10.0.0.1 and 10.0.0.2 are both called "same" [layout/duplicate-hostname]`)
	assert.NoDirExists(t, out)
}

func TestCase07TheSameAddressTwiceIsRefused(t *testing.T) {
	_, out, err := newFleet(t).generate("machines:\n  - 10.0.0.1\n  - 10.0.0.1\n")
	require.ErrorContains(t, err, "quick-start.yaml:3:5: machines[1]: 10.0.0.1 is already machines[0] (line 2) [quick-start/duplicate-hostip]")
	assert.NoDirExists(t, out)
}

func TestCase08PasswordAndKeyAreBothKept(t *testing.T) {
	path, public := keyFile(t)
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{User: "pai", Keys: []cssh.PublicKey{public}, Password: "never asked"}, facts("one"))
	_, out, err := f.generate("machines: [10.0.0.1]\nssh-username: pai\nssh-password: for sudo\nssh-keyfile-path: " + path + "\n")
	require.NoError(t, err)
	target := valid(t, out).Target(layout.Machine{HostIP: "10.0.0.1"})
	assert.Equal(t, path, target.KeyFile)
	assert.Equal(t, "for sudo", target.Password.Reveal())
}

func TestCase09And12NoUserAndNoSecretNameAreFine(t *testing.T) {
	path, public := keyFile(t)
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{User: "tester", Keys: []cssh.PublicKey{public}}, facts("one"))
	_, out, err := f.generate("machines: [10.0.0.1]\nssh-keyfile-path: " + path + "\n")
	require.NoError(t, err)
	assert.Empty(t, valid(t, out).Layout.SSH.SecretName)
}

func TestCase10NoMachinesIsAnErrorWithARemedy(t *testing.T) {
	for _, text := range []string{"machines: []\n", "ssh-username: pai\n", "machines:\nssh-username: pai\n"} {
		_, _, err := newFleet(t).generate(text)
		require.ErrorContains(t, err, "[quick-start/no-machines]")
	}
}

func TestCase11EveryUnreachableMachineIsNamedAndNothingWritten(t *testing.T) {
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{}, facts("one"))
	f.add("10.0.0.3:22", sshtest.Config{User: "pai", Password: "right"}, facts("three"))
	f.add("10.0.0.4:22", sshtest.Config{}, "garbage\n")
	_, out, err := f.generate("machines: [10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4]\nssh-username: pai\nssh-password: wrong-secret\n")
	require.ErrorContains(t, err, "3 of 4 machines did not answer")
	for _, want := range []string{"10.0.0.2: ", "connection refused", "10.0.0.3: ", "10.0.0.4: the machine's answer is not that of the discovery script"} {
		require.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "wrong-secret")
	assert.NoDirExists(t, out)
}

func TestCase13AnyPasswordSurvives(t *testing.T) {
	for _, password := range []string{`a"b\c`, `'`, "#x: y", " lead and trail ", "é世界😀", "two\nlines", "\n", "0123", "true", "~", "*a", "%", "{", "`$(id)`", "\u2028"} {
		dir := t.TempDir()
		quoted := fmt.Sprintf("%q", password)
		qs := write(t, dir, "q.yaml", "machines: [10.0.0.1, {hostip: 10.0.0.2, ssh-password: "+quoted+"}]\nssh-password: "+quoted+"\n")
		out := filepath.Join(dir, "c")
		_, err := Generate(t.Context(), Generation{QuickStart: qs, OutDir: out, Offline: true})
		require.NoError(t, err, password)
		c, err := Load(out)
		require.NoError(t, err, password)
		assert.Equal(t, password, c.Layout.SSH.Password.Reveal())
		assert.Equal(t, password, c.Target(c.Layout.MachineList[1]).Password.Reveal())
	}
}

func TestCase14WhatIsNoAddressIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"machines: [node1]":                `"node1" is not an IP address`,
		"machines: [999.1.1.1]":            `"999.1.1.1" is not an IP address`,
		"machines: [10.1]":                 `"10.1" is not an IP address`,
		"machines: ['fd00::1']":            "IPv6",
		"machines: [0.0.0.0]":              "not the address of a machine",
		"machines: [{hostname: a}]":        "the machine has no address",
		"machines: [[10.0.0.1]]":           "expected an IP address or a map with hostip",
		"machines: [{ip: 10.0.0.1}]":       `did you mean "hostip"?`,
		"machines: 10.0.0.1":               "expected a list",
		"machines: [010.0.0.1]":            `"010.0.0.1" is not an IP address`,
		"machines: [\"10.0.0.1; reboot\"]": "is not an IP address",
	} {
		_, _, err := newFleet(t).generate(text + "\n")
		require.ErrorContains(t, err, want, text)
	}
}

func TestCase15NoNameserverIsAWarningAndStillWorks(t *testing.T) {
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{}, strings.Replace(facts("one"), "dns\t10.0.0.53\n", "dns\t127.0.0.53\n", 1))
	g, out, err := f.generate("machines: [10.0.0.1]\n")
	require.NoError(t, err)
	require.Len(t, g.Warnings, 1)
	assert.Equal(t, "kubernetes/no-dns", g.Warnings[0].Rule)
	assert.Equal(t, []string{}, valid(t, out).Kubernetes.Kubernetes.ClusterDNS)
}

func valid(t *testing.T, dir string) *Cluster {
	t.Helper()
	c, _, err := LoadValid(dir)
	require.NoError(t, err)
	return c
}

func TestExistingFilesAreKeptWithoutForce(t *testing.T) {
	dir := t.TempDir()
	qs := write(t, dir, "q.yaml", "machines: [10.0.0.1]\n")
	mine := write(t, dir, LayoutFile, "mine")
	g := Generation{QuickStart: qs, OutDir: dir, Offline: true}
	_, err := Generate(t.Context(), g)
	require.ErrorContains(t, err, "one file already exists: "+mine)
	assert.Equal(t, []string{LayoutFile, "q.yaml"}, names(t, dir))
	assert.Equal(t, "mine", read(t, mine))
	g.Force = true
	_, err = Generate(t.Context(), g)
	require.NoError(t, err)
	valid(t, dir)
	assert.Equal(t, []string{RolesFile, KubernetesFile, LayoutFile, "q.yaml", ServicesFile}, names(t, dir), "no temporary file stays")
}

func TestAFailedWriteRestoresTheOldFiles(t *testing.T) {
	dir := t.TempDir()
	old := map[string]string{RolesFile: "old roles", KubernetesFile: "old kubernetes"}
	for name, text := range old {
		write(t, dir, name, text)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, ServicesFile), 0o755)) // the last file cannot be renamed over it
	files := map[string][]byte{}
	for _, name := range Files() {
		files[name] = []byte("new")
	}
	err := WriteFolder(dir, files, func(string) bool { return true }, true)
	require.ErrorContains(t, err, "is a folder")
	assert.Equal(t, "old roles", read(t, filepath.Join(dir, RolesFile)))
	assert.Equal(t, "old kubernetes", read(t, filepath.Join(dir, KubernetesFile)))
	assert.NoFileExists(t, filepath.Join(dir, LayoutFile))
}

func TestFilesWithSecretsAreTheOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	qs := write(t, dir, "q.yaml", "machines: [10.0.0.1]\nssh-password: x\n")
	out := filepath.Join(dir, "c")
	_, err := Generate(t.Context(), Generation{QuickStart: qs, OutDir: out, Offline: true})
	require.NoError(t, err)
	for name, mode := range map[string]os.FileMode{LayoutFile: 0o600, ServicesFile: 0o600, KubernetesFile: 0o644, RolesFile: 0o644} {
		info, err := os.Stat(filepath.Join(out, name))
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().Perm(), name)
	}
	require.NoError(t, os.Chmod(filepath.Join(out, LayoutFile), 0o644))
	findings, err := ValidateDir(out)
	require.NoError(t, err)
	assert.Contains(t, findings.Error(), "[file/permissions]")
}

func TestMastersAndRoles(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"the first is the master":             {"machines: [10.0.0.1, 10.0.0.2]", "master | worker"},
		"named masters":                       {"machines: [10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4]\nmasters: [10.0.0.2, 10.0.0.3, 10.0.0.4]\nload-balance-ip: 10.0.0.100", "worker | master | master | master"},
		"a master by name":                    {"machines: [10.0.0.1, {hostip: 10.0.0.2, hostname: b}]\nmasters: b", "worker | master"},
		"all are masters":                     {"machines: [10.0.0.1, 10.0.0.2, 10.0.0.3]\nmasters: [10.0.0.1, 10.0.0.2, 10.0.0.3]\nload-balance-ip: 10.0.0.100", "master worker | master worker | master worker"},
		"roles of a machine":                  {"machines: [{hostip: 10.0.0.1, roles: [master, worker]}, 10.0.0.2]", "master worker | worker"},
		"a machine with roles is not the one": {"machines: [{hostip: 10.0.0.1, roles: worker}, 10.0.0.2]", "worker | master"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			g, err := Generate(t.Context(), Generation{QuickStart: write(t, dir, "q.yaml", c.text+"\n"), OutDir: filepath.Join(dir, "c"), Offline: true})
			require.NoError(t, err)
			var got []string
			for _, m := range g.Cluster.Layout.MachineList {
				got = append(got, strings.Join(m.Roles, " "))
			}
			assert.Equal(t, c.want, strings.Join(got, " | "))
			valid(t, filepath.Join(dir, "c"))
		})
	}
}

func TestQuickStartMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"machines: [10.0.0.1]\nmasters: [10.0.0.9]":                                      "[quick-start/unknown-master]",
		"machines: [10.0.0.1]\nmasters: [10.0.0.1, 10.0.0.1]":                            "[quick-start/duplicate-master]",
		"machines: [{hostip: 10.0.0.1, roles: [worker]}, 10.0.0.2]\nmasters: [10.0.0.1]": "[quick-start/roles-conflict]",
		"machines: [{hostip: 10.0.0.1, roles: [maser]}]":                                 `did you mean "master"?`,
		"machines: [{hostip: 10.0.0.1, roles: [worker, worker]}]":                        "[layout/duplicate-role]",
		"machines: [{hostip: 10.0.0.1, hostname: a}, {hostip: 10.0.0.2, hostname: a}]":   "[quick-start/duplicate-hostname]",
		"machines: [{hostip: 10.0.0.1, hostname: Node_1}]":                               "[quick-start/hostname]",
		"machines: [{hostip: 10.0.0.1, hostname: " + strings.Repeat("a", 64) + "}]":      "which allows 63",
		"machines: [{hostip: 10.0.0.1, hostname: Node1}]":                                "write it as node1",
		"machines: [{hostip: 10.0.0.1, labels: {'bad key': x}}]":                         "[layout/label]",
		"machines: [{hostip: 10.0.0.1, taints: ['a=b']}]":                                "[layout/taint]",
		"machines: [{hostip: 10.0.0.1, taints: ['a=b:Never']}]":                          "[layout/taint]",
		"machines: [{hostip: 10.0.0.1, ssh-port: 0}]":                                    "[quick-start/ssh-port]",
		"machines: [10.0.0.1]\nssh-port: 65536":                                          "[quick-start/ssh-port]",
		"machines: [{hostip: 10.0.0.1, taints: ['a=b:NoSchedule', 'a=c:NoSchedule']}]":   "[layout/taint]",
		"machines: [{hostip: 10.0.0.1, hostname: localhost}]":                            "[quick-start/hostname]",
		"machines: [{hostip: 10.0.0.1, hostname: 10.0.0.2}, 10.0.0.2]":                   "10.0.0.2 is the address of machines[1] (line 1)",
		"machines: [10.0.0.1]\nssh-username: 'a b'":                                      `quick-start.yaml:2:15: ssh-username: "a b" is not a login name`,
		"machines: [{hostip: 10.0.0.1, ssh-username: 'a b'}]":                            `quick-start.yaml:1:45: machines[0].ssh-username: "a b" is not a login name`,
		"machines: [10.0.0.1]\nssh-port: 022":                                            "[yaml/number]",
		"machines: [10.0.0.1]\nssh-port: '22'":                                           "[yaml/type]",
		"machines: [10.0.0.1]\nssh-jump-host: 'a b'":                                     "[quick-start/ssh-jump-host]",
		"machines: [10.0.0.1]\nssh-keyfile-path: nowhere":                                "[quick-start/no-file]",
		"machines: [10.0.0.1]\ngpu: 8xA100":                                              "write gpu: simulate and simulated-gpu: 8xA100",
		"machines: [10.0.0.1]\ngpu: simulate\nsimulated-gpu: A100":                       "[quick-start/simulated-gpu]",
		"machines: [10.0.0.1]\ncluster-id: 'a b'":                                        "[quick-start/cluster-id]",
		"machines: [10.0.0.1]\ncluster-name: A_B":                                        "[quick-start/cluster-name]",
		"machines: [10.0.0.1]\nload-balance-ip: lb.example.org":                          "[quick-start/load-balance-ip]",
		"machines: [10.0.0.1]\npod-cidr: 10.244.0.0/30":                                  "[network/pod-range-size]",
		"machines: [10.0.0.1]\nextra: {kubelt: {}}":                                      `did you mean "kubelet"?`,
		"machines: [10.0.0.1]\nextra: {kubeadm: {clusterName: x}}":                       "[extra/owned]",
		"machines: [10.0.0.1]\nextra: {sysctl: {rm -rf: 1}}":                             "[extra/sysctl]",
		"machines: [10.0.0.1]\nkeyfile-path: x":                                          `did you mean "ssh-keyfile-path"?`,
		"machines: [10.0.0.1]\nssh-usernmae: x":                                          `did you mean "ssh-username"?`,
	} {
		_, out, err := newFleet(t).generate(text + "\n")
		require.Error(t, err, text)
		require.ErrorContains(t, err, want, text)
		assert.NoDirExists(t, out)
	}
}

func TestGPUModes(t *testing.T) {
	gpu := []string{"nvidia-smi\t0, Tesla T4, 15360, 535.1, GPU-1"}
	for name, c := range map[string]struct{ text, sku string }{
		"auto":          {"", "1x-t4"},
		"none":          {"gpu: none\n", "1x-t4"},
		"simulate":      {"gpu: simulate\n", "sim-8xa100-1x-t4"},
		"simulate four": {"gpu: simulate\nsimulated-gpu: 4xH100\n", "sim-4xh100-1x-t4"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.add("10.0.0.1:22", sshtest.Config{}, facts("one", gpu...))
			_, out, err := f.generate("machines: [10.0.0.1]\n" + c.text)
			require.NoError(t, err)
			l := valid(t, out).Layout
			got := l.MachineSKU[l.MachineList[0].SKU].GPU
			switch name {
			case "auto":
				assert.Equal(t, &layout.GPU{Type: "Tesla-T4", Count: 1, Driver: "535.1"}, got)
			case "none":
				assert.Nil(t, got)
			case "simulate":
				assert.Equal(t, &layout.GPU{Type: "A100", Count: 8, Simulated: true}, got)
			default:
				assert.Equal(t, &layout.GPU{Type: "H100", Count: 4, Simulated: true}, got)
			}
		})
	}
}

func TestRangesThatAreInUseAreNotChosen(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ machine, service, pods string }{
		{"192.168.1.1", "10.254.0.0/16", "10.244.0.0/16"},
		{"10.254.1.1", "10.96.0.0/16", "10.244.0.0/16"},
		{"10.244.9.9", "10.254.0.0/16", "10.224.0.0/12"},
	} {
		g, err := Generate(t.Context(), Generation{QuickStart: write(t, dir, "q.yaml", "machines: ["+c.machine+"]\n"), OutDir: filepath.Join(dir, fmt.Sprint(i)), Offline: true})
		require.NoError(t, err)
		k := g.Cluster.Kubernetes.Kubernetes
		assert.Equal(t, []string{c.service, c.pods}, []string{k.ServiceClusterIPRange, k.PodCIDR})
	}
}

func TestRelativePathsKeepTheirMeaning(t *testing.T) {
	dir := t.TempDir()
	key := write(t, dir, "id", "x")
	qs := write(t, dir, "q.yaml", "machines: [{hostip: 10.0.0.1, ssh-known-hosts: known}]\nssh-keyfile-path: id\nbundle: ../bundle\n")
	write(t, dir, "known", "")
	out := filepath.Join(dir, "deep", "er")
	_, err := Generate(t.Context(), Generation{QuickStart: qs, OutDir: out, Offline: true})
	require.NoError(t, err)
	c := valid(t, out)
	assert.Equal(t, "../../id", c.Layout.SSH.KeyFile)
	target := c.Target(c.Layout.MachineList[0])
	assert.Equal(t, key, target.KeyFile)
	assert.Equal(t, filepath.Join(dir, "known"), target.KnownHosts)
	assert.Equal(t, filepath.Join(dir, "../bundle"), c.Kubernetes.Kubernetes.Bundle)
}

func TestClonedMachinesAreWarnedAbout(t *testing.T) {
	f := newFleet(t)
	f.add("10.0.0.1:22", sshtest.Config{}, facts("one", "machine-id\tsame", "sudo\tmissing"))
	f.add("10.0.0.2:22", sshtest.Config{}, facts("two", "machine-id\tsame"))
	g, _, err := f.generate("machines: [10.0.0.1, 10.0.0.2]\n")
	require.NoError(t, err)
	require.Len(t, g.Warnings, 2)
	assert.Equal(t, "layout/duplicate-machine-id", g.Warnings[0].Rule)
	assert.Equal(t, "machine/sudo", g.Warnings[1].Rule)
}

func TestWhetherAUserBecomesRootIsTried(t *testing.T) {
	const quick = "machines: [10.0.0.1]\nssh-username: pai\nssh-password: right\n"
	for name, c := range map[string]struct {
		fact  string
		sudo  sshtest.Sudo
		warns string
	}{
		"sudo-rs wants a password":             {"refused", sshtest.Sudo{Password: "right"}, ""},
		"sudo wants a password":                {"password", sshtest.Sudo{Password: "right"}, ""},
		"another password":                     {"password", sshtest.Sudo{Password: "another"}, "the password was refused"},
		"no rights, and sudo -n says password": {"password", sshtest.Sudo{Deny: "pai is not in the sudoers file."}, "may not become root"},
		"no rights, in words of sudo-rs":       {"password", sshtest.Sudo{Deny: "sudo: I'm sorry pai. I'm afraid I can't do that"}, "may not become root"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.add("10.0.0.1:22", sshtest.Config{User: "pai", Password: "right", Sudo: &c.sudo}, facts("one", "sudo\t"+c.fact))
			g, _, err := f.generate(quick)
			require.NoError(t, err)
			if c.warns == "" {
				assert.Empty(t, g.Warnings)
				return
			}
			require.Len(t, g.Warnings, 1)
			assert.Equal(t, "machine/sudo", g.Warnings[0].Rule)
			assert.Contains(t, g.Warnings[0].Message, c.warns)
			assert.NotEmpty(t, g.Warnings[0].Remedy)
		})
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// BenchmarkGenerate5000 measures the offline generation for 5,000 machines. The limits are 1 s and 200 MB.
func BenchmarkGenerate5000(b *testing.B) {
	dir := b.TempDir()
	var text strings.Builder
	text.WriteString("ssh-username: pai\nmachines:\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "  - 10.%d.%d.%d\n", i/65536, i/250%250, i%250+1)
	}
	qs := write(b, dir, "q.yaml", text.String())
	b.ReportAllocs()
	for b.Loop() {
		_, err := Generate(b.Context(), Generation{QuickStart: qs, OutDir: filepath.Join(dir, "c"), Offline: true, Force: true})
		require.NoError(b, err)
	}
}

func TestImagesOfABundleAreNamedExceptWhereTheFileSaysOtherwise(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "quick-start.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`machines: [10.0.0.1]
bundle: ./bundle
services:
  prometheus: {image: {tag: v9}}
  grafana: {enabled: true}
  node-exporter: {maxUnavailable: 1}
`), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bundle"), 0o700))
	image := map[string]any{"repository": "ours/x", "tag": "v1"}
	out, err := Generate(t.Context(), Generation{QuickStart: file, OutDir: filepath.Join(dir, "out"), Offline: true, DryRun: true,
		Images: func(bundle string) map[string]map[string]any {
			assert.Equal(t, filepath.Join(dir, "bundle"), bundle)
			return map[string]map[string]any{
				"prometheus": {"image": image}, "grafana": {"enabled": false}, "node-exporter": {"image": image}, "watchdog": {"image": image},
			}
		}})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"prometheus":    map[string]any{"image": map[string]any{"tag": "v9"}},
		"grafana":       map[string]any{"enabled": true},
		"node-exporter": map[string]any{"maxUnavailable": 1, "image": image},
		"watchdog":      map[string]any{"image": image},
	}, out.Cluster.Services.Sections)
}

func TestAMachineWithGPUsAndNoDriverIsNamedWithWhatADriverMeets(t *testing.T) {
	t.Parallel()
	gpus := []layout.PCIDevice{{Address: "0000:07:00.0", Vendor: "10de", Device: "20b0"}}
	for want, f := range map[string]layout.Facts{
		"":                                     {},
		"m: it has NVIDIA GPUs, but no driver": {PCIGPUs: gpus, KernelHeaders: true},
		"m: it has NVIDIA GPUs, but no driver (Secure Boot is on: a kernel module that isn't signed can't be loaded; nouveau is loaded; " +
			"the headers of its kernel are missing; it has NVSwitches, which need the fabric manager of the driver's version)": {
			PCIGPUs: gpus, NVSwitches: gpus, SecureBoot: "on", Nouveau: true,
		},
	} {
		c := &Cluster{Layout: layout.Layout{MachineList: []layout.Machine{{Hostname: "m", HostIP: "10.0.0.1"}}}}
		var said []string
		for _, found := range factsFindings(c, map[string]layout.Facts{"10.0.0.1": f}) {
			said = append(said, found.Message)
		}
		assert.Equal(t, want, strings.Join(said, "\n"))
	}
}
