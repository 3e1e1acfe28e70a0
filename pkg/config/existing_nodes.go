package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
)

// controlPlaneKeys returns the keys of labels and taints that mark the nodes of Kubernetes' control plane. The second key was used before
// Kubernetes 1.24.
func controlPlaneKeys() []string {
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
}

// usableNodes returns the nodes that can run services. It reports the other nodes as findings.
func usableNodes(nodes []corev1.Node, r *reporter) []corev1.Node {
	var out []corev1.Node
	leftOut := map[string][]string{}
	for _, n := range nodes {
		if why := whyLeftOut(n); why != "" {
			leftOut[why] = append(leftOut[why], n.Name)
			continue
		}
		out = append(out, n)
	}
	for _, why := range sortedKeys(leftOut) {
		r.warn(fieldPath{"machine-list"}, "layout/left-out", fmt.Sprintf("left out, because %s: %s", why, some(leftOut[why])), "")
	}
	slices.SortFunc(out, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func whyLeftOut(n corev1.Node) string {
	switch {
	case n.Status.NodeInfo.OperatingSystem == "windows":
		return "Windows runs there"
	case n.Labels["type"] == "virtual-kubelet" || n.Labels["eks.amazonaws.com/compute-type"] == "fargate":
		return "it is not a machine, but a service of the cloud"
	case n.DeletionTimestamp != nil:
		return "it is being deleted"
	}
	return ""
}

func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// addMachines adds the nodes to the configuration as machines with roles and SKUs. Masters come first.
func (e Existing) addMachines(c *Cluster, nodes []corev1.Node, r *reporter) error {
	if len(nodes) == 0 {
		return hint.Errorf("add machines to the cluster first", "the cluster has no node on which services could run")
	}
	masters, err := e.masters(nodes, r)
	if err != nil {
		return err
	}
	c.Roles = existingRoles(masterTaints(nodes, masters))
	facts := make(map[string]layout.Facts, len(nodes))
	for _, n := range nodes {
		facts[n.Name] = nodeFacts(n)
	}
	skus, assigned := layout.SKUs(facts)
	for name, s := range skus {
		s.Discovered = !incomplete(s)
		skus[name] = s
	}
	c.Layout = layout.Layout{APIVersion: APIVersion, Kind: layout.Kind, MachineSKU: skus}
	for _, n := range nodes {
		m := layout.Machine{Hostname: n.Name, HostIP: nodeAddress(n), SKU: assigned[n.Name], Roles: nodeRoles(n, masters[n.Name])}
		m.Labels = ownLabels(c, m, n)
		m.Taints = ownTaints(c, m, n)
		c.Layout.MachineList = append(c.Layout.MachineList, m)
	}
	workersLast := func(m layout.Machine) int {
		if m.HasRole(layout.RoleMaster) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(c.Layout.MachineList, func(a, b layout.Machine) int { return cmp.Compare(workersLast(a), workersLast(b)) })
	return nil
}

// masters returns the nodes that get the role master: nodes of the control plane, nodes with the label of the role, and nodes that the user
// requests. If no such node exists, as in managed clouds, it chooses one node.
func (e Existing) masters(nodes []corev1.Node, r *reporter) (map[string]bool, error) {
	out, byName := map[string]bool{}, map[string]bool{}
	roleLabels := DefaultRoles().Roles[layout.RoleMaster].Labels
	for _, n := range nodes {
		byName[n.Name] = true
		if isControlPlaneNode(n) || hasLabels(n, roleLabels) {
			out[n.Name] = true
		}
	}
	for _, name := range e.Masters {
		if !byName[name] {
			return nil, hint.Errorf("its nodes are: "+some(sortedKeys(byName)), "the cluster has no node %q that could run services", name)
		}
		out[name] = true
	}
	if len(out) == 0 {
		chosen := bestMaster(nodes)
		out[chosen] = true
		r.warn(fieldPath{"machine-list"}, "layout/no-control-plane", fmt.Sprintf("the API lists no node of the control plane; %s was chosen to run the platform's services", chosen),
			"choose others with --masters, or change roles in "+LayoutFile)
	}
	return out, nil
}

func hasLabels(n corev1.Node, labels map[string]string) bool {
	for k, v := range labels {
		if n.Labels[k] != v {
			return false
		}
	}
	return true
}

func isControlPlaneNode(n corev1.Node) bool {
	return slices.ContainsFunc(controlPlaneKeys(), func(key string) bool {
		v, ok := n.Labels[key]
		return ok && v != "false"
	})
}

// bestMaster returns the first node that is ready and accepts pods. It prefers nodes without GPUs, because GPUs are for jobs.
func bestMaster(nodes []corev1.Node) string {
	cost := func(n corev1.Node) int {
		cost := 0
		if gpus, _ := nodeGPUs(n); gpus > 0 {
			cost++
		}
		if n.Spec.Unschedulable || slices.ContainsFunc(lastingTaints(n), func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }) {
			cost += 2
		}
		if !isReady(n) {
			cost += 4
		}
		return cost
	}
	return slices.MinFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(cost(a), cost(b)) }).Name
}

func isReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// nodeRoles returns the roles of a node. A control plane node with a taint against ordinary pods gets only the role master, and runs no jobs.
func nodeRoles(n corev1.Node, master bool) []string {
	switch {
	case !master:
		return []string{layout.RoleWorker}
	case refusesPods(n):
		return []string{layout.RoleMaster}
	}
	return []string{layout.RoleMaster, layout.RoleWorker}
}

func refusesPods(n corev1.Node) bool {
	return isControlPlaneNode(n) && slices.ContainsFunc(lastingTaints(n), func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
}

// lastingTaints returns the taints of a node, without taints for a temporary state. Such a node isn't ready, has too little memory, or will be
// removed.
func lastingTaints(n corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool {
		for _, prefix := range []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cluster.x-k8s.io/", "karpenter.sh/", "ToBeDeletedBy", "DeletionCandidateOf"} {
			if strings.HasPrefix(t.Key, prefix) {
				return true
			}
		}
		return badTaint(taintText(t)) != ""
	})
}

func taintText(t corev1.Taint) string {
	if t.Value != "" {
		return t.Key + "=" + t.Value + ":" + string(t.Effect)
	}
	return t.Key + ":" + string(t.Effect)
}

// masterTaints returns the taints that keep ordinary pods off masters. Services must tolerate these taints.
func masterTaints(nodes []corev1.Node, masters map[string]bool) []string {
	found := map[string]bool{}
	for _, n := range nodes {
		if masters[n.Name] && refusesPods(n) {
			for _, t := range lastingTaints(n) {
				found[taintText(t)] = true
			}
		}
	}
	return sortedKeys(found)
}

// ownTaints returns the taints of a node that its roles don't add.
func ownTaints(c *Cluster, m layout.Machine, n corev1.Node) []string {
	fromRoles := c.TaintsOf(m)
	var out []string
	for _, t := range lastingTaints(n) {
		if text := taintText(t); !slices.Contains(fromRoles, text) {
			out = append(out, text)
		}
	}
	return out
}

// ownLabels returns the platform's labels of a node that its roles don't add. It skips other labels, because other programs and people have set them.
func ownLabels(c *Cluster, m layout.Machine, n corev1.Node) map[string]string {
	out := map[string]string{}
	fromRoles := c.LabelsOf(m)
	for _, role := range c.Roles.Roles {
		for k := range role.Labels {
			fromRoles[k] = "" // also of roles that it had before
		}
	}
	for k, v := range n.Labels {
		if _, ok := fromRoles[k]; !ok && (strings.HasPrefix(k, "paictl.openpai.org/") || strings.HasPrefix(k, "pai-")) {
			out[k] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// nodeAddress returns the internal address of a node. It prefers an IPv4 address, and returns "" if the node has no address.
func nodeAddress(n corev1.Node) string {
	first := ""
	for _, a := range n.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		if a.Type != corev1.NodeInternalIP || err != nil {
			continue
		}
		if ip.Is4() {
			return ip.String()
		}
		first = cmp.Or(first, ip.String())
	}
	return first
}
