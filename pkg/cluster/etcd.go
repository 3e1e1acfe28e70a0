package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
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

// etcdMember is one of etcd's members. One that was added and has not started yet has no name.
type etcdMember struct {
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
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
// server doesn't answer may be none for etcd, or may have an etcd without a quorum.
func (w *world) etcdMatters() bool {
	return w.leader != nil && !w.founding() && slices.ContainsFunc(w.members(), func(n *Node) bool { return !w.healthy(n) })
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
	for _, m := range w.etcd.members {
		i := slices.IndexFunc(w.spec.Nodes, m.is)
		switch {
		case i < 0:
			lost = append(lost, m.String()+" (not in layout.yaml)")
		case w.member(w.spec.Nodes[i]):
			have = append(have, m.String())
		case w.facts[w.spec.Nodes[i].Hostname] == nil:
			silent = append(silent, m.String())
		default:
			lost = append(lost, m.String())
		}
	}
	if len(lost) == 0 || 2*len(have) > len(w.etcd.members) {
		return nil
	}
	more := ""
	if len(silent) > 0 {
		more = "; no answer from " + strings.Join(silent, ", ")
	}
	return []Finding{{
		Host: w.leader.Hostname, Check: "etcd", Severity: SeverityError,
		Message: fmt.Sprintf("etcd has no quorum: only %d of %d members can answer (%s), the data of %s is gone%s; until more than half of them answer, no machine can join and nothing in the cluster can change",
			len(have), len(w.etcd.members), strings.Join(have, ", "), strings.Join(lost, ", "), more),
		Remedy: "bring the machines back with their old disks; or, where those are lost, restore etcd from a backup; to give the cluster up: paictl cluster recreate",
	}}
}
