package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

func (h *fakeHost) wipe() {
	h.lab.t.Helper()
	require.NoError(h.lab.t, os.RemoveAll(h.root))
	h.install()
}

// keep stores an object in the cluster. kept reports whether the object still exists.
func (l *lab) keep() {
	l.t.Helper()
	require.NoError(l.t, os.WriteFile(filepath.Join(l.cluster, "objects", "kept"), nil, 0o600))
}

func (l *lab) kept() bool {
	_, err := os.Stat(filepath.Join(l.cluster, "objects", "kept"))
	return err == nil
}

func (l *lab) members() []string {
	l.t.Helper()
	entries, err := os.ReadDir(filepath.Join(l.cluster, "members"))
	require.NoError(l.t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// The stub of kubeadm fails the test if it must create a cluster while another machine is a member. It also fails if a machine returns to etcd
// under its old identity.
func TestAMasterThatLostItsDiskJoinsTheClusterThatIsThere(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	l.made()
	l.keep()
	for _, name := range []string{"m1", "m2"} {
		l.host(name).wipe()
		o := l.mustUp()
		assert.Contains(t, lines(o.changes), name+" join run kubeadm join")
		assert.NotContains(t, lines(o.changes), "kubeadm init")
		assert.True(t, l.kept())
		assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
		assert.Equal(t, l.host("m3").read(phases.EncryptionFile), l.host(name).read(phases.EncryptionFile))
		assert.Empty(t, lines(l.mustUp().changes))
	}
}

func TestAMasterListedAboveTheOthersJoinsThem(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 1)
	machines := l.conf.Layout.MachineList
	k := &l.conf.Kubernetes.Kubernetes
	l.conf.Layout.MachineList, k.LoadBalanceIP = machines[1:], ""
	l.made()
	l.keep()
	l.conf.Layout.MachineList = machines
	k.LoadBalanceIP = "10.9.0.1" // with the value of the defaults
	o := l.mustUp()
	assert.NotContains(t, lines(o.changes), "run kubeadm init v")
	assert.True(t, l.kept())
	assert.Equal(t, []string{"m1", "m2"}, l.members())
	assert.Contains(t, l.host("m1").read("/etc/kubernetes/admin.conf"), localAPI, "any master that is ready")
	assert.Empty(t, lines(l.mustUp().changes))

	k.APIEndpoint = "10.9.0.2"
	out, _ := l.removeNodes(t.Context(), RemoveOptions{}, "m2")
	require.ErrorContains(t, out.err, "api-endpoint in kubernetes-configuration.yaml is an address of m2")
	assert.Contains(t, hint.Of(out.err), "set api-endpoint: local")
	k.APIEndpoint, k.LoadBalanceIP = "", ""
	assert.Equal(t, []string{"m1", "m2"}, l.members())
	out, left := l.removeNodes(t.Context(), RemoveOptions{}, "m1")
	require.NoError(t, out.err, "%s", l.story(out))
	assert.Equal(t, []string{"m1"}, left)
}

func TestTheOrderOfTheLayoutMeansNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 2)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	l.made()
	slices.Reverse(l.conf.Layout.MachineList)
	assert.Empty(t, lines(l.mustUp().changes))
}

// refused runs an up that must be rejected without any change. It returns the error.
func (l *lab) refused(edit ...func(*labOptions, *ssh.Options)) error {
	l.t.Helper()
	before := l.bytes()
	o := l.up(l.t.Context(), edit...)
	require.ErrorAs(l.t, o.err, new(*engine.PreflightError), "%s", l.story(o))
	assert.Equal(l.t, before, l.bytes())
	return o.err
}

func limited(hosts ...string) func(*labOptions, *ssh.Options) {
	return func(o *labOptions, _ *ssh.Options) { o.Limit = hosts }
}

