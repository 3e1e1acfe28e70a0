package phases

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/nodelabels"
)

func TestLabelsAndTaintsOfANode(t *testing.T) {
	node := func(labels, owned string, taints ...string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{nodelabels.Annotation: owned}}}
		for _, kv := range strings.Fields(labels) {
			k, v, _ := strings.Cut(kv, "=")
			n.Labels[k] = v
		}
		for _, taint := range taints {
			rest, effect, _ := strings.Cut(taint, ":")
			k, v, _ := strings.Cut(rest, "=")
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffect(effect)})
		}
		return n
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
		taints []string
		have   corev1.Node
		want   []string // commands; empty if the node is as wanted
	}{
		{"a new node gets everything", map[string]string{"a": "1", "b": ""}, []string{"k=v:NoSchedule"}, corev1.Node{},
			[]string{"label --overwrite 'a=1' 'b='", "taint --overwrite 'k=v:NoSchedule'", "annotate --overwrite 'paictl.openpai.org/owned=a,b,k=v:NoSchedule'"}},
		{"nothing is wanted of a new node", nil, nil, corev1.Node{}, nil},
		{"all is there", map[string]string{"a": "1"}, []string{"k:NoSchedule"}, node("a=1 other=x", "a,k:NoSchedule", "k:NoSchedule", "other:NoExecute"), nil},
		{"key=:Effect and key:Effect are one taint", nil, []string{"k=:NoSchedule"}, node("", "k=:NoSchedule", "k:NoSchedule"), nil},
		{"what paictl set once and nobody wants goes", nil, nil, node("a=1 other=x", "a,k=v:NoSchedule", "k=v:NoSchedule"),
			[]string{"label --overwrite 'a-'", "taint --overwrite 'k:NoSchedule-'", "annotate --overwrite 'paictl.openpai.org/owned='"}},
		{"somebody else's stays", nil, nil, node("other=x", "", "other:NoExecute"), nil},
		{"a taint that is gone already is not removed again", nil, nil, node("", "k:NoSchedule"),
			[]string{"annotate --overwrite 'paictl.openpai.org/owned='"}},
		{"a taint's new value replaces the old", nil, []string{"k=2:NoSchedule"}, node("", "k=1:NoSchedule", "k=1:NoSchedule"),
			[]string{"taint --overwrite 'k=2:NoSchedule'", "annotate --overwrite 'paictl.openpai.org/owned=k=2:NoSchedule'"}},
		{"a taint's new effect needs the old one gone", nil, []string{"k:NoExecute"}, node("", "k:NoSchedule", "k:NoSchedule"),
			[]string{"taint --overwrite 'k:NoExecute' 'k:NoSchedule-'", "annotate --overwrite 'paictl.openpai.org/owned=k:NoExecute'"}},
		{"only the record differs", map[string]string{"a": "1"}, nil, node("a=1", ""), []string{"annotate --overwrite 'paictl.openpai.org/owned=a'"}},
		{"somebody changed our label", map[string]string{"a": "1"}, nil, node("a=2", "a"),
			[]string{"label --overwrite 'a=1'", "annotate --overwrite 'paictl.openpai.org/owned=a'"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := (&labels{}).compare(&engine.Node{Labels: c.labels, Taints: c.taints}, c.have)
			assert.Equal(t, len(c.want) == 0, x.untouched)
			if !x.untouched {
				assert.Equal(t, c.want, x.commands())
			}
		})
	}
}

func TestTheRecordOfLabelsIsWrittenLast(t *testing.T) {
	got := relabelScript(map[string][]string{"annotate --overwrite z": {"w1", "w2"}, "taint --overwrite y": {"w1"}, "label --overwrite x": {"w2"}})
	assert.Equal(t, "self label node 'w2' --overwrite x >&2\nself taint node 'w1' --overwrite y >&2\nself annotate node 'w1' 'w2' --overwrite z >&2\n", got)
}

func TestMergePutsTheOperatorsSettingsOverOurs(t *testing.T) {
	a := map[string]any{"x": 1, "m": map[string]any{"a": 1, "b": map[string]any{"c": 1}}, "l": []any{1, 2}}
	b := map[string]any{"y": 2, "m": map[string]any{"b": map[string]any{"d": 2}, "a": 9}, "l": []any{3}}
	got := merge(a, b)
	assert.Equal(t, map[string]any{"x": 1, "y": 2, "m": map[string]any{"a": 9, "b": map[string]any{"c": 1, "d": 2}}, "l": []any{3}}, got)
	assert.Equal(t, map[string]any{"c": 1}, a["m"].(map[string]any)["b"], "the first is not changed")
	assert.Equal(t, map[string]any{"m": "text"}, merge(map[string]any{"m": map[string]any{"a": 1}}, map[string]any{"m": "text"}))
	assert.Equal(t, a, merge(a, nil))

	ours := map[string]any{"extraArgs": Args("profiling", "false", "audit-log-path", "/var/log/audit.log")}
	theirs := map[string]any{"extraArgs": Args("profiling", "true", "feature-gates", "A=true", "feature-gates", "B=true")}
	assert.Equal(t, map[string]any{"extraArgs": Args("audit-log-path", "/var/log/audit.log", "profiling", "true", "feature-gates", "A=true", "feature-gates", "B=true")},
		merge(ours, theirs), "one flag of the operator's does not switch the audit log off")
	assert.Equal(t, Args("profiling", "false", "audit-log-path", "/var/log/audit.log"), ours["extraArgs"])
}

func TestAReferenceIsSplitIntoRepositoryAndTag(t *testing.T) {
	for ref, want := range map[string][2]string{
		"registry.k8s.io/etcd:3.6.1-0":              {"registry.k8s.io", "3.6.1-0"},
		"registry.k8s.io/coredns/coredns:v1.12.1":   {"registry.k8s.io/coredns", "v1.12.1"},
		"localhost:5000/k8s/etcd:3":                 {"localhost:5000/k8s", "3"},
		"localhost:5000/etcd":                       {"localhost:5000", ""},
		"harbor.example.org/a/b/kube-apiserver:v1.": {"harbor.example.org/a/b", "v1."},
	} {
		repository, tag := SplitRef(ref)
		assert.Equal(t, want, [2]string{repository, tag}, ref)
	}
}
