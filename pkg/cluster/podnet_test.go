package cluster

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/config"
)

// podNet writes the state that flannel and the CNI plugins create on a machine. This is the bridge with an address, flannel's file with a subnet,
// and a pod with an address and its interface on the bridge.
func (h *fakeHost) podNet(bridge, subnet, pod string) {
	h.write("/.fake/links/cni0", bridge+"\n")
	h.write("/.fake/links/flannel.1", "")
	h.write("/.fake/links/veth1.cni0", "")
	h.write("/run/flannel/subnet.env", "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET="+subnet+"\n")
	h.write("/etc/cni/net.d/10-paictl-flannel.conflist", "{}\n")
	h.write("/var/lib/cni/networks/paictl-flannel/"+pod, "sandbox-"+pod+"\r\neth0")
	h.write("/var/lib/cni/networks/paictl-flannel/last_reserved_ip.0", pod)
	h.write("/.fake/tasks/sandbox-"+pod, "")
	h.write("/.fake/tasks/flannel", "")
}

func TestAMachineThatJoinsAgainHasNothingOfItsOldPodNetwork(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.made()
	w1 := l.host("w1")
	w1.podNet("10.244.1.1/24", "10.244.1.1/24", "10.244.1.7")
	w1.write("/var/lib/cni/networks/podman/10.88.0.2", "somebody's")
	w1.write("/.fake/links/eth0", "")
	require.Empty(t, lines(l.mustUp().changes))
	require.NoError(t, os.RemoveAll(l.cluster+"/nodes/w1"))
	l.forgetCalls()
	assert.Contains(t, lines(l.mustUp().changes), "w1 join run kubeadm join the cluster no longer has it")
	assert.Equal(t, []string{"eth0"}, names(t, w1.root+"/.fake/links"), "no link is left but the machine's own")
	for _, p := range []string{"/run/flannel", "/var/lib/cni/networks/paictl-flannel", "/etc/cni/net.d/10-paictl-flannel.conflist"} {
		assert.NoFileExists(t, w1.root+p)
		assert.NoDirExists(t, w1.root+p)
	}
	assert.FileExists(t, w1.root+"/var/lib/cni/networks/podman/10.88.0.2")
	assert.Contains(t, w1.calls(), "ip -4 route flush root 10.244.0.0/16")
}

func TestPodsReachNoMetadataServiceUnlessTheyMay(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.made()
	w1 := l.host("w1")
	unit := func() string {
		text, err := os.ReadFile(w1.root + phases.MetadataService)
		require.NoError(t, err)
		return string(text)
	}
	assert.Contains(t, unit(), "ExecStart=/usr/local/libexec/paictl/pod-metadata close\n")
	l.conf.Kubernetes.Kubernetes.MetadataAddress = config.MetadataOpen
	l.forgetCalls()
	l.mustUp()
	assert.Contains(t, unit(), "ExecStart=/usr/local/libexec/paictl/pod-metadata open\n")
	assert.Contains(t, w1.calls(), "systemctl restart paictl-pod-metadata.service")
}

// TestTheBridgeGetsTheNodesSubnet simulates that a user has deleted the node, and that its kubelet has registered the node again. No join resets the
// machine's network in this case.
func TestTheBridgeGetsTheNodesSubnet(t *testing.T) {
	t.Parallel()
	const repair = "w1 network delete interface cni0 it has 10.244.9.1/24, the node's subnet is 10.244.1.0/24; its pods start again"
	for _, c := range []struct {
		name    string
		bridge  string
		flannel string
		pod     string
		want    []string
		warning string
		kills   []string
	}{
		{name: "all is as it shall be", bridge: "10.244.1.1/24", flannel: "10.244.1.1/24", pod: "10.244.1.7"},
		{
			name: "flannel knows the subnet, a pod has an address of the old one", bridge: "10.244.9.1/24", flannel: "10.244.1.1/24", pod: "10.244.9.7",
			want: []string{repair}, warning: "were stopped and start again: 1", kills: []string{"ctr tasks kill -s SIGKILL sandbox-10.244.9.7"},
		},
		{
			name: "only the bridge is old", bridge: "10.244.9.1/24", flannel: "10.244.1.1/24", pod: "10.244.1.7", want: []string{repair},
		},
		{
			name: "flannel is the one of the old node", bridge: "10.244.9.1/24", flannel: "10.244.9.1/24", pod: "10.244.9.7",
			want:    []string{"w1 network restart flannel it has 10.244.9.1/24, the node's subnet is 10.244.1.0/24", repair},
			warning: "were stopped and start again: 1",
			kills:   []string{"ctr tasks kill -s SIGKILL flannel", "ctr tasks kill -s SIGKILL sandbox-10.244.9.7"},
		},
		{
			name: "there is no bridge yet", bridge: "", flannel: "10.244.9.1/24", pod: "10.244.1.7",
			want:  []string{"w1 network restart flannel it has 10.244.9.1/24, the node's subnet is 10.244.1.0/24"},
			kills: []string{"ctr tasks kill -s SIGKILL flannel"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1, 1)
			l.made()
			w1 := l.host("w1")
			w1.podNet(c.bridge, c.flannel, c.pod)
			require.NoError(t, os.WriteFile(l.cluster+"/nodes/w1/podcidr", []byte("10.244.1.0/24\n"), 0o644))
			if c.bridge == "" {
				w1.remove("/.fake/links/cni0")
			}
			l.forgetCalls()
			o := l.mustUp()
			assert.Equal(t, c.want, splitLines(lines(o.changes)))
			var kills []string
			for _, call := range w1.calls() {
				if strings.HasPrefix(call, "ctr ") {
					kills = append(kills, call)
				}
			}
			assert.Equal(t, c.kills, kills)
			i := o.at(engine.EventWarning, "w1", phases.PhaseNetwork)
			assert.Equal(t, c.warning != "", i >= 0)
			if i >= 0 {
				assert.Contains(t, o.events[i].Message, c.warning)
			}
			if len(c.want) > 0 {
				assert.NoFileExists(t, w1.root+"/.fake/links/cni0")
			}
			assert.Empty(t, lines(l.mustUp().changes))
		})
	}
}

func TestStatusNamesAMachineOnWhichNoPodStarts(t *testing.T) {
	s := preflightSpec(t, 0)
	for text, want := range map[string]string{
		"podnet\t10.244.1.1/24\t10.244.4.1/24\n": "no pod starts: cni0 has 10.244.1.1/24, the node's subnet is 10.244.4.0/24; cluster up repairs it",
		"podnet\t10.244.4.1/24\t10.244.4.1/24\n": "",
		"podnet\t\t\n":                           "",
		"":                                       "",
	} {
		text = "member\tyes\nkubelet\tv1\tactive\napi\tup\t\nnode\tm1\t\tv1\tReady=True;\t\t10.244.4.0/24\n" + text
		answers := map[*engine.Node]answer.Answer{s.ControlPlane()[0]: sectionsOf([]byte("@@ status\n" + text))["status"]}
		st := newStatus(s, s.Nodes, answers, nil, time.Now())
		assert.Equal(t, StateReady, st.Machines[0].State)
		assert.Equal(t, want, st.Machines[0].Message)
	}
}
