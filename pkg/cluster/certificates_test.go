package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

// master is a machine of the control plane that runs the renewal program, with the stubs in testdata/renew (see lib.sh there).
type master struct {
	t       *testing.T
	root    string
	stubs   string
	program string
}

const (
	day  = 86400
	year = 365*day - 1
)

// newMaster returns a machine whose stub of kubeadm reports the certificates in a record.
func newMaster(t *testing.T, record string) *master {
	t.Helper()
	root := t.TempDir()
	stubs, err := filepath.Abs("testdata")
	require.NoError(t, err)
	m := &master{t: t, root: root, stubs: stubs, program: filepath.Join(t.TempDir(), "renew-certificates")}
	runnable.Write(t, m.program, phases.RenewProgram())
	for _, c := range components {
		b, err := os.ReadFile(filepath.Join("testdata/renew/manifests", c+".yaml"))
		require.NoError(t, err)
		m.write("/etc/kubernetes/manifests/"+c+".yaml", string(b))
	}
	m.write("/etc/paictl/kubeadm.yaml", "kind: InitConfiguration\nlocalAPIEndpoint:\n  name: no\nnodeRegistration:\n  criSocket: x\n  name: m1\n---\nname: no\n")
	m.write("/.fake/kubelet", "")
	m.write("/.fake/masters", "m1 10.9.0.1\n")
	m.write("/cluster/hits", "")
	b, err := os.ReadFile(filepath.Join("testdata/renew/kubeadm", record+".txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if f[3] == "true" {
			continue
		}
		left, err := strconv.Atoi(f[2])
		require.NoError(t, err)
		m.expires(f[1], left)
		if f[0] == "authority" && f[4] == "true" {
			m.remove(files(f[1])[0])
		}
	}
	m.write("/etc/kubernetes/kubelet.conf", "users:\n- user:\n    client-certificate: "+kubeletCertificate+"\n")
	m.write(kubeletCertificate, "key kubelet old\n-----BEGIN CERTIFICATE-----\ncrt kubelet old 3000\n-----END CERTIFICATE-----\n")
	m.settle()
	return m
}

var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

const kubeletCertificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"

func files(name string) []string {
	const k = "/etc/kubernetes/"
	switch n, etcd := strings.CutPrefix(name, "etcd-"); {
	case strings.HasSuffix(name, ".conf"):
		return []string{k + name}
	case etcd:
		return []string{k + "pki/etcd/" + n + ".key", k + "pki/etcd/" + n + ".crt"}
	default:
		return []string{k + "pki/" + name + ".key", k + "pki/" + name + ".crt"}
	}
}

// expires writes a certificate that is 300 days old and expires in left seconds.
func (m *master) expires(name string, left int) {
	m.t.Helper()
	paths := files(name)
	body := []string{"key " + name + " old\n", fmt.Sprintf("crt %s old %d\n", name, left)}
	if len(paths) == 1 {
		body = []string{body[0] + body[1]}
	}
	for i, p := range paths {
		m.write(p, body[i])
		require.NoError(m.t, os.Chmod(m.root+p, 0o600))
		m.made(p, 300)
	}
}

func (m *master) made(path string, days int) {
	m.t.Helper()
	then := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
	require.NoError(m.t, os.Chtimes(m.root+path, then, then))
}

func (m *master) write(path, text string) {
	m.t.Helper()
	require.NoError(m.t, os.MkdirAll(filepath.Dir(m.root+path), 0o755))
	require.NoError(m.t, os.WriteFile(m.root+path, []byte(text), 0o644))
}

func (m *master) remove(path string) {
	m.t.Helper()
	require.NoError(m.t, os.RemoveAll(m.root+path))
}

func (m *master) read(path string) string {
	m.t.Helper()
	b, err := os.ReadFile(m.root + path)
	if !os.IsNotExist(err) {
		require.NoError(m.t, err)
	}
	return string(b)
}

