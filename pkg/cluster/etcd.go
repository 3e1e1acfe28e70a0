package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

//go:embed scripts/etcd.sh
var etcdScript string

// etcdView is etcd as one of its members sees it.
type etcdView struct {
	members []etcdMember
	// quorum reports whether a majority of the members agreed on the list. Without one it is what the
	// member that was asked knew last.
	quorum bool
}

// etcdMember is one of etcd's members. One that was added and has not started yet has no name, and a
// learner has no vote.
type etcdMember struct {
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	Learner  bool     `json:"isLearner"`
}

// is reports whether the member is that of a machine.
func (m etcdMember) is(n *Node) bool {
	return m.Name == n.Hostname || slices.ContainsFunc(m.PeerURLs, func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.Hostname() == n.HostIP
	})
}

func (m etcdMember) String() string {
	if m.Name != "" {
		return m.Name
	}
	return strings.Join(m.PeerURLs, ",")
}

func (v *etcdView) has(n *Node) bool {
	return v != nil && slices.ContainsFunc(v.members, func(m etcdMember) bool { return m.is(n) })
}

// lookAtEtcd asks the leader's etcd for its members. A nil view: it didn't answer, so nothing is
// known.
func (r *run) lookAtEtcd(ctx context.Context, leader *Node) (*etcdView, error) {
	res, err := r.read(ctx, leader, phaseInit, "etcd", etcdScript+"e_members\n")
	if err != nil {
		return nil, err
	}
	a, err := parseAnswer(res.Stdout)
	if err != nil {
		return nil, err
	}
	var said struct {
		Members []etcdMember `json:"members"`
	}
	_ = json.Unmarshal(decoded(a.value("members")), &said) // what can't be read doesn't have the leader
	v := &etcdView{members: said.Members, quorum: a.value("quorum") == "yes"}
	if !v.has(leader) {
		return nil, nil // whatever that list is, it is not this cluster's
	}
	return v, nil
}

// etcdMatters reports whether etcd has to be asked by itself: a member of the cluster whose API
// server doesn't answer may be none for etcd, or may have an etcd without a quorum; and one that has
// lost its marks may be one for etcd.
func (w *world) etcdMatters() bool {
	return w.leader != nil && !w.founding() && slices.ContainsFunc(w.spec.ControlPlane(), func(n *Node) bool {
		return w.member(n) && !w.healthy(n) || w.unmarked(n)
	})
}

// unmarked reports whether a machine was a member and has etcd's data, but not what makes it a member
// for paictl.
func (w *world) unmarked(n *Node) bool {
	a := w.of(n, phaseJoin)
	return n.ControlPlane && !w.forgotten && !w.member(n) && a.value("once") == "yes" && a.value("etcd") == "there"
}

// counted speaks against a run that would reset a machine on which etcd counts, for want of a file. A
// majority may depend on it.
func (w *world) counted() []Finding {
	var out []Finding
	for _, n := range w.spec.ControlPlane() {
		if !w.unmarked(n) || w.etcd != nil && w.etcd.quorum && !w.etcd.has(n) {
			continue
		}
		out = append(out, Finding{
			Host: n.Hostname, Check: "control-plane", Severity: SeverityError,
			Message: lostMark,
			Remedy:  markAgain + "; to take the machine in as a new one: paictl node remove " + n.Hostname + ", then paictl node add " + n.asArgument(),
		})
	}
	return out
}

const (
	lostMark  = "the machine was a member of the cluster, but its /etc/kubernetes/kubelet.conf or " + memberFile + " is missing; its database is not thrown away for that"
	markAgain = "put the file back (on the host: kubeadm init phase kubeconfig kubelet --config " + kubeadmConf + ", touch " + memberFile + ")"
)

// asArgument returns the machine as "node add" takes it, with its roles.
func (n *Node) asArgument() string {
	role := "worker"
	if n.ControlPlane {
		role = "master"
		if n.Worker {
			role += ",worker"
		}
	}
	return fmt.Sprintf("%s=%s --role %s", n.Hostname, n.HostIP, role)
}