func TestNoClusterIsMadeWhereThereMayBeOne(t *testing.T) {
	t.Parallel()
	t.Run("a master that is off may be a member of it", func(t *testing.T) {
		l := newLab(t, 2, 1)
		machines := l.conf.Layout.MachineList
		l.conf.Layout.MachineList = machines[1:]
		l.made()
		l.conf.Layout.MachineList = machines
		l.host("m2").server.Close()
		err := l.refused(limited("m1"))
		require.ErrorContains(t, err, "m2: the machine doesn't answer, and no other machine of the control plane is a member of a cluster")
		pf, _ := errors.AsType[*engine.PreflightError](err)
		var remedies []string
		for _, f := range pf.Findings {
			remedies = append(remedies, f.Remedy)
		}
		assert.Contains(t, strings.Join(remedies, "\n"), "repair m2 and run the same command again")
	})
	t.Run("workers are members, and the only master has a new disk", func(t *testing.T) {
		l := newLab(t, 1, 2)
		l.made()
		l.host("m1").wipe()
		err := l.refused()
		require.ErrorContains(t, err, "w1: the machine and 1 others are members of a cluster whose control plane is not on a master")
		assert.Contains(t, hint.Of(err), "paictl cluster recreate")
		require.ErrorContains(t, l.refused(limited("m1")), "members of a cluster whose control plane")
	})
	t.Run("a master lost one file", func(t *testing.T) {
		l := newLab(t, 1, 0)
		l.made()
		l.host("m1").remove("/etc/kubernetes/kubelet.conf")
		err := l.refused()
		require.ErrorContains(t, err, "paictl does not delete its database for that")
		assert.Contains(t, hint.Of(err), "kubeadm init phase kubeconfig kubelet")
		assert.DirExists(t, l.host("m1").root+"/var/lib/etcd/member")
	})
	t.Run("a master of another cluster", func(t *testing.T) {
		l := newLab(t, 3, 0)
		l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
		l.made()
		other, err := os.ReadFile(filepath.Join(l.cluster, "ca", "3.crt"))
		require.NoError(t, err)
		l.host("m1").write("/etc/kubernetes/pki/ca.crt", string(other))
		err = l.refused()
		require.ErrorContains(t, err, "m1: the machine is a member of another cluster: its certificate authority is not that of m2")
		assert.Contains(t, hint.Of(err), "paictl cluster down --limit m1")
	})
}

func TestAnyMasterLeadsARunWhenOthersAreOff(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	l.made()
	l.host("m1").server.Close()
	l.conf.Layout.MachineList[3].Labels = map[string]string{"rack": "a"}
	o := l.up(t.Context())
	var partial *engine.PartialError
	require.ErrorAs(t, o.err, &partial)
	assert.Equal(t, 3, partial.ExitCode())
	assert.Contains(t, lines(o.changes), "m2 labels set node w1 label rack=a")
	_, left := l.removeNodes(t.Context(), RemoveOptions{}, "m1")
	assert.Equal(t, []string{"m1"}, left, "the first one, and dead")
	assert.Equal(t, []string{"m2", "m3"}, l.members())
}