func (m *master) exists(path string) bool {
	_, err := os.Lstat(m.root + path)
	return err == nil
}

func (m *master) settle() {
	m.t.Helper()
	out, err := m.command("", m.stubs+"/renew/bin/sleep").CombinedOutput()
	require.NoError(m.t, err, "%s", out)
}

func (m *master) command(breaks string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), "/bin/sh", args...)
	path := m.stubs + "/renew/bin:"
	if breaks != "" {
		path += m.stubs + "/break:"
	}
	cmd.Env = []string{
		"PATH=" + path + os.Getenv("PATH"), "PAICTL_ROOT=" + m.root, "FAKE_CLUSTER=" + m.root + "/cluster",
		"FAKE_STUBS=" + m.stubs + "/stubs", "FAKE_BREAK=" + breaks,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// renew runs the renewal program. It returns the program's standard error, and whether the program succeeded.
func (m *master) renew(args ...string) (said string, ok bool) {
	m.t.Helper()
	cmd := m.command("", append([]string{m.program}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_, err := cmd.Output()
	assert.Empty(m.t, m.read("/.fake/refused"), "calls that no stub knows")
	return stderr.String(), err == nil
}

func (m *master) calls() []string {
	m.t.Helper()
	out := strings.FieldsFunc(m.read("/.fake/calls"), func(r rune) bool { return r == '\n' })
	m.remove("/.fake/calls")
	for i, c := range out {
		out[i] = strings.NewReplacer("kubeadm certs ", "", "ctr ", "").Replace(c)
	}
	return out
}

// assertWhole checks that no certificate was lost, that no unfinished work is left, and that each component runs with the current certificates.
func (m *master) assertWhole() {
	m.t.Helper()
	for _, c := range components {
		assert.True(m.t, m.exists("/etc/kubernetes/manifests/"+c+".yaml"), c)
		holds := strings.Fields(m.read("/.fake/holds/" + c))
		assert.NotEmpty(m.t, holds, c)
		for _, h := range holds {
			name, number, _ := strings.Cut(h, ":")
			paths := files(name)
			key, crt := m.read(paths[0]), m.read(paths[len(paths)-1])
			assert.Contains(m.t, key, "key "+name+" "+number+"\n", "%s of %s", name, c)
			assert.Contains(m.t, crt, "crt "+name+" "+number+" ", "%s of %s", name, c)
		}
		assert.True(m.t, m.exists("/.fake/run/"+c), "%s runs", c)
	}
	left, err := filepath.Glob(m.root + "/var/lib/paictl/certificates/*")
	require.NoError(m.t, err)
	assert.Equal(m.t, []string{m.root + "/var/lib/paictl/certificates/due"}, left)
	assert.Empty(m.t, m.due())
	for _, pattern := range []string{"/etc/kubernetes/renew.*", "/etc/kubernetes/*.paictl-new", "/etc/kubernetes/pki/*.paictl-new", "/etc/kubernetes/pki/etcd/*.paictl-new"} {
		left, err := filepath.Glob(m.root + pattern)
		require.NoError(m.t, err)
		assert.Empty(m.t, left)
	}
}

// due returns the components that must still be restarted.
func (m *master) due() []string {
	m.t.Helper()
	entries, err := os.ReadDir(m.root + "/var/lib/paictl/certificates/due")
	if !os.IsNotExist(err) {
		require.NoError(m.t, err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

var everything = []string{
	"renew admin.conf", "renew apiserver", "renew apiserver-etcd-client", "renew apiserver-kubelet-client",
	"renew controller-manager.conf", "renew etcd-healthcheck-client", "renew etcd-peer", "renew etcd-server",
	"renew front-proxy-client", "renew scheduler.conf", "renew super-admin.conf",
	"kill etcd", "kill kube-apiserver", "kill kube-controller-manager", "kill kube-scheduler",
}

func TestOnlyWhatExpiresIsRenewedAndOnlyWhatHoldsItIsRestarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, record string
		later        bool // the gate has a case of its kind
		edit         func(*master)
		args         []string
		want         []string
		says         string
	}{
		{name: "a healthy machine", record: "healthy"},
		{later: true, name: "a further master, which has no super-admin.conf", record: "joined"},
		{name: "all has expired", record: "expired", want: everything},
		{
			later: true, name: "one expires soon", record: "joined",
			edit: func(m *master) { m.expires("apiserver-kubelet-client", 59*day) },
			want: []string{"renew apiserver-kubelet-client", "kill kube-apiserver"},
		},
		{
			later: true, name: "one has expired at the other end of the list", record: "joined",
			edit: func(m *master) { m.expires("scheduler.conf", -300*day) },
			want: []string{"renew scheduler.conf", "kill kube-scheduler"},
		},
		{later: true, name: "none within 60 days", record: "healthy", edit: func(m *master) { m.expires("apiserver", 60*day+1) }},
		{
			name: "etcd comes first, however the certificates are sorted", record: "healthy",
			edit: func(m *master) {
				m.expires("front-proxy-client", day)
				m.expires("etcd-peer", day)
				m.expires("apiserver", day)
			},
			want: []string{"renew apiserver", "renew etcd-peer", "renew front-proxy-client", "kill etcd", "kill kube-apiserver"},
		},
		{
			later: true, name: "nothing holds the administrators' files", record: "healthy",
			edit: func(m *master) { m.expires("admin.conf", -day); m.expires("super-admin.conf", day) },
			want: []string{"renew admin.conf", "renew super-admin.conf"},
		},
		{
			later: true, name: "one that is managed elsewhere", record: "external",
			edit: func(m *master) { m.expires("front-proxy-client", -day) },
		},
		{
			name: "an authority", record: "healthy", edit: func(m *master) { m.expires("etcd-ca", 100*day) },
			says: "the certificate authority etcd-ca has 100 days left and is not renewed here -> paictl cluster certs rotate-ca",
		},
		{
			later: true, name: "a short life, of which less than half is over", record: "healthy",
			edit: func(m *master) { m.expires("apiserver", 20*day); m.made(files("apiserver")[1], 10) },
		},
		{
			name: "a short life, of which more than half is over", record: "healthy",
			edit: func(m *master) { m.expires("apiserver", 14*day); m.made(files("apiserver")[1], 16) },
			want: []string{"renew apiserver", "kill kube-apiserver"},
		},
		{
			later: true, name: "expired while the clock was wrong", record: "healthy",
			edit: func(m *master) { m.expires("apiserver", -2); m.made(files("apiserver")[1], -100) },
			want: []string{"renew apiserver", "kill kube-apiserver"},
		},
		{later: true, name: "by order, new as they are", record: "healthy", args: []string{"400"}, want: everything, edit: func(m *master) {
			for _, name := range []string{"apiserver", "etcd-peer"} {
				m.made(files(name)[1], 0)
			}
		}},
		{later: true, name: "by order, within a day", record: "healthy", args: []string{"1"}, edit: func(m *master) { m.expires("apiserver", 2*day) }},
		{
			name: "the control plane does not run before the kubelet does", record: "expired", args: []string{"boot"},
			edit: func(m *master) { m.remove("/.fake/run"); m.remove("/proc") },
			want: everything[:11],
		},
		{later: true, name: "the kubelet is started again", record: "expired", args: []string{"boot"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.later {
				later(t)
			}
			m := newMaster(t, c.record)
			if c.edit != nil {
				c.edit(m)
			}
			said, ok := m.renew(c.args...)
			assert.True(t, ok, "%s", said)
			assert.ElementsMatch(t, c.want, m.calls())
			assert.Contains(t, said, c.says)
			if c.says == "" {
				assert.Empty(t, said)
			}
			m.settle()
			m.assertWhole()
			if c.args == nil {
				_, ok = m.renew()
				assert.True(t, ok)
				assert.Empty(t, m.calls(), "a second run has nothing to do")
			}
		})
	}
}

func TestTheOrderOfRestartsIsThatInWhichTheyNeedEachOther(t *testing.T) {
	t.Parallel()
	m := newMaster(t, "expired")
	_, ok := m.renew()
	assert.True(t, ok)
	assert.Equal(t, everything, m.calls())
}

func TestAMasterWithoutTheAdministratorsCredentialsRenewsItsCertificates(t *testing.T) {
	t.Parallel()
	for _, mode := range [][]string{nil, {"boot"}} {
		m := newMaster(t, "expired")
		m.remove("/etc/kubernetes/admin.conf")
		if mode != nil {
			m.remove("/.fake/run")
			m.remove("/proc")
		}
		said, ok := m.renew(mode...)
		assert.True(t, ok, "%s", said)
		calls := m.calls()
		require.NotEmpty(t, calls)
		assert.Equal(t, "kubeadm init phase kubeconfig admin --config "+m.root+engine.KubeadmConf+" --kubeconfig-dir "+m.root+engine.StateDir+"/certificates/admin", calls[0])
		assert.Contains(t, calls, "renew apiserver")
		assert.Contains(t, m.read("/etc/kubernetes/admin.conf"), "crt admin.conf")
		m.settle()
		m.assertWhole()
	}
	t.Run("and goes on where they can't be made", func(t *testing.T) {
		m := newMaster(t, "expired")
		m.remove("/etc/kubernetes/admin.conf")
		m.write("/.fake/fail/admin.conf", "")
		said, ok := m.renew("boot")
		assert.False(t, ok)
		assert.Contains(t, said, "kubeadm did not make /etc/kubernetes/admin.conf again -> on this host:")
	})
	for _, u := range [][]byte{phases.RenewCertificatesService, phases.RenewCertificatesBoot} {
		// With the prefix |, one of the two conditions is sufficient.
		assert.Contains(t, string(u), "\nConditionPathExists=|/etc/kubernetes/pki/ca.key\nConditionPathExists=|/etc/kubernetes/admin.conf\n")
	}
}

func TestAMachineThatIsNoMasterIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMaster(t, "expired")
	m.remove("/etc/kubernetes/admin.conf")
	m.remove("/etc/kubernetes/pki/ca.key")
	said, ok := m.renew()
	assert.True(t, ok, "%s", said)
	assert.Empty(t, m.calls())
	assert.False(t, m.exists("/var/lib/paictl"))
}

// TestARenewalThatIsKilledAnywhereIsFinishedByTheNextStart kills the program and all its children at a different point in each subtest. After that,
// the kubelet continues. At every third point, the machine also restarts. To save time, the test uses only every second point.
// PAICTL_TEST_CRASH=all selects all points, with and without a restart.
func TestARenewalThatIsKilledAnywhereIsFinishedByTheNextStart(t *testing.T) {
	tier.More(t, "a kill at each point of a renewal")
	t.Parallel()
	names := []string{"etcd-server", "scheduler.conf"}
	step := 2
	if allCrashes() {
		step = 1
	}
	for k := 1; ; k += step {
		for _, boot := range []bool{false, true} {
			if boot && k%3 != 0 && !allCrashes() {
				continue
			}
			m := newMaster(t, "joined")
			m.expires(names[0], 20*day)
			m.expires(names[1], -day)
			out, err := m.command(strconv.Itoa(k), m.program).CombinedOutput()
			if err == nil {
				require.Greater(t, k, 40, "points at which it was killed")
				m.assertWhole()
				return
			}
			require.Contains(t, err.Error(), "killed", "point %d: %s", k, out)
			if boot {
				m.remove("/.fake/run")
				m.remove("/proc")
				said, ok := m.renew("boot")
				require.True(t, ok, "point %d: %s", k, said)
			}
			m.settle()
			said, ok := m.renew()
			require.True(t, ok, "point %d: %s", k, said)
			m.assertWhole()
			for _, name := range names {
				paths := files(name)
				assert.Contains(t, m.read(paths[len(paths)-1]), strconv.Itoa(year), "point %d", k)
			}
			assert.Contains(t, m.read(files("apiserver")[1]), "old", "point %d: nothing else was renewed", k)
			if t.Failed() {
				t.Fatalf("killed at point %d, boot %v: %s", k, boot, said)
			}
		}
	}
}

func TestAnotherMasterThatIsNotReadyPutsRestartsOff(t *testing.T) {
	t.Parallel()
	away := func(left int) *master {
		m := newMaster(t, "joined")
		m.expires("etcd-server", left)
		m.write("/.fake/masters", "m1 10.9.0.1\nm2 10.9.0.2\nm3 10.9.0.3\n")
		m.write("/.fake/ready/10.9.0.3", "")
		return m
	}
	m := away(50 * day)
	said, ok := m.renew()
	assert.True(t, ok)
	assert.Contains(t, said, "etcd is restarted with its new certificates on another day, since the control plane of m2 is not ready")
	assert.Equal(t, []string{"renew etcd-server"}, m.calls())
	assert.Equal(t, []string{"etcd"}, m.due())

	m.write("/.fake/ready/10.9.0.2", "")
	said, ok = m.renew()
	assert.True(t, ok, "%s", said)
	assert.Equal(t, []string{"kill etcd"}, m.calls())
	m.assertWhole()

	m = away(6 * day)
	said, ok = m.renew()
	assert.True(t, ok, "%s", said)
	assert.Equal(t, []string{"renew etcd-server", "kill etcd"}, m.calls(), "it can't wait any longer")

	m = away(50 * day)
	m.remove("/.fake/masters")
	said, ok = m.renew()
	assert.True(t, ok)
	assert.Contains(t, said, "since the API does not say which other masters there are")
	assert.Equal(t, []string{"etcd"}, m.due())
}

func TestWhatDoesNotComeBackKeepsTheOthersFromBeingRestarted(t *testing.T) {
	t.Parallel()
	tier.More(t, "six simulated minutes of waiting, a program for each second")
	m := newMaster(t, "expired")
	m.write("/.fake/fail/etcd", "")
	said, ok := m.renew()
	assert.False(t, ok)
	assert.Contains(t, said, "etcd is not healthy six minutes after its restart with new certificates -> its log is in /var/log/pods")
	assert.Contains(t, m.calls(), "kill etcd")
	assert.Equal(t, components, m.due())

	m.remove("/.fake/fail/etcd")
	said, ok = m.renew()
	assert.True(t, ok, "%s", said)
	assert.Equal(t, []string{"kill kube-apiserver", "kill kube-controller-manager", "kill kube-scheduler"}, m.calls())
	m.assertWhole()
}

func TestNothingIsEndedThatNothingWouldStartAgain(t *testing.T) {
	t.Parallel()
	for path, why := range map[string]string{
		"/.fake/kubelet":         "the kubelet does not run, so etcd was not restarted",
		"/.fake/fail/containerd": "containerd does not answer, so etcd was not restarted",
	} {
		m := newMaster(t, "healthy")
		m.expires("etcd-peer", day)
		change, back := m.remove, func(p string) { m.write(p, "") }
		if strings.Contains(path, "fail") {
			change, back = back, change
		}
		change(path)
		said, ok := m.renew()
		assert.False(t, ok)
		assert.Contains(t, said, why)
		assert.Equal(t, []string{"renew etcd-peer"}, m.calls())
		assert.Equal(t, []string{"etcd"}, m.due())
		back(path)
		said, ok = m.renew()
		assert.True(t, ok, "%s", said)
		assert.Equal(t, []string{"kill etcd"}, m.calls())
		m.assertWhole()
	}
}

func TestWhatKubeadmDoesNotRenewStaysAsItWas(t *testing.T) {
	t.Parallel()
	m := newMaster(t, "healthy")
	m.expires("apiserver", 3*day)
	m.expires("scheduler.conf", 3*day)
	before := m.read(files("apiserver")[1])
	m.write("/.fake/fail/apiserver", "")
	said, ok := m.renew()
	assert.False(t, ok)
	assert.Contains(t, said, "kubeadm did not renew apiserver, which has 3 days left -> on this host: kubeadm certs renew apiserver")
	assert.Equal(t, before, m.read(files("apiserver")[1]))
	assert.Equal(t, []string{"renew apiserver", "renew scheduler.conf", "kill kube-scheduler"}, m.calls())
	m.assertWhole()

	m.write(files("etcd-peer")[1], "")
	said, ok = m.renew()
	assert.False(t, ok)
	assert.Contains(t, said, "kubeadm can't say when certificates expire")
}

func TestAnExpiredCertificateOfTheKubeletIsReplaced(t *testing.T) {
	t.Parallel()
	const conf = "/etc/kubernetes/kubelet.conf"
	replaced := func(m *master, args ...string) {
		said, ok := m.renew(args...)
		assert.True(t, ok, "%s", said)
		assert.Equal(t, []string{
			"kubeadm kubeconfig user --org system:nodes --client-name system:node:m1 --config " + m.root + "/etc/paictl/kubeadm.yaml",
			"systemctl try-restart --no-block kubelet.service",
		}, m.calls())
		assert.Equal(t, "-----BEGIN CERTIFICATE-----\ncrt kubelet new 31535999\n-----END CERTIFICATE-----\nkey kubelet new\n", m.read(kubeletCertificate))
		target, err := os.Readlink(m.root + kubeletCertificate)
		require.NoError(t, err)
		assert.Regexp(t, `^kubelet-client-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d.pem$`, target)
		info, err := os.Stat(m.root + kubeletCertificate)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
		m.assertWhole()
		m.renew()
		assert.Empty(t, m.calls())
	}
	m := newMaster(t, "joined")
	m.write(kubeletCertificate, "key kubelet old\n-----BEGIN CERTIFICATE-----\ncrt kubelet old -3000\n-----END CERTIFICATE-----\n")
	before := m.read(conf)
	replaced(m, "boot")
	assert.Equal(t, before, m.read(conf))

	m = newMaster(t, "joined")
	m.write(conf, "users:\n- user:\n    client-certificate-data: Y3J0IGt1YmVsZXQgb2xkIC0zMDAwCg==\n    client-key-data: a2V5Cg==\n")
	replaced(m)
	assert.Equal(t, "users:\n- user:\n    client-certificate: "+kubeletCertificate+"\n    client-key: "+kubeletCertificate+"\n", m.read(conf))

	m = newMaster(t, "external")
	m.write(kubeletCertificate, "-----BEGIN CERTIFICATE-----\ncrt kubelet old -3000\n-----END CERTIFICATE-----\n")
	m.remove(files("ca")[0])
	_, ok := m.renew()
	assert.True(t, ok)
	assert.Empty(t, m.calls(), "without the authority's key it can't be")
}

// TestWhatTheOldProgramLeftIsPutBack simulates a power failure during a renewal by an older release. That release moved the manifests away for 25
// seconds. The manifests must be restored.
func TestWhatTheOldProgramLeftIsPutBack(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"boot"}} {
		m := newMaster(t, "healthy")
		for _, c := range components {
			p := "/etc/kubernetes/manifests/" + c + ".yaml"
			m.write("/etc/kubernetes/renew.a1B2c3/"+c+".yaml", m.read(p))
			m.remove(p)
		}
		m.write("/etc/kubernetes/manifests/kube-scheduler.yaml", "written again since")
		m.remove("/.fake/run")
		m.remove("/proc")
		said, ok := m.renew(args...)
		assert.True(t, ok, "%s", said)
		assert.Contains(t, said, "put back /etc/kubernetes/manifests/etcd.yaml")
		assert.Equal(t, "written again since", m.read("/etc/kubernetes/manifests/kube-scheduler.yaml"))
		m.settle()
		m.assertWhole()
		assert.Empty(t, m.calls())
	}
}

func TestWhatAnEarlierClusterLeftIsNotPutBack(t *testing.T) {
	t.Parallel()
	m := newMaster(t, "healthy")
	m.write("/var/lib/paictl/certificates/undo/ca.crt", "of another cluster")
	m.write("/var/lib/paictl/certificates/undo/files/pki/apiserver.crt", "of another cluster")
	said, ok := m.renew()
	assert.True(t, ok, "%s", said)
	m.assertWhole()
}

// TestBeforeTheKubeletNothingIsWaitedFor simulates a script of "cluster up" that starts the kubelet while it holds the host's lock. The renewal
// before the start of the kubelet must not wait for that lock, because this would be a deadlock.
func TestBeforeTheKubeletNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	m := newMaster(t, "expired")
	m.write(engine.HostLock, "")
	f, err := os.Open(m.root + engine.HostLock)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	said, ok := m.renew("boot")
	assert.True(t, ok, "%s", said)
	assert.Empty(t, m.calls())
}

