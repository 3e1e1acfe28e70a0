package engine

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
)

// EtcdScript defines the shell functions that query etcd.
//
//go:embed scripts/etcd.sh
var EtcdScript string

// EtcdView is the state of etcd that one of its members reports.
type EtcdView struct {
	Members []EtcdMember
	// Quorum is true if a majority of the members agreed on the list. Otherwise Members is the last list that this member has stored.
	Quorum bool
}

// EtcdMember is a member of etcd. A member that was added but hasn't started yet has no name. A learner has no vote.
type EtcdMember struct {
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs"`
	Learner  bool     `json:"isLearner"`
}

// Is reports whether the member runs on a machine, according to its name or its address.
func (m EtcdMember) Is(n *Node) bool {
	return m.Name == n.Hostname || slices.ContainsFunc(m.PeerURLs, func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.Hostname() == n.HostIP
	})
}

func (m EtcdMember) String() string {
	if m.Name != "" {
		return m.Name
	}
	return strings.Join(m.PeerURLs, ",")
}

// Has reports whether etcd has a member on a machine. A nil view has no members.
func (v *EtcdView) Has(n *Node) bool {
	return v != nil && slices.ContainsFunc(v.Members, func(m EtcdMember) bool { return m.Is(n) })
}

// ReadEtcd reads the list of members from the leader's etcd. It returns nil if etcd didn't respond, or if the list doesn't contain the leader.
func (r *Run) ReadEtcd(ctx context.Context, leader *Node) (*EtcdView, error) {
	a, err := Answer(r.Read(ctx, leader, PhaseInit, "etcd", EtcdScript+"e_members\n"))
	if err != nil {
		return nil, err
	}
	v := ReadMembers(a)
	if !v.Has(leader) {
		return nil, nil // the list belongs to another cluster
	}
	return v, nil
}

// ReadMembers parses the output of the script function e_members. It returns nil if etcd didn't respond.
func ReadMembers(a answer.Answer) *EtcdView {
	list, answered := a.Row("members")
	if !answered || len(list) == 0 {
		return nil
	}
	var said struct {
		Members []EtcdMember `json:"members"`
	}
	_ = json.Unmarshal(Decoded(list[0]), &said) // an unparsable list has no members
	return &EtcdView{Members: said.Members, Quorum: a.Value("quorum") == "yes"}
}

// EtcdMatters reports whether the run has to query etcd itself. One reason is a member whose API server doesn't respond. Such a machine may not be a
// member of etcd, or etcd may have no quorum. The other reason is an unmarked machine, because it may still be a member of etcd.
func (w *World) EtcdMatters() bool {
	return w.Leader != nil && !w.Founding() && slices.ContainsFunc(w.Want.ControlPlane(), func(n *Node) bool {
		return w.Member(n) && !w.Healthy(n) || w.Unmarked(n)
	})
}

// Unmarked reports whether a former member still has etcd's data, but no longer has the files by which paictl recognizes a member.
func (w *World) Unmarked(n *Node) bool {
	a := w.Of(n, PhaseJoin)
	return n.ControlPlane && !w.NoMembers && !w.Member(n) && a.Value("once") == "yes" && a.Value("etcd") == "there"
}

// Expelled reports whether a master has the state of an etcd member, but etcd doesn't list the master. Such a master was removed while it was off,
// and returned with its old disk. Its kubelet registers the node again, but its etcd and its API server exit at once.
func (w *World) Expelled(n *Node) bool {
	return w.Etcd != nil && w.Etcd.Quorum && w.Healthy(w.Leader) &&
		n != w.Leader && n.ControlPlane && w.Member(n) && !w.Healthy(n) && !w.Etcd.Has(n)
}
