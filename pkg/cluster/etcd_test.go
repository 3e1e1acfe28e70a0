package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// removedWhileOff makes a cluster of three masters, of which m2 was removed while it was off, and
// comes back with its old disk: its kubelet registers its node again.
func removedWhileOff(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	l.made()
	l.keep()
	m2 := l.host("m2")
	m2.server.Close()
	_, left := l.removeNodes(t.Context(), RemoveOptions{}, "m2")
	require.Equal(t, []string{"m2"}, left)
	require.Equal(t, []string{"m1", "m3"}, l.members())
	copyTree(t, l.cluster+"/nodes/m3", l.cluster+"/nodes/m2")
	m2.server = sshtest.NewServer(t, sshtest.Config{Name: "m2", Handler: m2})
	return l
}

func TestAMasterThatWasRemovedWhileItWasOffJoinsAgain(t *testing.T) {
	l := removedWhileOff(t)
	o := l.mustUp()
	assert.Contains(t, lines(o.changes), "m2 join run kubeadm join")
	for _, c := range o.changes {
		if c.Target == runJoin {
			assert.Equal(t, unknownMember, c.Detail)
		}
	}
	assert.True(t, l.kept())
	assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAMasterIsResetOnlyWhereEtcdSaysThatItIsNoMember(t *testing.T) {
	for what, edit := range map[string]func(*lab){
		"the list can't be read": func(l *lab) { l.host("m1").write("/.fake/fail/etcd", ""); l.host("m3").write("/.fake/fail/etcd", "") },
		"its member has not started yet": func(l *lab) {
			unstarted := "d945806c25a8d38d, unstarted, , https://" + l.host("m2").ip + ":2380, , false\n"
			require.NoError(l.t, os.WriteFile(filepath.Join(l.cluster, "members", "zz"), []byte(unstarted), 0o600))
		},
		"its API answers": func(l *lab) {
			member := "1, started, m2, https://" + l.host("m2").ip + ":2380, https://" + l.host("m2").ip + ":2379, false\n"
			require.NoError(l.t, os.WriteFile(filepath.Join(l.cluster, "members", "m2"), []byte(member), 0o600))
		},
	} {
		t.Run(what, func(t *testing.T) {
			l := removedWhileOff(t)
			edit(l)
			before := l.bytes()
			assert.Empty(t, lines(l.mustUp().changes))
			assert.Equal(t, before, l.bytes())
		})
	}
	t.Run("when it is asked again", func(t *testing.T) {
		l := removedWhileOff(t)
		p := &join{spec: l.spec()}
		r := newRun(p.spec, l.options())
		defer r.close()
		for _, n := range p.spec.Nodes {
			require.NoError(t, r.dial(t.Context(), n))
		}
		r.leader = p.spec.ControlPlane()[0]
		m2, err := p.spec.Node("m2")
		require.NoError(t, err)
		require.NoError(t, r.isExpelled(t.Context(), m2))
		m3, err := p.spec.Node("m3")
		require.NoError(t, err)
		require.ErrorContains(t, r.isExpelled(t.Context(), m3), "nothing was done on the machine")
		l.host("m1").write("/.fake/fail/etcd", "")
		require.ErrorContains(t, r.isExpelled(t.Context(), m2), "nothing was done on the machine")
	})
}

func TestWithoutAQuorumNothingIsChanged(t *testing.T) {
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	l.made()
	l.host("m1").wipe()
	l.host("m3").wipe()
	err := l.refused()
	require.ErrorContains(t, err, "m2: etcd has no quorum: only 1 of 3 members can answer (m2), the data of m1, m3 is gone")
	assert.Contains(t, hint.Of(err), "bring the machines back with their old disks")
	assert.Contains(t, hint.Of(err), "paictl cluster recreate")
	err = l.refused(limited("w1"))
	require.ErrorContains(t, err, "etcd has no quorum")
	l.host("m3").server.Close()
	require.ErrorContains(t, l.refused(), "the data of m1 is gone; no answer from m3")
}

// What up repairs may be what brings the quorum back, so it is not refused.
func TestARunThatMayBringTheQuorumBackGoesOn(t *testing.T) {
	s := preflightSpec(t, 0)
	for _, name := range []string{"m2", "m3"} {
		n := *s.Nodes[0]
		n.Hostname, n.HostIP = name, "10.0.0."+name[1:]
		s.Nodes = append(s.Nodes, &n)
	}
	for _, c := range []struct {
		name            string
		members, silent []string
		refused         bool
	}{
		{"all have their data, and none runs", []string{"m1", "m2", "m3"}, nil, false},
		{"two have theirs", []string{"m1", "m3"}, nil, false},
		{"one has its own, the others are off", []string{"m1"}, []string{"m2", "m3"}, false},
		{"one has its own, one is off", []string{"m1"}, []string{"m2"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{spec: s, leader: s.Nodes[0], facts: map[string]*facts{}, etcd: &etcdView{}}
			for _, n := range s.Nodes {
				w.etcd.members = append(w.etcd.members, etcdMember{Name: n.Hostname})
				member := "member\tno\n"
				if slices.Contains(c.members, n.Hostname) {
					member = "member\tyes\n"
				}
				if !slices.Contains(c.silent, n.Hostname) {
					w.facts[n.Hostname] = &facts{sections: sectionsOf([]byte("@@ join\n" + member))}
				}
			}
			assert.Equal(t, c.refused, len(w.withoutQuorum()) > 0)
		})
	}
}
