package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/nodelabels"
)

// ReadNodes parses the output of the script function d_nodes. The returned nodes have only the fields that paictl reads, because a complete node has
// about 30 kB.
func ReadNodes(a answer.Answer) (map[string]corev1.Node, error) {
	out := map[string]corev1.Node{}
	for _, f := range a.All("node") {
		if len(f) != 8 {
			return nil, fmt.Errorf("read the cluster's nodes: a line of %d fields where 8 are expected", len(f))
		}
		var n corev1.Node
		n.Name, n.Spec.PodCIDR = f[0], f[1]
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(Unquoted(f[2])), Message: Unquoted(f[7])}}
		n.Status.NodeInfo.KubeletVersion = Unquoted(f[3])
		for t := range strings.SplitSeq(f[4], ",") {
			if t != "" {
				n.Spec.Taints = append(n.Spec.Taints, readTaint(t))
			}
		}
		n.Labels = map[string]string{}
		for l := range strings.SplitSeq(f[6], ",") {
			if k, v, ok := strings.Cut(l, "="); ok {
				n.Labels[k] = v
			}
		}
		if owned := Unquoted(f[5]); owned != "" {
			n.Annotations = map[string]string{nodelabels.Annotation: owned}
		}
		out[n.Name] = n
	}
	return out, nil
}

// Unquoted parses a string in Go quotes. It returns "" if the string is missing or invalid, so that no node can break the run.
func Unquoted(s string) string {
	out, err := strconv.Unquote(s)
	if err != nil {
		return ""
	}
	return out
}

// UnquotedAll parses a list of strings in Go quotes, each followed by a semicolon.
func UnquotedAll(list string) (out []string) {
	for {
		quoted, err := strconv.QuotedPrefix(list)
		if err != nil {
			return out
		}
		out = append(out, Unquoted(quoted))
		list = strings.TrimPrefix(list[len(quoted):], ";")
	}
}

func readTaint(s string) corev1.Taint {
	key, effect, _ := strings.Cut(s, ":")
	key, value, _ := strings.Cut(key, "=")
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}

// Nodes returns the cluster's nodes by name, as the leader's API server listed them during the survey. It parses the output only once, because a
// large cluster has a long list.
func (w *World) Nodes() (map[string]corev1.Node, error) {
	w.nodesOnce.Do(func() { w.nodesRead, w.nodesErr = ReadNodes(w.Of(w.Leader, PhaseInit)) })
	return w.nodesRead, w.nodesErr
}

// IsReady reports whether a node is Ready.
func IsReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