// apart speaks against a run where a master whose API server answers is none of the leader's nodes. It
// works, and whatever the reason, it is not the machine to be reset.
func (w *world) apart() ([]Finding, error) {
	if w.leader == nil || w.founding() || !w.healthy(w.leader) {
		return nil, nil
	}
	nodes, err := w.nodes()
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, n := range w.members() {
		same := w.of(n, phaseJoin).value("ca") == w.of(w.leader, phaseJoin).value("ca")
		if _, known := nodes[n.Hostname]; known || !same || !w.healthy(n) {
			continue
		}
		own, err := readNodes(w.of(n, phaseInit))
		if err != nil {
			return nil, err
		}
		_, itself := own[n.Hostname]
		_, leader := own[w.leader.Hostname]
		f := Finding{Host: n.Hostname, Check: "control-plane", Severity: SeverityError}
		if itself || !leader {
			f.Message = fmt.Sprintf("it and %s have API servers of one cluster that don't know each other: one of the two has the data of an earlier time, from a snapshot for example", w.leader.Hostname)
			f.Remedy = "compare kubectl get nodes on both; switch off the machine with the old data, remove it (paictl node remove), and add it with an empty disk (paictl node add)"
		} else {
			f.Message = "its control plane works, but the cluster has no node of that name: somebody has deleted it"
			f.Remedy = "on the host: systemctl restart kubelet, and kubeadm init phase mark-control-plane --config " + kubeadmConf + "; then run the same command again. Or take the machine out: paictl node remove " + n.Hostname
		}
		out = append(out, f)
	}
	return out, nil
}

// leftBehind speaks against making a cluster again while a master that is not in layout.yaml goes on as
// the old one.
func (w *world) leftBehind() ([]Finding, error) {
	if w.leader == nil || w.founding() || !w.healthy(w.leader) {
		return nil, nil
	}
	nodes, err := w.nodes()
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		_, master := nodes[name].Labels["node-role.kubernetes.io/control-plane"]
		if !master || slices.ContainsFunc(w.spec.Nodes, func(n *Node) bool { return n.Hostname == name }) {
			continue
		}
		out = append(out, Finding{
			Host: w.leader.Hostname, Check: "control-plane", Severity: SeverityError,
			Message: name + " is a master of the cluster and is not in layout.yaml: it would go on as the old cluster, at the same address",
			Remedy:  "list it in layout.yaml, and remove it: paictl node remove " + name,
		})
	}
	return out, nil
}

// expelled reports whether a master holds itself for a member, and etcd does not: it was removed
// while it was off, and came back with its old disk. Its kubelet registers its node again, but its
// etcd ends at once, and its API server with it.
func (w *world) expelled(n *Node) bool {
	return w.etcd != nil && w.etcd.quorum && w.healthy(w.leader) &&
		n != w.leader && n.ControlPlane && w.member(n) && !w.healthy(n) && !w.etcd.has(n)
}

// withoutQuorum speaks against a run where etcd has lost its majority for good, as far as the
// machines that answered know: no machine can join, and nothing can be changed in the cluster.
// Where enough of etcd's members have their data the run goes on, for it may be what brings them
// back.
func (w *world) withoutQuorum() []Finding {
	if w.etcd == nil || w.etcd.quorum {
		return nil
	}
	var have, lost, silent []string
	voters := 0
	for _, m := range w.etcd.members {
		if m.Learner {
			continue
		}
		voters++
		i := slices.IndexFunc(w.spec.Nodes, m.is)
		switch {
		case i < 0:
			silent = append(silent, m.String()+" (not in layout.yaml)")
		case w.member(w.spec.Nodes[i]) || w.unmarked(w.spec.Nodes[i]):
			have = append(have, m.String())
		case w.facts[w.spec.Nodes[i].Hostname] == nil:
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
	return []Finding{{
		Host: w.leader.Hostname, Check: "etcd", Severity: SeverityError,
		Message: fmt.Sprintf("etcd has no quorum: only %d of %d members can answer (%s), the data of %s is gone%s; until more than half of them answer, no machine can join and nothing in the cluster can change",
			len(have), voters, strings.Join(have, ", "), strings.Join(lost, ", "), more),
		Remedy: "bring the machines back with their old disks; or, where those are lost, restore etcd from a backup; to give the cluster up: paictl cluster recreate",
	}}
}
