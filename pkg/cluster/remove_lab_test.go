package cluster

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// removeNodes runs "node remove" like a new process of paictl. It returns the nodes that the run has removed from the layout.
func (l *lab) removeNodes(ctx context.Context, ro RemoveOptions, names ...string) (*outcome, []string) {
	l.t.Helper()
	so := sshtest.Options(l.t, l.servers()...)
	if c := l.crash.Load(); c != nil {
		so.NetDial = c.dial
	}
	client, events := ssh.NewClient(so), &sink{}
	defer func() { _ = client.Close() }()
	var left []string
	ro.Removed = func(n *engine.Node) error {
		left = append(left, n.Hostname)
		return nil
	}
	o := engine.Options{Dialer: client, Sink: events, Clock: time.Now, Owner: "tester", Command: "paictl node remove", StepTimeout: 5 * time.Minute, Limit: names}
	err := RemoveNodes(ctx, l.spec(), o, ro)
	return &outcome{err: err, events: events.events}, left
}

func TestARemovedNodeIsDrainedGivenBackAndForgotten(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	before := l.tree(l.host("w1").root, "w1")
	l.made()
	l.forgetCalls()
	o, left := l.removeNodes(t.Context(), RemoveOptions{}, "w1")
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"w1"}, left)
	assert.Equal(t, []string{"m1", "w2"}, l.nodes())
	assertSame(t, withoutImages(before), withoutImages(l.tree(l.host("w1").root, "w1")))
	assert.Equal(t, []string{
		"kubectl cordon w1", "kubectl cordon w1",
		"kubectl drain w1 --ignore-daemonsets --delete-emptydir-data --timeout=300s",
		"kubectl patch configmap paictl-machines w1", "kubectl delete node w1 --ignore-not-found --timeout=60s",
	}, l.host("m1").calls())
}

func withoutImages(lines []string) string {
	var out []string
	for _, l := range lines {
		if !strings.Contains(l, "/.fake/images") {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func TestTheDataOnAMachineIsNamedBeforeItLeaves(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 2)
	l.made()
	volume := func(name, spec, labels string) string {
		return `{"metadata":{"name":"` + name + `","labels":{` + labels + `}},"spec":{` + spec + `}}`
	}
	on := func(node, key string) string {
		return `"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"` + key + `","operator":"In","values":["` + node + `"]}]}]}}`
	}
	const hostname = "kubernetes.io/hostname"
	volumes := `{"items":[` + strings.Join([]string{
		volume("pai-prometheus", on("w1", hostname)+`,"local":{"path":"/datastorage/prometheus/prometheus-data"}`, `"paictl.openpai.org/service":"prometheus"`),
		volume("models", on("w1", hostname)+`,"local":{"path":"/models"},"claimRef":{"namespace":"pai-jobs","name":"m"}`, ""),
		volume("pvc-1", on("w1", hostname)+`,"hostPath":{"path":"/opt/local-path-provisioner/pvc-1"}`, ""),
		volume("elsewhere", on("w2", hostname)+`,"local":{"path":"/datastorage/grafana"}`, ""),
		volume("in a zone", on("w1", "topology.kubernetes.io/zone")+`,"local":{"path":"/z"}`, ""),
		volume("a share", `"nfs":{"server":"10.0.0.9","path":"/export"}`, ""),
	}, ",") + `]}`
	require.NoError(t, os.WriteFile(l.cluster+"/objects/persistentvolumes", []byte(volumes), 0o600))
	before := l.bytes()
	data, err := DataOn(t.Context(), l.spec(), l.options(), []string{"w1"})
	require.NoError(t, err)
	assert.Equal(t, before, l.bytes())
	var said []string
	for _, d := range data {
		said = append(said, d.String())
	}
	assert.Equal(t, []string{
		"/opt/local-path-provisioner/pvc-1 on w1 (volume pvc-1)",
		"pai-jobs/m: /models on w1 (volume models)",
		"prometheus: /datastorage/prometheus/prometheus-data on w1 (volume pai-prometheus)",
	}, said)
	data, err = DataOn(t.Context(), l.spec(), l.options(), []string{"10.9.0.3"})
	require.NoError(t, err)
	require.Len(t, data, 1)
	assert.Equal(t, "w2", data[0].Host)

	l.host("m1").write("/.fake/fail/api", "")
	_, err = DataOn(t.Context(), l.spec(), l.options(), []string{"w1"})
	require.Error(t, err)
}

func TestADeadMachineLeavesTheClusterAndItIsSaidWhatStaysOnIt(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	l.made()
	l.forgetCalls()
	l.host("w1").server.Close()
	require.NoError(t, os.WriteFile(l.cluster+"/nodes/w1/pods", []byte("{}"), 0o600))
	o, left := l.removeNodes(t.Context(), RemoveOptions{}, "w1")
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"w1"}, left)
	assert.Equal(t, []string{"m1", "w2"}, l.nodes())
	assert.Contains(t, strings.Join(l.host("m1").calls(), "\n"), "--force --disable-eviction --grace-period=0")
	var warned []string
	for _, e := range o.events {
		if e.Kind == engine.EventWarning {
			warned = append(warned, e.Message+"; "+e.Hint)
		}
	}
	require.Len(t, warned, 1)
	assert.Contains(t, warned[0], "the machine could not be reset")
	assert.Contains(t, warned[0], "if it comes back, the cluster refuses it")
}