func TestTheOrderIsANumberOfDays(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"all", "-1", "6d"} {
		said, ok := newMaster(t, "healthy").renew(arg)
		assert.False(t, ok)
		assert.Equal(t, "usage: renew-certificates [DAYS | boot]\n", said)
	}
}

// TestTheStubOfKubeadmAnswersAsTheRealOne compares the stub with records of kubeadm v1.36.3.
func TestTheStubOfKubeadmAnswersAsTheRealOne(t *testing.T) {
	t.Parallel()
	for _, record := range []string{"healthy", "joined", "external", "expired"} {
		m := newMaster(t, record)
		out, err := m.command("", m.stubs+"/renew/bin/kubeadm", "certs", "check-expiration",
			"-o", "go-template=…", "--config", m.root+"/etc/paictl/kubeadm.yaml").Output()
		require.NoError(t, err)
		want, err := os.ReadFile(filepath.Join("testdata/renew/kubeadm", record+".txt"))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(out), record)
	}
}

// TestUpPutsBackWhatARenewalHasLeft simulates a renewal that was interrupted. Without the repair, the machine would stay a member without a control
// plane.
func TestUpPutsBackWhatARenewalHasLeft(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.made()
	h := l.host("m1")
	want := l.state()
	const manifest, aside = "/etc/kubernetes/manifests/etcd.yaml", "/etc/kubernetes/renew.a1B2c3/etcd.yaml"
	h.write(aside, h.read(manifest))
	require.NoError(t, os.Chmod(h.root+aside, 0o600))
	h.remove(manifest)
	const crt, undo = "/etc/kubernetes/pki/apiserver.crt", engine.StateDir + "/certificates/undo"
	h.write(undo+"/ca.crt", h.read("/etc/kubernetes/pki/ca.crt"))
	h.write(undo+"/files/pki/apiserver.crt", h.read(crt))
	h.write(crt, "")

	o := l.mustUp()
	require.NotEmpty(t, o.changes)
	assert.Equal(t, engine.Change{
		Host: "m1", Phase: engine.PhaseInit, Action: "restore", Target: "/etc/kubernetes",
		Detail: "a renewal of certificates was interrupted: " + aside + " and 1 more",
	}, o.changes[0])
	assert.Len(t, o.changes, 1, "of labels nothing is known while etcd is away")
	h.remove(engine.StateDir + "/certificates")
	assert.Equal(t, want, l.state())
	assert.Empty(t, l.mustUp().changes)
}
