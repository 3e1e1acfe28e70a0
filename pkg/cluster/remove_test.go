package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

func TestTheLastMachineOfTheControlPlaneStays(t *testing.T) {
	s := preflightSpec(t, 1)
	_, err := Removable(s, []string{"m1"})
	require.EqualError(t, err, "m1 is the only machine of the control plane: without it there is no cluster")
	assert.Contains(t, hint.Of(err), "paictl cluster down")

	s.Nodes[1].ControlPlane = true
	_, err = Removable(s, []string{"w1", "10.0.0.1"})
	require.EqualError(t, err, "these are all machines of the control plane: without them there is no cluster")
	nodes, err := Removable(s, []string{"10.0.0.1"})
	require.NoError(t, err)
	assert.Equal(t, []*engine.Node{s.Nodes[0]}, nodes)
	nodes, err = Removable(s, []string{"w1", s.Nodes[1].HostIP})
	require.NoError(t, err)
	assert.Equal(t, []*engine.Node{s.Nodes[1]}, nodes, "named twice, removed once")

	_, err = Removable(s, []string{"w9"})
	require.ErrorContains(t, err, "w9 is not a machine of the layout")
	_, err = Removable(s, nil)
	require.Error(t, err)
}

func TestHowThePodsOfANodeThatIsRemovedEnd(t *testing.T) {
	for name, c := range map[string]struct {
		force bool
		dead  error
		want  string
	}{
		"as budgets allow":                {false, nil, "FORCE=0"},
		"without budgets":                 {true, nil, "FORCE=1"},
		"at once, as no one tells of it":  {false, ssh.ErrUnreachable, "FORCE=2"},
		"at once also where it is forced": {true, ssh.ErrUnreachable, "FORCE=2"},
	} {
		s, leader := preflightSpec(t, 1), &noting{says: "drained\t2\n"}
		r := engine.NewRun(s, engine.Options{Clock: time.Now})
		r.Leader = s.Nodes[0]
		r.Hosts[r.Leader.Hostname] = leader
		n := s.Nodes[1]
		m := &removal{Run: r, opts: RemoveOptions{Force: c.force, DrainTimeout: time.Minute}, dead: map[*engine.Node]error{n: c.dead}}
		changes, err := m.drain(t.Context(), n)
		require.NoError(t, err, name)
		assert.Equal(t, []engine.Change{{Action: "drain", Target: "node " + n.Hostname, Detail: "2 pods"}}, changes, name)
		assert.Contains(t, leader.body, "\nNODE='"+n.Hostname+"' "+c.want+" SECONDS_MAX=60\nr_drain\n", name)
	}
}

func TestAForcedDrainAsksNoBudget(t *testing.T) {
	const drain = "drain w1 --ignore-daemonsets --delete-emptydir-data --timeout=60s"
	for force, want := range map[string]string{
		"0": drain, "1": drain + " --force --disable-eviction", "2": drain + " --force --disable-eviction --grace-period=0",
	} {
		calls := filepath.Join(t.TempDir(), "calls")
		cmd := exec.Command("sh", "-c", `self() { echo "$*" >>"$CALLS"; }
`+phases.RemoveScript+"NODE=w1 FORCE="+force+" SECONDS_MAX=60\nr_drain\n")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CALLS=" + calls}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		said, err := os.ReadFile(calls)
		require.NoError(t, err)
		assert.Equal(t, []string{"get node w1 -o name --request-timeout=15s", "cordon w1", takes, want}, strings.Split(strings.TrimSpace(string(said)), "\n"))
	}
}

// takes is the command that reads the mark of a cordoned node.
const takes = `get node w1 -o go-template={{with .metadata.annotations}}{{index . "paictl.openpai.org/cordoned-by"}}{{end}}`

// A policy of the alert handler has cordoned the machine. Without the removal of its mark, the policy would restart or uncordon the machine while
// paictl changes the machine.
func TestTheCordonOfAPolicyIsTakenOver(t *testing.T) {
	const take = "annotate node w1 --overwrite paictl.openpai.org/cordoned-by-"
	for _, c := range []struct {
		name, mark string
		taken      bool
	}{
		{"a policy's", `{"action":"lost-a-1-1","by":{"kind":"policy","name":"lost"},"reason":"XID 79"}`, true},
		{"a person's", `{"action":"drain-x","by":{"kind":"person","name":"root1"},"reason":"a fan"}`, false},
		{"no mark", "<no value>", false},
	} {
		for _, step := range []string{"FORCE=0 SECONDS_MAX=60\nr_drain\n", "MARK=m\nr_mark\n"} {
			calls := filepath.Join(t.TempDir(), "calls")
			cmd := exec.Command("sh", "-c", `set -eu
self() {
	echo "$*" >>"$CALLS"
	case $* in *cordoned-by\"*) echo "$BY" ;; *unschedulable}) echo true ;; esac
}
`+phases.RemoveScript+"NODE=w1 "+step)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CALLS=" + calls, "BY=" + c.mark}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			said, err := os.ReadFile(calls)
			require.NoError(t, err)
			assert.Contains(t, string(said), takes+"\n", c.name)
			assert.Equal(t, c.taken, strings.Contains(string(said), take+"\n"), "%s: %s", c.name, said)
		}
	}
}

func pod(name, owner string, edit ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "research", Labels: map[string]string{"app": name}}}
	if owner != "" {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "x", Controller: &yes}}
	}
	for _, f := range edit {
		f(&p)
	}
	return p
}

func TestAStuckDrainNamesThePodsAndWhatHoldsThem(t *testing.T) {
	ended := metav1.Now()
	pods, err := json.Marshal(corev1.PodList{Items: []corev1.Pod{
		pod("web", "ReplicaSet"),
		pod("free", "ReplicaSet"),
		pod("lonely", ""),
		pod("slow", "Job", func(p *corev1.Pod) { p.DeletionTimestamp = &ended }),
		pod("agent", "DaemonSet"),
		pod("static", "Node", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		pod("done", "Job", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
	}})
	require.NoError(t, err)
	budget := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "two-of-two", Namespace: "research"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	elsewhere := budget
	elsewhere.Namespace, elsewhere.Spec.Selector = "other", &metav1.LabelSelector{}
	budgets, err := json.Marshal(policyv1.PodDisruptionBudgetList{Items: []policyv1.PodDisruptionBudget{elsewhere, budget}})
	require.NoError(t, err)

	n := preflightSpec(t, 1).Nodes[1]
	got := stuckError(n, time.Minute, []string{"error: timed out"}, pods, budgets)
	require.EqualError(t, got, "drain w1: pods were not evicted within 1m0s: research/web (held by PodDisruptionBudget two-of-two), research/free, "+
		"research/lonely (no controller would start it elsewhere), research/slow (it is terminating, but has not finished)")
	assert.Contains(t, hint.Of(got), "--force")
	assert.Contains(t, hint.Of(got), "kubectl uncordon w1")

	got = stuckError(n, time.Minute, []string{"error: timed out"}, nil, nil)
	assert.EqualError(t, got, "drain w1: error: timed out")
}

func TestALongListOfStuckPodsIsCut(t *testing.T) {
	var list corev1.PodList
	for range 9 {
		list.Items = append(list.Items, pod("p", "ReplicaSet"))
	}
	raw, err := json.Marshal(list)
	require.NoError(t, err)
	got := stuckError(preflightSpec(t, 1).Nodes[1], time.Second, nil, raw, nil)
	assert.ErrorContains(t, got, "research/p and 4 more")
}
