package cluster

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/nodelabels"
)

// readNodes reads what the script's d_nodes printed: of each node only what paictl looks at,
// since a whole node, with its images and managed fields, takes some 30 kB.
func readNodes(a answer) (map[string]corev1.Node, error) {
	out := map[string]corev1.Node{}
	for _, f := range a.all("node") {
		if len(f) != 8 {
			return nil, fmt.Errorf("read the cluster's nodes: a line of %d fields where 8 are expected", len(f))
		}
		owned, err := strconv.Unquote(f[5])
		if err != nil {
			return nil, fmt.Errorf("read the annotation %s of node %s: %w", nodelabels.Annotation, f[0], err)
		}
		// A node that has just registered has no conditions yet.
		message, _ := strconv.Unquote(f[7])
		var n corev1.Node
		n.Name, n.Spec.PodCIDR = f[0], f[1]
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(f[2]), Message: message}}
		n.Status.NodeInfo.KubeletVersion = f[3]
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
		if owned != "" {
			n.Annotations = map[string]string{nodelabels.Annotation: owned}
		}
		out[n.Name] = n
	}
	return out, nil
}

// readTaint reads key=value:Effect.
func readTaint(s string) corev1.Taint {
	key, effect, _ := strings.Cut(s, ":")
	key, value, _ := strings.Cut(key, "=")
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}
