package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/preflight"
)

// The checks in this file stop runs that could lose a master or etcd's data.

// Counted returns a finding for each machine that the run would reset although it may still be a member of etcd. etcd's majority may depend on such a
// machine.
func (w *World) Counted() []preflight.Finding {
	var out []preflight.Finding
	for _, n := range w.Want.ControlPlane() {
		if !w.Unmarked(n) || w.Etcd != nil && w.Etcd.Quorum && !w.Etcd.Has(n) {
			continue
		}
		out = append(out, preflight.Finding{
			Host: n.Hostname, Check: "control-plane", Severity: preflight.SeverityError,
			Message: lostMark,
			Remedy:  markAgain + "; to add the machine as a new one: paictl node remove " + n.Hostname + ", then paictl node add " + n.AsArgument(),
		})
	}
	return out
}

const (
	lostMark  = "the machine was a member of the cluster, but its /etc/kubernetes/kubelet.conf or " + paths.Member + " is missing; paictl does not delete its database for that"
	markAgain = "put the file back (on the host: kubeadm init phase kubeconfig kubelet --config " + KubeadmConf + ", touch " + paths.Member + ")"
)

// AsArgument returns the machine and its roles as arguments for "node add".
func (n *Node) AsArgument() string {
	role := "worker"
	if n.ControlPlane {
		role = "master"
		if n.Worker {
			role += ",worker"
		}
	}
	return fmt.Sprintf("%s=%s --role %s", n.Hostname, n.HostIP, role)
}

// Apart returns a finding for each master whose API server responds but whose node is missing in the leader's list. Such a master works and must not
// be reset.
func (w *World) Apart() ([]preflight.Finding, error) {
	nodes, err := w.living()
	if err != nil || nodes == nil {
		return nil, err
	}
	var out []preflight.Finding
	for _, n := range w.Members() {
		same := w.Of(n, PhaseJoin).Value("ca") == w.Of(w.Leader, PhaseJoin).Value("ca")
		if _, known := nodes[n.Hostname]; known || !same || !w.Healthy(n) {
			continue
		}
		own, err := ReadNodes(w.Of(n, PhaseInit))
		if err != nil {
			return nil, err
		}
		_, itself := own[n.Hostname]
		_, leader := own[w.Leader.Hostname]
		f := preflight.Finding{Host: n.Hostname, Check: "control-plane", Severity: preflight.SeverityError}
		if itself || !leader {
			f.Message = fmt.Sprintf("it and %s have API servers of the same cluster, but different data: one of them has old data, for example from a snapshot", w.Leader.Hostname)
			f.Remedy = "compare kubectl get nodes on both; switch off the machine with the old data, remove it (paictl node remove), and add it with an empty disk (paictl node add)"
		} else {
			f.Message = "its control plane works, but the cluster has no node with this name: someone deleted it"
			f.Remedy = "on the host: systemctl restart kubelet, and kubeadm init phase mark-control-plane --config " + KubeadmConf + "; then run the same command again. Or remove the machine: paictl node remove " + n.Hostname
		}
		out = append(out, f)
	}
	return out, nil
}

// UnlistedMasters returns a finding for each master of the cluster that isn't in layout.yaml. If the cluster were created again, such a master would
// continue to run the old cluster.
func (w *World) UnlistedMasters() ([]preflight.Finding, error) {
	nodes, err := w.living()
	if err != nil {
		return nil, err
	}
	var out []preflight.Finding
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		_, master := nodes[name].Labels["node-role.kubernetes.io/control-plane"]
		if !master || slices.ContainsFunc(w.Want.Nodes, func(n *Node) bool { return n.Hostname == name }) {
			continue
		}
		out = append(out, preflight.Finding{
			Host: w.Leader.Hostname, Check: "control-plane", Severity: preflight.SeverityError,
			Message: name + " is a master of the cluster, but not in layout.yaml: it would continue as the old cluster, at the same address",
			Remedy:  "list it in layout.yaml, and remove it: paictl node remove " + name,
		})
	}
	return out, nil
}

// living returns the nodes of an existing cluster. It returns nil if no cluster exists or if the API doesn't respond.
func (w *World) living() (map[string]corev1.Node, error) {
	if w.Leader == nil || w.Founding() || !w.Healthy(w.Leader) {
		return nil, nil
	}
	return w.Nodes()
}

// WithoutQuorum returns a finding if etcd has permanently lost its majority. No machine can then join, and the cluster can't be changed. If a
// majority of etcd's members still has data, WithoutQuorum returns no finding, because the run may start these members again.
func (w *World) WithoutQuorum() []preflight.Finding {
	if w.Etcd == nil || w.Etcd.Quorum {
		return nil
	}
	var have, lost, silent []string
	voters := 0
	for _, m := range w.Etcd.Members {
		if m.Learner {
			continue
		}
		voters++
		i := slices.IndexFunc(w.Want.Nodes, m.Is)
		switch {
		case i < 0:
			silent = append(silent, m.String()+" (not in layout.yaml)")
		case w.Member(w.Want.Nodes[i]) || w.Unmarked(w.Want.Nodes[i]):
			have = append(have, m.String())
		case w.Facts[w.Want.Nodes[i].Hostname] == nil:
			silent = append(silent, m.String())
		default:
			lost = append(lost, m.String())
		}
	}
	if len(lost) == 0 || 2*len(have) > voters {
		return nil
	}
	more := ""
	if len(silent) > 0 {
		more = "; no answer from " + strings.Join(silent, ", ")
	}
	return []preflight.Finding{{
		Host: w.Leader.Hostname, Check: "etcd", Severity: preflight.SeverityError,
		Message: fmt.Sprintf("etcd has no quorum: only %d of %d members can answer (%s), the data of %s is gone%s; until more than half of them answer, no machine can join and nothing in the cluster can change",
			len(have), voters, strings.Join(have, ", "), strings.Join(lost, ", "), more),
		Remedy: "start the machines with their old disks; or, if those are lost, restore etcd from a backup; to replace the cluster: paictl cluster recreate",
	}}
}
