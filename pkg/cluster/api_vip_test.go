package cluster

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

const vipImage = "docker.io/openpai/pai-api-vip:v1"

func (l *lab) vip(address string) { l.conf.Kubernetes.Kubernetes.APIVIP = address }

func dry(o *labOptions, _ *ssh.Options) { o.DryRun = true }

func (l *lab) applied() string {
	b, err := os.ReadFile(l.cluster + "/objects/api-vip")
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(l.t, err)
	return string(b)
}

func TestTheAPIHasAVirtualAddressOnlyWhereItIsConfigured(t *testing.T) {
	l := newLab(t, 2, 1)
	l.made()
	assert.Empty(t, l.applied())
	assert.NotContains(t, lines(l.mustUp().changes), vipImage, "no machine is sent what it doesn't need")
	assert.NotContains(t, l.host("m1").read(engine.KubeadmConf), "10.9.0.77")

	l.vip("10.9.0.77")
	o := l.up(t.Context(), dry)
	require.NoError(t, o.err)
	assert.Contains(t, lines(o.changes), "m1 api-vip run pai-api-vip the API's virtual address 10.9.0.77")
	assert.Empty(t, l.applied(), "a dry run changes nothing")

	o = l.mustUp()
	changes := lines(o.changes)
	for _, m := range []string{"m1", "m2"} {
		assert.Contains(t, changes, m+" images import "+vipImage)
		assert.Contains(t, l.host(m).read(engine.KubeadmConf), "- 10.9.0.77\n", "the certificate of %s names it", m)
		assert.Less(t, o.at(engine.EventPhaseDone, m, engine.PhaseInit), o.at(engine.EventPhaseStarted, "m1", phases.PhaseAPIVIP))
	}
	assert.NotContains(t, changes, "w1 images import")
	assert.NotContains(t, changes, "m2 api-vip")
	assert.Contains(t, l.applied(), "--address=10.9.0.77")
	assert.Equal(t, localAPI+" -", l.api("w1"), "machines go on using their own")
	assert.Empty(t, lines(l.mustUp().changes))

	require.NoError(t, os.WriteFile(l.cluster+"/objects/no-lease", nil, 0o600))
	assert.Contains(t, lines(l.up(t.Context(), dry).changes), "m1 api-vip run pai-api-vip", "without the lease no machine takes the address")
	require.NoError(t, os.Remove(l.cluster+"/objects/no-lease"))

	const names = "/var/lib/paictl/api-names"
	l.vip("10.9.0.78")
	changes = lines(l.mustUp().changes)
	for _, m := range []string{"m1", "m2"} {
		assert.Contains(t, l.host(m).read(names), "10.9.0.77\n", "until the new one answers the API is used at the old one")
	}
	assert.Contains(t, changes, "m1 api-vip run pai-api-vip the API's virtual address 10.9.0.78, no longer 10.9.0.77")
	assert.Contains(t, l.applied(), "--address=10.9.0.78")
	assert.Empty(t, lines(l.mustUp().changes))

	l.vip("")
	changes = lines(l.mustUp().changes)
	assert.Contains(t, changes, "m1 api-vip remove pai-api-vip the API no longer has a virtual address")
	assert.Empty(t, l.applied())
	assert.NotContains(t, l.host("m1").read(names), "10.9.0.78")
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestANewClusterHasItsVirtualAddress(t *testing.T) {
	l := newLab(t, 3, 0)
	l.vip("10.9.0.77")
	assert.Contains(t, lines(l.mustUp().changes), "m1 api-vip run pai-api-vip")
	assert.Contains(t, l.applied(), "--address=10.9.0.77")
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAVirtualAddressThatAnswersIsRefusedBeforeAnythingChanges(t *testing.T) {
	const mac = "02:42:0a:09:00:63"
	for _, founded := range []bool{false, true} {
		l := newLab(t, 2, 1)
		if founded {
			l.made()
		}
		l.vip("10.9.0.77")
		l.host("m1").write("/.fake/arp", mac+"\n")
		l.host("m2").write("/.fake/arp", mac+"\n")
		o := l.up(t.Context())
		var refused *engine.PreflightError
		require.ErrorAs(t, o.err, &refused)
		require.Len(t, refused.Findings, 1)
		f := refused.Findings[0]
		assert.Equal(t, preflight.CheckVIP, f.Check)
		assert.Equal(t, "another machine of the network answers at api-vip 10.9.0.77: its hardware address is "+mac+", seen from m1, m2", f.Message)
		assert.Contains(t, hint.Of(o.err), "set api-vip in kubernetes-configuration.yaml to a free address")
		assert.True(t, l.has("m1", "/.fake/flushed"), "what the machine remembers of the address may be old")
		assert.Empty(t, l.applied())
		assert.Empty(t, lines(o.changes))

		l.host("m1").remove("/.fake/arp")
		l.host("m2").remove("/.fake/arp")
		l.host("m2").write("/.fake/own-address", "10.9.0.77")
		o = l.up(t.Context())
		require.ErrorAs(t, o.err, &refused)
		assert.Equal(t, []string{"m2", "api-vip 10.9.0.77 is an address that the machine has by itself"}, []string{refused.Findings[0].Host, refused.Findings[0].Message})

		l.host("m2").remove("/.fake/own-address")
		l.mustUp()
		// After the cluster has set up the address, a master responds at the address.
		l.host("m1").write("/.fake/arp", mac+"\n")
		assert.Empty(t, lines(l.mustUp().changes))
	}
}

func TestAMasterThatJoinsFindsTheVirtualAddressInUse(t *testing.T) {
	l := newLab(t, 2, 1)
	all := l.conf.Layout.MachineList
	l.conf.Layout.MachineList = append([]layout.Machine{all[0]}, all[2:]...)
	l.conf.Kubernetes.Kubernetes.APIEndpoint, l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "local", ""
	l.vip("10.9.0.77")
	l.mustUp()
	l.conf.Layout.MachineList = all
	l.host("m2").write("/.fake/arp", "02:42:0a:09:00:01\n")
	changes := lines(l.mustUp().changes)
	assert.Contains(t, changes, "m2 join run")
	assert.Contains(t, changes, "m2 images import "+vipImage)
}

func TestAVirtualAddressInNoNetworkOfAMasterIsRefused(t *testing.T) {
	l := newLab(t, 2, 1)
	l.vip("10.8.0.77")
	o := l.up(t.Context())
	var refused *engine.PreflightError
	require.ErrorAs(t, o.err, &refused)
	var got []string
	for _, f := range refused.Findings {
		got = append(got, f.Host+" "+f.Check+": "+f.Message)
	}
	const message = " api-vip: api-vip 10.8.0.77 is in no network of this master, which has 10.9.0.0/24"
	assert.Equal(t, []string{"m1" + message, "m2" + message}, got)
	assert.Contains(t, refused.Findings[0].Remedy, "if their networks differ, use a load balancer")
}

func TestAVirtualAddressThatNoMachineCanHaveIsRefused(t *testing.T) {
	l := newLab(t, 1, 0)
	for vip, want := range map[string]string{
		"10.9.0.0":   "api-vip 10.9.0.0 is the network's own address of 10.9.0.0/24, which no machine can have",
		"10.9.0.255": "api-vip 10.9.0.255 is the broadcast address of 10.9.0.0/24, which no machine can have",
	} {
		l.vip(vip)
		var refused *engine.PreflightError
		require.ErrorAs(t, l.up(t.Context()).err, &refused)
		require.Len(t, refused.Findings, 1)
		assert.Equal(t, want, refused.Findings[0].Message)
		assert.Empty(t, l.applied())
	}
}

func TestAVirtualAddressAtWhichTheAPIDoesNotAnswerIsTold(t *testing.T) {
	l := newLab(t, 1, 0)
	l.conf.Kubernetes.Kubernetes.APIEndpoint, l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "local", ""
	l.vip("10.9.0.77")
	l.host("m1").write("/.fake/fail/api-vip", `time=2026-11-27T18:00:00Z level=ERROR msg="another machine of the network has the address" hardware-address=02:42:0a:09:00:63`+"\n")
	f := failures(t, l.up(t.Context()), 1)["m1"]
	assert.Contains(t, f.Error, `the API does not answer at its virtual address 10.9.0.77: time=2026-11-27T18:00:00Z level=ERROR msg="another machine of the network has the address"`)
	assert.Contains(t, f.Hint, "kubectl -n kube-system describe daemonset pai-api-vip")
	f = failures(t, l.up(t.Context()), 1)["m1"] // the failure persists
	assert.Contains(t, f.Error, "the API does not answer at its virtual address")
	l.host("m1").remove("/.fake/fail/api-vip")
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAnUpgradeBringsTheVirtualAddressItsImage(t *testing.T) {
	l := newLab(t, 2, 0)
	l.vip("10.9.0.77")
	l.made()
	before := l.applied()
	l.release(nextRelease, "")
	o := l.upgrade(t.Context(), UpgradeOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, strings.Count(before, "image: "), strings.Count(l.applied(), "image: "))
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestTheVirtualAddressIsRenderedAsItAlwaysWas(t *testing.T) {
	s := testSpec(t, 3, 1)
	s.Config.Kubernetes.Kubernetes.APIVIP = "10.9.0.77"
	manifest, sum, err := phases.Named(s.Fresh(), phases.PhaseAPIVIP).(interface {
		Manifest() ([]byte, string, error)
	}).Manifest()
	require.NoError(t, err)
	golden(t, "api-vip.yaml", strings.ReplaceAll(string(manifest), sum, "HASH"))
	assert.Contains(t, phases.NoProxy(s), ",10.9.0.77,")
}

func TestStatusTellsWhoHasTheVirtualAddress(t *testing.T) {
	s := testSpec(t, 2, 0)
	s.Config.Kubernetes.Kubernetes.APIEndpoint, s.Config.Kubernetes.Kubernetes.LoadBalanceIP = "local", ""
	status := func(words ...string) *Status { // of m1, m2
		answers := map[*engine.Node]answer.Answer{}
		for i, w := range words {
			answers[s.Nodes[i]] = sectionsOf([]byte("@@ status\napi\tup\t\n" + w))["status"]
		}
		return newStatus(s, s.Nodes, answers, nil, time.Now())
	}
	const holder, yes, no = "vip-holder\t\"m2\"\n", "vip-answers\tyes\n", "vip-answers\tno\n"
	assert.Nil(t, status(holder).VIP, "none is configured")
	s.Config.Kubernetes.Kubernetes.APIVIP = "10.9.0.77"
	for _, tt := range []struct {
		m1, m2  string
		answers bool
	}{
		{holder + yes, holder + yes, true},
		{holder + yes, holder + no, true},
		{holder + no, holder + yes, false}, // the holder reaches its own address in any case
		{holder, holder + yes, true},       // no other was asked
		{holder, holder, false},
	} {
		st := status(tt.m1, tt.m2)
		assert.Equal(t, &VIPStatus{Address: "10.9.0.77", Holder: "m2", Answers: tt.answers}, st.VIP, "%q", tt)
		assert.Equal(t, tt.answers, st.Endpoint == "https://10.9.0.77:6443", "%q: %s", tt, st.Endpoint)
	}
	assert.Equal(t, &VIPStatus{Address: "10.9.0.77"}, status("").VIP)
}

func TestAKubeconfigNamesAMasterWhileTheVirtualAddressDoesNotAnswer(t *testing.T) {
	l := newLab(t, 2, 1)
	l.conf.Kubernetes.Kubernetes.APIEndpoint, l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "local", ""
	l.vip("10.9.0.77")
	l.mustUp()
	for _, m := range []string{"m1", "m2"} {
		_, authority, _ := strings.Cut(l.host(m).read("/etc/kubernetes/admin.conf"), "# ca ") // the lab's API checks the CA
		l.host(m).write("/etc/kubernetes/admin.conf", strings.ReplaceAll(adminConf, "10.0.0.1:6443", "127.0.0.1:6444")+"# ca "+authority)
	}
	var warned []string
	fetch := func(by func(context.Context, *engine.Spec, engine.Options) (*api.Config, error)) string {
		t.Helper()
		warned = nil
		o, events := l.options(), &sink{}
		o.Sink = events
		c, err := by(t.Context(), l.spec(), o)
		require.NoError(t, err)
		for _, e := range events.events {
			if e.Kind == engine.EventWarning {
				warned = append(warned, e.Message)
			}
		}
		return c.Clusters["pai"].Server
	}
	assert.Equal(t, "https://10.9.0.77:6443", fetch(Kubeconfig))
	assert.Empty(t, warned)
	assert.Equal(t, "https://10.9.0.1:6443", fetch(MasterKubeconfig), "paictl itself needs no virtual address")

	l.host("m2").write("/.fake/fail/api-vip", "")
	assert.Equal(t, "https://10.9.0.1:6443", fetch(Kubeconfig), "m1 has it, and reaches it in any case")
	assert.Equal(t, []string{"the API doesn't answer at its virtual address 10.9.0.77: the kubeconfig names m1, 10.9.0.1, and stops working with that master"}, warned)
	assert.Equal(t, "https://10.9.0.1:6443", fetch(MasterKubeconfig))
	assert.Empty(t, warned)
}

func TestAVirtualAddressThatOnlyItsHolderReachesIsTold(t *testing.T) {
	for _, other := range []string{"m2", "w1"} {
		masters, workers := 2, 0
		if other == "w1" {
			masters, workers = 1, 1
		}
		l := newLab(t, masters, workers)
		l.conf.Kubernetes.Kubernetes.APIEndpoint, l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "local", ""
		l.mustUp()
		l.vip("10.9.0.77")
		l.host(other).write("/.fake/fail/api-vip", "")
		f := failures(t, l.up(t.Context()), 3)["m1"]
		assert.Equal(t, "the API answers at its virtual address 10.9.0.77 at m1, which has it, but not from "+other+
			": Unable to connect to the server: dial tcp 10.9.0.77:6443: connect: no route to host", f.Error)
		assert.Contains(t, f.Hint, "see whether the network lets the masters' ARP through")
		if other == "m2" { // the masters are asked each time
			f = failures(t, l.up(t.Context()), 3)["m1"]
			assert.Contains(t, f.Error, "but not from m2")
		}
		l.host(other).remove("/.fake/fail/api-vip")
		l.mustUp()
		assert.Empty(t, lines(l.mustUp().changes))
	}
}

func TestOnlyAWholeRunMovesTheVirtualAddress(t *testing.T) {
	l := newLab(t, 2, 1)
	l.made()
	l.vip("10.9.0.77")
	some := []func(*labOptions, *ssh.Options){
		func(o *labOptions, _ *ssh.Options) { o.Limit = []string{"m1"} },
		func(o *labOptions, _ *ssh.Options) {
			o.Phases = []string{phases.PhaseImages, engine.PhaseInit, phases.PhaseAPIVIP}
		},
	}
	same := func(why string) {
		t.Helper()
		before := l.applied()
		for _, part := range some {
			o := l.up(t.Context(), part)
			require.NoError(t, o.err)
			assert.NotContains(t, lines(o.changes), " api-vip ", why)
			assert.Equal(t, before, l.applied(), why)
		}
	}
	same("the other masters may have no certificate for it")
	l.mustUp()
	assert.Contains(t, l.applied(), "--address=10.9.0.77")
	l.vip("10.9.0.78")
	same("as it was")
	l.vip("")
	same("as it was")

	l.vip("10.9.0.77")
	require.NoError(t, os.WriteFile(l.cluster+"/objects/no-lease", nil, 0o600))
	o := l.up(t.Context(), some[0], dry)
	require.NoError(t, o.err)
	assert.Contains(t, lines(o.changes), "m1 api-vip run pai-api-vip", "what is there is repaired")
}
