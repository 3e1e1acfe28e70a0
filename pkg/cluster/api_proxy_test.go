package cluster

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/ssh"
)

const localAPI = "https://127.0.0.1:6444"

// api returns the addresses of the API in a machine's kubeconfigs: the kubelet's and, on a master, the administrator's.
func (l *lab) api(name string) string {
	l.t.Helper()
	out := []string{"-", "-"}
	for i, f := range []string{"kubelet.conf", "admin.conf"} {
		b, err := os.ReadFile(l.host(name).root + "/etc/kubernetes/" + f)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if server, ok := strings.CutPrefix(strings.TrimSpace(line), "server: "); ok {
				out[i] = server
			}
		}
	}
	return strings.Join(out, " ")
}

func (l *lab) discovery() string {
	b, err := os.ReadFile(l.cluster + "/objects/cluster-info")
	require.NoError(l.t, err)
	_, rest, _ := strings.Cut(string(b), "server: ")
	server, _, _ := strings.Cut(rest, "\n")
	return server
}

func (l *lab) has(name, file string) bool {
	_, err := os.Stat(l.host(name).root + file)
	return err == nil
}

func TestMachinesOfSeveralMastersReachAnyOfThem(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	l.made()
	for _, name := range []string{"m1", "m2", "m3", "w1"} {
		assert.Equal(t, []string{"10.9.0.1:6443", "10.9.0.2:6443", "10.9.0.3:6443"},
			strings.Split(strings.TrimSpace(l.host(name).read(phases.APIServers)), "\n")[1:], name)
	}
	assert.Equal(t, localAPI+" -", l.api("w1"))
	assert.Equal(t, localAPI+" "+localAPI, l.api("m1"), "as kubeadm makes it")
	assert.Equal(t, "https://10.9.0.2:6443 "+localAPI, l.api("m2"), "as kubeadm makes it")
	assert.Contains(t, l.host("m1").read(engine.KubeadmConf), "- 127.0.0.1\n", "the certificate names it")
	assert.Empty(t, lines(l.mustUp().changes))

	s := l.spec()
	assert.Equal(t, "https://10.9.0.2:6443", reachedBy(s.Fresh(), s.Master("10.9.0.2"), localAPI), "people are elsewhere")
}