func TestANodeWhosePodsDoNotLeaveStaysAndTheOthersGo(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 1, 2)
	l.made()
	stuck := `{"items":[{"metadata":{"name":"p","namespace":"research"}}]}`
	require.NoError(t, os.WriteFile(l.cluster+"/nodes/w1/pods", []byte(stuck), 0o600))
	o, left := l.removeNodes(t.Context(), RemoveOptions{DrainTimeout: time.Minute}, "w1", "w2")
	var partial *engine.PartialError
	require.ErrorAs(t, o.err, &partial)
	assert.Equal(t, 3, partial.ExitCode())
	assert.Equal(t, phaseDrain, partial.Failed[0].Phase)
	assert.Equal(t, "drain w1: pods were not evicted within 1m0s: research/p (no controller would start it elsewhere)", partial.Failed[0].Error)
	assert.Equal(t, []string{"w2"}, left)
	assert.FileExists(t, l.host("w1").root+"/etc/systemd/system/kubelet.service", "a node that stays is not touched")

	o, left = l.removeNodes(t.Context(), RemoveOptions{Force: true}, "w1")
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"w1"}, left)
}

func TestAMachineOfTheControlPlaneLeavesEtcdBeforeItIsCleaned(t *testing.T) {
	t.Parallel()
	l := newWholeLab(t, 2, 0)
	l.made()
	l.forgetCalls()
	o, left := l.removeNodes(t.Context(), RemoveOptions{}, "m2")
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, []string{"m2"}, left)
	assert.Contains(t, l.host("m1").calls(), "kubectl member remove "+engine.Hash([]byte("m2"))[:16])
	assert.Equal(t, []string{"m1"}, l.nodes())
}

func TestARemovalThatIsCutOffIsFinishedByTheNext(t *testing.T) {
	t.Parallel()
	cutOff(t, 4, 4, func(t *testing.T) story {
		l := newWholeLab(t, 1, 1)
		before := l.tree(l.host("w1").root, "w1")
		l.made()
		var left []string
		run := func() (o *outcome) {
			o, left = l.removeNodes(t.Context(), RemoveOptions{}, "w1")
			return o
		}
		return story{lab: l, run: run, check: func(*crash, *outcome) {
			assert.Equal(t, []string{"w1"}, left)
			assert.Equal(t, []string{"m1"}, l.nodes())
			assert.Empty(t, engine.Unified("w1", []byte(withoutImages(l.tree(l.host("w1").root, "w1"))), []byte(withoutImages(before))))
		}}
	})
}
