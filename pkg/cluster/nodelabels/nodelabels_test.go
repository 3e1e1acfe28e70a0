package nodelabels

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node returns a Node with labels ("k=v k=v"), the value owned of Annotation, and taints.
func node(labels, owned string, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	if owned != "" {
		n.Annotations = map[string]string{Annotation: owned}
	}
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

func TestANodeIsComparedWithTheLayout(t *testing.T) {
	type labels = map[string]string
	for _, c := range []struct {
		name   string
		labels labels
		taints []string
		have   *corev1.Node
		want   string
		owned  string
		record bool
	}{
		{"a new node gets everything", labels{"a": "1", "b": ""}, []string{"k=v:NoSchedule"}, &corev1.Node{}, "label a=1, label b=, taint k=v:NoSchedule", "a,b,k=v:NoSchedule", true},
		{"nothing is wanted of a new node", nil, nil, &corev1.Node{}, "", "", false},
		{"all is there", labels{"a": "1"}, []string{"k:NoSchedule"}, node("a=1 other=x", "a,k:NoSchedule", "k:NoSchedule", "other:NoExecute"), "", "a,k:NoSchedule", false},
		{"key=:Effect and key:Effect are one taint", nil, []string{"k=:NoSchedule"}, node("", "k=:NoSchedule", "k:NoSchedule"), "", "k=:NoSchedule", false},
		{"what the layout lost goes", nil, nil, node("a=1 other=x", "a,k=v:NoSchedule", "k=v:NoSchedule"), "label a-, taint k:NoSchedule-", "", true},
		{"labels and taints of others stay", nil, nil, node("other=x", "", "other:NoExecute"), "", "", false},
		{"what is already gone is not removed again", nil, nil, node("", "a,k:NoSchedule"), "", "", true},
		{"a taint's new value replaces the old", nil, []string{"k=2:NoSchedule"}, node("", "k=1:NoSchedule", "k=1:NoSchedule"), "taint k=2:NoSchedule", "k=2:NoSchedule", true},
		{"a taint's new effect needs the old one gone", nil, []string{"k:NoExecute"}, node("", "k:NoSchedule", "k:NoSchedule"), "taint k:NoExecute, taint k:NoSchedule-", "k:NoExecute", true},
		{"only the record differs", labels{"a": "1"}, nil, node("a=1", ""), "", "a", true},
		{"somebody changed our label", labels{"a": "1"}, nil, node("a=2", "a"), "label a=1", "a", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Compare(c.labels, c.taints, Of(c.have))
			assert.Equal(t, c.want, d.String())
			assert.Equal(t, c.owned, d.Owned)
			assert.Equal(t, c.record, d.Record)
			assert.Equal(t, c.want == "", d.Same())
			assert.Equal(t, c.want == "" && !c.record, d.Empty())
		})
	}
}

func TestTaintsStayWhereOnlyLabelsAreCompared(t *testing.T) {
	d := CompareLabels(map[string]string{"a": "1"}, Of(node("old=1", "old,k=v:NoSchedule,gone:NoExecute", "k=v:NoSchedule")))
	assert.Equal(t, "label a=1, label old-", d.String())
	assert.Equal(t, "a,k=v:NoSchedule,gone:NoExecute", d.Owned)
	assert.True(t, CompareLabels(map[string]string{"a": "1"}, Of(node("a=1", "a,gone:NoExecute"))).Empty(), "a taint that is not there is not paictl's to set")
}