func TestTheAPIsAddressMovesAsTheMastersBecomeMoreAndFewer(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 2)
	all := l.conf.Layout.MachineList
	l.conf.Layout.MachineList = slices.Concat(all[:1], all[3:])
	k := &l.conf.Kubernetes.Kubernetes
	k.APIEndpoint, k.LoadBalanceIP = "", "10.9.0.1" // as config generate writes it for one master
	l.made()
	assert.Equal(t, "https://10.9.0.1:6443 -", l.api("w1"))
	assert.False(t, l.has("w1", phases.ProxyService), "one master has an address of its own")
	l.keep()

	l.conf.Layout.MachineList = all
	o := l.mustUp()
	assert.Contains(t, lines(o.changes), "w1 join restart kubelet.service it reaches the API at 127.0.0.1:6444, no longer at 10.9.0.1:6443")
	assert.NotContains(t, lines(o.changes), "w1 join run")
	assert.True(t, l.kept())
	assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
	assert.Equal(t, localAPI, l.discovery())
	for _, name := range []string{"w1", "w2"} {
		assert.Equal(t, localAPI+" -", l.api(name))
	}
	assert.Equal(t, "https://10.9.0.1:6443 "+localAPI, l.api("m1"))
	assert.Less(t, o.at(engine.EventPhaseDone, "m1", engine.PhaseInit), o.at(engine.EventPhaseStarted, "w1", engine.PhaseJoin), "the certificate has the name before")
	assert.Less(t, o.at(engine.EventPhaseDone, "w1", engine.PhaseJoin), o.at(engine.EventPhaseStarted, "w2", engine.PhaseJoin), "one by one")
	assert.Empty(t, lines(l.mustUp().changes))

	out, _ := l.removeNodes(t.Context(), RemoveOptions{}, "m1", "m3")
	require.ErrorContains(t, out.err, "load-balance-ip in kubernetes-configuration.yaml is the address of m1: without that machine no master would have this address")
	assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
	for _, h := range l.hosts {
		h.write("/.fake/answers/10.9.0.2:6443", "")
	}
	k.LoadBalanceIP = ""
	out, left := l.removeNodes(t.Context(), RemoveOptions{}, "m1", "m3")
	require.NoError(t, out.err, "%s", l.story(out))
	assert.ElementsMatch(t, []string{"m1", "m3"}, left, "no machine's address was everyone's")
	l.conf.Layout.MachineList = slices.Concat(all[1:2], all[3:])
	l.mustUp()
	assert.True(t, l.kept())
	assert.Equal(t, "https://10.9.0.2:6443", l.discovery())
	assert.Equal(t, "https://10.9.0.2:6443 https://10.9.0.2:6443", l.api("m2"))
	for _, name := range []string{"m2", "w1", "w2"} {
		if name != "m2" {
			assert.Equal(t, "https://10.9.0.2:6443 -", l.api(name))
		}
		assert.True(t, l.has(name, phases.ProxyService), "pods of %s may use it for a while", name)
		assert.Contains(t, l.host(name).read(phases.APIServers), "\n10.9.0.2:6443\n")
		assert.NotContains(t, l.host(name).read(phases.APIServers), "10.9.0.1")
	}
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestTheAPIsAddressMovesToALoadBalancer(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 1)
	l.made()
	l.conf.Kubernetes.Kubernetes.APIEndpoint = "10.9.0.100:443"
	for _, h := range l.hosts[:2] {
		h.write("/.fake/answers/10.9.0.100:443", " 16\n")
	}
	before := l.bytes()
	err := l.up(t.Context()).err
	require.EqualError(t, err, "the API's address is to become 10.9.0.100:443, but no API server of this cluster is ready there, seen from w1: nothing was changed")
	l.host("w1").write("/.fake/answers/10.9.0.100:443", " 16\n")
	for _, edit := range []func(*labOptions, *ssh.Options){limited("w1"), func(o *labOptions, _ *ssh.Options) { o.Phases = []string{engine.PhaseJoin} }} {
		require.ErrorContains(t, l.up(t.Context(), edit).err, "the API's address is about to change to 10.9.0.100:443, for all machines")
	}
	l.host("w1").remove("/.fake/answers/10.9.0.100:443")
	assert.Equal(t, before, l.bytes())
	l.host("w1").write("/.fake/answers/10.9.0.100:443", " 16\n")
	l.mustUp()
	assert.Contains(t, l.host("m1").read("/var/lib/paictl/api-names"), "127.0.0.1", "a certificate keeps the names that machines may still use")
	assert.Equal(t, "https://10.9.0.100:443 -", l.api("w1"))
	assert.Equal(t, "https://10.9.0.1:6443 https://10.9.0.100:443", l.api("m1"))
	assert.Equal(t, "https://10.9.0.100:443", l.discovery())
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAMoveOfTheAPIsAddressThatIsCutOffIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	cutOff(t, 2, 2, func(t *testing.T) story {
		l := newLab(t, 2, 1)
		all := l.conf.Layout.MachineList
		l.conf.Layout.MachineList = slices.Concat(all[:1], all[2:])
		l.conf.Kubernetes.Kubernetes.APIEndpoint = ""
		l.made()
		l.conf.Layout.MachineList = all
		return story{lab: l, run: func() *outcome { return l.up(t.Context()) }, check: func(*crash, *outcome) {
			assert.Equal(t, localAPI+" -", l.api("w1"))
			assert.Equal(t, localAPI, l.discovery())
			assert.Equal(t, []string{"m1", "m2"}, l.members())
			assert.Empty(t, lines(l.mustUp().changes))
		}}
	})
}

func TestAKubeletThatDoesNotReachTheNewAddressGoesBack(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 2)
	l.made()
	k := &l.conf.Kubernetes.Kubernetes
	k.APIEndpoint = "10.9.0.100:443"
	for _, h := range l.hosts {
		h.write("/.fake/answers/10.9.0.100:443", " 16\n")
	}
	l.host("w1").write("/.fake/fail/reach-10.9.0.100:443", "")
	o := l.up(t.Context())
	require.ErrorAs(t, o.err, new(*engine.PartialError), "%s", l.story(o))
	assert.Contains(t, o.err.Error(), "w1")
	assert.Equal(t, localAPI+" -", l.api("w1"))
	assert.Equal(t, localAPI+" -", l.api("w2"), "the later ones are left as they are")
	o = l.up(t.Context()) // a retry leaves them as well
	require.ErrorAs(t, o.err, new(*engine.PartialError), "%s", l.story(o))
	assert.Equal(t, localAPI+" -", l.api("w2"))
	l.host("w1").remove("/.fake/fail/reach-10.9.0.100:443")
	l.mustUp()
	assert.Equal(t, "https://10.9.0.100:443 -", l.api("w1"))
	assert.Equal(t, "https://10.9.0.100:443 -", l.api("w2"))
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestARestartOfTheKubeletThatWasInterruptedIsMadeUpFor(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 1)
	l.made()
	l.host("w1").write("/var/lib/paictl/kubelet-moves", "")
	o := l.mustUp()
	assert.Equal(t, "w1 join restart kubelet.service it reaches the API at 127.0.0.1:6444: its restart was interrupted\n", lines(o.changes))
	assert.Empty(t, lines(l.mustUp().changes))
}
