package cluster

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
)

//go:embed scripts/etcd.sh
var etcdScript string

// etcdView is the state of etcd according to one of its members.
type etcdView struct {
	members []etcdMember
	// quorum reports whether a majority of the members agreed on the list. Otherwise the list is the
	// last one that the member knew.
	quorum bool
}

// etcdMember is one of etcd's members. A member that was added and has not started yet has no name,
// and a learner has no vote.
type etcdMember struct {
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	Learner  bool     `json:"isLearner"`
}

// is reports whether the member belongs to a machine.
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

// lookAtEtcd asks the leader's etcd for its members. A nil view means that etcd didn't answer, or
// that its list isn't this cluster's.
func (r *run) lookAtEtcd(ctx context.Context, leader *Node) (*etcdView, error) {
	res, err := r.read(ctx, leader, phaseInit, "etcd", etcdScript+"e_members\n")
	if err != nil {
		return nil, err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return nil, err
	}
	v := readMembers(a)
	if !v.has(leader) {
		return nil, nil // the list belongs to another cluster
	}
	return v, nil
}

// readMembers parses the output of e_members. It returns nil if etcd didn't answer.
func readMembers(a answer.Answer) *etcdView {
	list, answered := a.Row("members")
	if !answered || len(list) == 0 {
		return nil
	}
	var said struct {
		Members []etcdMember `json:"members"`
	}
	_ = json.Unmarshal(decoded(list[0]), &said) // a list that can't be parsed has no member
	return &etcdView{members: said.Members, quorum: a.Value("quorum") == "yes"}
}

// etcdMatters reports whether the run has to ask etcd itself: if the API server of a member doesn't
// answer, the machine may not be a member of etcd, or its etcd may have no quorum; and a machine
// that lost its marks may be a member of etcd.
func (w *world) etcdMatters() bool {
	return w.leader != nil && !w.founding() && slices.ContainsFunc(w.want.ControlPlane(), func(n *Node) bool {
		return w.member(n) && !w.healthy(n) || w.unmarked(n)
	})
}

// unmarked reports whether a machine was a member and has etcd's data, but lost the files that mark a member for paictl.
func (w *world) unmarked(n *Node) bool {
	a := w.of(n, phaseJoin)
	return n.ControlPlane && !w.forgotten && !w.member(n) && a.Value("once") == "yes" && a.Value("etcd") == "there"
}

// expelled reports whether a master considers itself a member, but etcd does not: it was removed
// while it was off, and came back with its old disk. Its kubelet registers its node again, but its
// etcd ends at once, and its API server with it.
func (w *world) expelled(n *Node) bool {
	return w.etcd != nil && w.etcd.quorum && w.healthy(w.leader) &&
		n != w.leader && n.ControlPlane && w.member(n) && !w.healthy(n) && !w.etcd.has(n)
}