func TestSettingsReachOneMasterAfterTheOtherEtcdToo(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	k := &l.conf.Kubernetes.Kubernetes
	k.LoadBalanceIP = "10.9.0.100"
	l.made()
	before := l.host("m2").read("/etc/kubernetes/manifests/etcd.yaml")
	k.Extra.Kubeadm = map[string]any{"etcd": map[string]any{"local": map[string]any{"extraArgs": phases.Args("snapshot-count", "5000")}}}
	o := l.mustUp()
	assert.NotEqual(t, before, l.host("m2").read("/etc/kubernetes/manifests/etcd.yaml"))
	assert.Less(t, o.at(engine.EventPhaseDone, "m1", engine.PhaseInit), o.at(engine.EventPhaseStarted, "m2", engine.PhaseInit))
	assert.Less(t, o.at(engine.EventPhaseDone, "m2", engine.PhaseInit), o.at(engine.EventPhaseStarted, "m3", engine.PhaseInit))
	assert.Empty(t, lines(l.mustUp().changes))

	t.Run("the folder of etcd's data stays", func(t *testing.T) {
		k.EtcdDataPath = "/data/etcd"
		defer func() { k.EtcdDataPath = "/var/lib/etcd" }()
		o := l.up(t.Context())
		require.ErrorContains(t, o.err, "etcd on m1 has its data in /var/lib/etcd, but the configuration says /data/etcd: there it would start empty")
		assert.Contains(t, hint.Of(o.err), "etcd-data-path: /var/lib/etcd")
	})
	t.Run("what breaks the API server is put back, and the other masters never see it", func(t *testing.T) {
		manifest := "/etc/kubernetes/manifests/kube-apiserver.yaml"
		good := l.host("m1").read(manifest)
		l.host("m1").write("/.fake/bad/kube-apiserver", engine.Hash([]byte(good))[:32])
		l.host("m1").write("/var/log/pods/kube-system_kube-apiserver-m1_x/kube-apiserver/0.log", "Error: unknown flag: --no-such-flag\n")
		l.forgetCalls()
		k.Extra.Kubeadm["apiServer"] = map[string]any{"extraArgs": phases.Args("no-such-flag", "1")}
		o := l.up(t.Context())
		var partial *engine.PartialError
		require.ErrorAs(t, o.err, &partial)
		assert.Contains(t, l.story(o), "the earlier ones are back in force; it said: Error: unknown flag: --no-such-flag")
		assert.Equal(t, good, l.host("m1").read(manifest))
		assert.NotContains(t, l.host("m2").calls(), "kubeadm init phase control-plane all")
		assert.NotContains(t, l.host("m3").calls(), "kubeadm init phase control-plane all")
		l.host("m1").remove("/.fake/bad")
		delete(k.Extra.Kubeadm, "apiServer")
		l.mustUp()
		assert.Empty(t, lines(l.mustUp().changes))
	})
}

func TestAChangeOfAnotherComponentRestartsNoEtcd(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 0)
	k := &l.conf.Kubernetes.Kubernetes
	k.LoadBalanceIP = "10.9.0.100"
	l.made()
	l.forgetCalls()
	before := l.host("m2").read("/etc/kubernetes/manifests/etcd.yaml")
	require.Contains(t, before, "--initial-cluster-state=existing")
	k.Extra.Kubeadm = map[string]any{"scheduler": map[string]any{"extraArgs": phases.Args("v", "4")}}
	o := l.mustUp()
	assert.Contains(t, lines(o.changes), "m2 init run kubeadm init phase control-plane")
	for _, name := range []string{"m1", "m2"} {
		assert.Contains(t, l.host(name).calls(), "kubeadm init phase control-plane all")
		assert.NotContains(t, l.host(name).calls(), "kubeadm init phase etcd local")
	}
	assert.Equal(t, before, l.host("m2").read("/etc/kubernetes/manifests/etcd.yaml"))
	assert.NoDirExists(t, l.host("m2").root+engine.StateDir+"/etcd.new")
	assert.Empty(t, lines(l.mustUp().changes))
}

// The pods already run with the settings of an earlier run, so the run doesn't wait for the pods again.
func TestSettingsThatCameUpBeforeARunWasCutOffStay(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.made()
	m1 := l.host("m1")
	k := &l.conf.Kubernetes.Kubernetes
	old := map[string]string{}
	for _, c := range components {
		old[c] = m1.read("/etc/kubernetes/manifests/" + c + ".yaml")
	}
	k.Extra.Kubeadm = map[string]any{"scheduler": map[string]any{"extraArgs": phases.Args("v", "4")}}
	l.mustUp()
	want := m1.read("/etc/kubernetes/manifests/kube-scheduler.yaml")
	require.NotEqual(t, want, old["kube-scheduler"])
	// Restore the state after a power failure between the start of the scheduler and its record.
	for c, text := range old {
		m1.write(engine.StateDir+"/manifests/"+c+".yaml", text)
		m1.write(engine.StateDir+"/manifests/"+c+".hash", engine.Hash([]byte(text))[:32])
	}
	m1.remove(engine.StateDir + "/kubeadm-applied")
	l.mustUp()
	assert.Equal(t, want, m1.read("/etc/kubernetes/manifests/kube-scheduler.yaml"))
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestATicketIsMadeAgainBeforeItsTokenEnds(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 3)
	start := time.Now()
	var asked atomic.Int64 // machines are worked on at once
	l.up(t.Context(), func(o *labOptions, _ *ssh.Options) {
		o.Clock = func() time.Time { return start.Add(phases.TicketLife * time.Duration(asked.Add(1))) }
	})
	tokens := 0
	for _, c := range l.host("m1").calls() {
		if c == "kubeadm token create" {
			tokens++
		}
	}
	assert.Equal(t, 3, tokens, "one for each machine, where half an hour lies between them")
}

func TestALimitedRunWithoutAClusterSaysWhatToRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	o := l.up(t.Context(), limited("w1"))
	require.Error(t, o.err)
	assert.Contains(t, l.story(o), "the cluster doesn't exist yet, so no machine can join it (run paictl cluster up without --limit and --phases first)")
}

func TestRecreateMakesTheClusterAgain(t *testing.T) {
	t.Parallel()
	again := func(o *labOptions, _ *ssh.Options) { o.recreate = true }
	prepare := func(l *lab) {
		l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
		l.made()
		l.keep()
	}
	t.Run("from a healthy one", func(t *testing.T) {
		l := newLab(t, 2, 1)
		prepare(l)
		loss, err := PreviewRecreate(t.Context(), l.spec(), l.options())
		require.NoError(t, err)
		assert.Equal(t, []string{"m1", "m2", "w1"}, loss.Members)
		assert.Contains(t, loss.String(), "3 nodes, 4 namespaces")
		before := l.bytes()
		o := l.up(t.Context(), again, func(o *labOptions, _ *ssh.Options) { o.DryRun = true })
		require.NoError(t, o.err)
		assert.Contains(t, lines(o.changes), "m2 reset run kubeadm reset")
		assert.Contains(t, lines(o.changes), "m1 init run kubeadm init")
		assert.Equal(t, before, l.bytes())

		o = l.up(t.Context(), again)
		require.NoError(t, o.err, "%s", l.story(o))
		assert.False(t, l.kept())
		assert.Equal(t, []string{"m1", "m2", "w1"}, l.nodes())
		assert.Empty(t, lines(l.mustUp().changes))
	})
	t.Run("whose only master lost its disk", func(t *testing.T) {
		l := newLab(t, 1, 1)
		prepare(l)
		l.host("m1").wipe()
		o := l.up(t.Context(), again)
		require.NoError(t, o.err, "%s", l.story(o))
		assert.Equal(t, []string{"m1", "w1"}, l.nodes())
	})
	t.Run("not while a master is off, nor for a part", func(t *testing.T) {
		l := newLab(t, 2, 1)
		prepare(l)
		l.host("m2").server.Close()
		o := l.up(t.Context(), again)
		require.ErrorContains(t, o.err, "m2 of the control plane does not answer: it would continue as the old cluster")
		o = l.up(t.Context(), again, limited("w1"))
		require.ErrorContains(t, o.err, "recreate works only on the whole cluster")
		assert.True(t, l.kept())
	})
	t.Run("not beside a master that layout.yaml doesn't have", func(t *testing.T) {
		l := newLab(t, 2, 1)
		l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
		prepare(l)
		machines := l.conf.Layout.MachineList
		l.conf.Layout.MachineList = slices.DeleteFunc(slices.Clone(machines), func(m layout.Machine) bool { return m.Hostname == "m2" })
		for _, dry := range []bool{true, false} {
			o := l.up(t.Context(), again, func(o *labOptions, _ *ssh.Options) { o.DryRun = dry })
			require.ErrorContains(t, o.err, "m2 is a master of the cluster, but not in layout.yaml")
			require.ErrorContains(t, o.err, "nothing was changed")
		}
		assert.True(t, l.kept())
	})
	t.Run("and killed anywhere it is finished by running it again", func(t *testing.T) {
		cutOff(t, 2, 2, func(t *testing.T) story {
			l := newLab(t, 1, 1)
			prepare(l)
			return story{lab: l, run: func() *outcome { return l.up(t.Context(), again) }, between: l.rest, check: func(*crash, *outcome) {
				assert.Equal(t, []string{"m1", "w1"}, l.nodes())
				assert.Empty(t, strings.TrimSpace(lines(l.mustUp().changes)))
			}}
		})
	})
}

func TestOneWorkerThatRefusesTheLoginKeepsNoOneFromWorking(t *testing.T) {
	s := preflightSpec(t, 3)
	f := newFleet(t, s)
	o := f.options(&storySink{})
	good := o.Dialer
	for _, refused := range [][]string{{"w2"}, {"w1", "w2"}, {"m1"}} {
		for _, why := range []error{ssh.ErrAuth, ssh.ErrHostKey} {
			o.Dialer = dialerFunc(func(ctx context.Context, target ssh.Target) (ssh.Host, error) {
				for _, n := range s.Nodes {
					if n.Target == target && slices.Contains(refused, n.Hostname) {
						return nil, fmt.Errorf("%s: %w", n.Hostname, why)
					}
				}
				return good.Dial(ctx, target)
			})
			_, err := Preflight(t.Context(), s, o, false)
			if len(refused) == 1 && refused[0] != "m1" {
				require.ErrorAs(t, err, new(*engine.PartialError), "%v", err)
				assert.ErrorContains(t, err, "w2")
				continue
			}
			require.ErrorAs(t, err, new(*engine.PreflightError), "%v %v", refused, err)
		}
	}
}

type dialerFunc func(context.Context, ssh.Target) (ssh.Host, error)

// Dial implements ssh.Dialer.
func (f dialerFunc) Dial(ctx context.Context, t ssh.Target) (ssh.Host, error) { return f(ctx, t) }

func TestWhatAReconfigurationThatWasCutOffLeftIsMendedByTheSettingsOfNow(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.made()
	m1 := l.host("m1")
	good := m1.read("/etc/kubernetes/manifests/kube-apiserver.yaml")
	// The power failed after a bad manifest was written, and the operator then reverted the setting.
	m1.write(engine.StateDir+"/manifests/kube-apiserver.yaml", good)
	m1.write("/etc/kubernetes/manifests/kube-apiserver.yaml", "bad")
	m1.write("/.fake/fail/api", "")
	o := l.up(t.Context(), func(o *labOptions, _ *ssh.Options) { o.DryRun = true })
	require.NoError(t, o.err)
	assert.Contains(t, lines(o.changes), "m1 init run kubeadm init phase control-plane")
	m1.remove("/.fake/fail/api")
	l.mustUp()
	assert.Equal(t, good, m1.read("/etc/kubernetes/manifests/kube-apiserver.yaml"))
	assert.NoDirExists(t, m1.root+engine.StateDir+"/manifests")
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAMasterGetsItsAdministratorsCredentialsAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.made()
	l.host("m1").remove("/etc/kubernetes/admin.conf")
	assert.Contains(t, lines(l.mustUp().changes), "m1 init create /etc/kubernetes/admin.conf")
	l.mustUp()
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAMasterThatLostPaictlsRecordIsNotThrownAway(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.made()
	l.host("m1").remove(engine.StateDir)
	err := l.refused()
	require.ErrorContains(t, err, "m1: the machine has the control plane of a cluster, and /var/lib/paictl, which identifies it for paictl, is missing")
	assert.NotContains(t, hint.Of(err), "rm -rf")
}

func TestAMasterThatLostPaictlsMarkIsNotThrownAway(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	l.made()
	l.host("m1").remove(paths.Member)
	require.ErrorContains(t, l.refused(), "paictl does not delete its database for that")
}

func TestAMachineIsResetOnlyWhenItsNodeIsAskedForByName(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.made()
	want := l.spec().Fresh()
	p := phases.Named(want, engine.PhaseJoin).(interface {
		IsUnknown(ctx context.Context, r *engine.Run, n *engine.Node) error
	})
	r := engine.NewRun(want.Spec, l.options())
	defer r.Close()
	for _, n := range want.Nodes {
		require.NoError(t, r.Dial(t.Context(), n))
	}
	r.Leader = want.ControlPlane()[0]
	require.ErrorContains(t, p.IsUnknown(t.Context(), r, want.Nodes[1]), "the cluster knows the node after all: nothing was done on its machine")
	require.NoError(t, os.RemoveAll(l.cluster+"/nodes/w1"))
	require.NoError(t, p.IsUnknown(t.Context(), r, want.Nodes[1]))
}
