package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
)

// removedWhileOff returns a cluster of three masters. Its master m2 was removed while it was off. m2 returns with its old disk, and its kubelet
// registers the node again.
func removedWhileOff(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	l.made()
	l.keep()
	m2 := l.host("m2")
	m2.server.Close()
	known, err := os.ReadFile(l.cluster + "/objects/machines")
	require.NoError(t, err)
	_, left := l.removeNodes(t.Context(), RemoveOptions{}, "m2")
	require.NoError(t, os.WriteFile(l.cluster+"/objects/machines", known, 0o600)) // as if an earlier run had only made the node
	require.Equal(t, []string{"m2"}, left)
	require.Equal(t, []string{"m1", "m3"}, l.members())
	copyTree(t, l.cluster+"/nodes/m3", l.cluster+"/nodes/m2")
	m2.server = sshtest.NewServer(t, sshtest.Config{Name: "m2", Handler: m2})
	return l
}

func TestAMasterThatWasRemovedWhileItWasOffJoinsAgain(t *testing.T) {
	t.Parallel()
	l := removedWhileOff(t)
	o := l.mustUp()
	assert.Contains(t, lines(o.changes), "m2 join run kubeadm join")
	for _, c := range o.changes {
		if c.Target == phases.RunJoin {
			assert.Equal(t, phases.UnknownMember, c.Detail)
		}
	}
	assert.True(t, l.kept())
	assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAMasterIsResetOnlyWhereEtcdSaysThatItIsNoMember(t *testing.T) {
	t.Parallel()
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
		want := l.spec().Fresh()
		r := engine.NewRun(want.Spec, l.options())
		defer r.Close()
		for _, n := range want.Nodes {
			require.NoError(t, r.Dial(t.Context(), n))
		}
		r.Leader = want.ControlPlane()[0]
		m2, err := want.Node("m2")
		require.NoError(t, err)
		require.NoError(t, phases.IsExpelled(t.Context(), r, m2))
		m3, err := want.Node("m3")
		require.NoError(t, err)
		require.ErrorContains(t, phases.IsExpelled(t.Context(), r, m3), "nothing was done on the machine")
		l.host("m1").write("/.fake/fail/etcd", "")
		require.ErrorContains(t, phases.IsExpelled(t.Context(), r, m2), "nothing was done on the machine")
	})
}

func TestWithoutAQuorumNothingIsChanged(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	l.made()
	l.host("m1").wipe()
	l.host("m3").wipe()
	err := l.refused()
	require.ErrorContains(t, err, "m2: etcd has no quorum: only 1 of 3 members can answer (m2), the data of m1, m3 is gone")
	assert.Contains(t, hint.Of(err), "start the machines with their old disks")
	assert.Contains(t, hint.Of(err), "paictl cluster recreate")
	err = l.refused(limited("w1"))
	require.ErrorContains(t, err, "etcd has no quorum")
	l.host("m3").server.Close()
	require.ErrorContains(t, l.refused(), "the data of m1 is gone; no answer from m3")
}

// A master that has lost one of paictl's files still has etcd's data, and etcd's majority may need this data.
func TestAMasterOnWhichEtcdCountsIsNotReset(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"/etc/kubernetes/kubelet.conf", paths.Member} {
		t.Run(file, func(t *testing.T) {
			l := newLab(t, 3, 1)
			l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
			l.made()
			m2 := l.host("m2")
			before := m2.read(file)
			m2.remove(file)
			err := l.refused()
			require.ErrorContains(t, err, "m2: the machine was a member of the cluster")
			assert.Contains(t, hint.Of(err), "kubeadm init phase kubeconfig kubelet")
			assert.Contains(t, hint.Of(err), "paictl node add m2="+m2.ip+" --role master")
			require.ErrorContains(t, l.refused(limited("w1")), "m2: the machine was a member", "a run for others changes nothing either")

			l.host("m3").server.Close() // then a majority depends on it
			err = l.refused()
			require.ErrorContains(t, err, "m2: the machine was a member of the cluster")
			assert.NotContains(t, err.Error(), "is gone")

			l.host("m3").server = sshtest.NewServer(t, sshtest.Config{Name: "m3", Handler: l.host("m3")})
			l.host("m1").write("/.fake/fail/etcd", "") // without etcd's response it is unknown whether the member may be removed
			require.ErrorContains(t, l.refused(), "m2: the machine was a member of the cluster")
			l.host("m1").remove("/.fake/fail/etcd")
			m2.write(file, before)
			assert.Empty(t, lines(l.mustUp().changes))
		})
	}
	t.Run("it joins again when etcd has let it go", func(t *testing.T) {
		l := newLab(t, 3, 1)
		l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
		l.made()
		l.host("m2").remove("/etc/kubernetes/kubelet.conf")
		require.NoError(t, os.Remove(filepath.Join(l.cluster, "members", "m2")))
		assert.Contains(t, lines(l.mustUp().changes), "m2 join run kubeadm join")
		assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
	})
}

// etcd rejects the removal of a member if too few of the remaining members run. In that case, the machine's data is kept.
func TestWhatEtcdKeepsIsNotCleared(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	l.made()
	m2 := l.host("m2")
	m2.remove(paths.Member) // as if a join had been interrupted before its end
	var journal []string
	for line := range strings.Lines(m2.read(engine.StateDir + "/journal")) {
		if !strings.HasSuffix(line, "\tchange\tmember\n") {
			journal = append(journal, line)
		}
	}
	m2.write(engine.StateDir+"/journal", strings.Join(journal, ""))
	l.host("m3").server.Close()
	require.NoError(t, os.RemoveAll(l.host("m3").root+"/var/lib/etcd/member"))
	o := l.up(t.Context())
	partial := failures(t, o, 3)
	assert.Contains(t, partial["m2"].Error, "etcd does not remove its member m2: Error: etcdserver: unhealthy cluster")
	assert.DirExists(t, m2.root+"/var/lib/etcd/member")
	assert.FileExists(t, m2.root+"/etc/kubernetes/kubelet.conf")
}

func TestMastersThatWorkAreNotResetForBeingUnknown(t *testing.T) {
	t.Parallel()
	s := preflightSpec(t, 0)
	n := *s.Nodes[0]
	n.Hostname, n.HostIP = "m2", "10.0.0.2"
	s.Nodes = append(s.Nodes, &n)
	node := func(name string) string { return "node\t" + name + "\t\t\"True\"\t\"v1\"\t\t\"\"\t\t\"\"\n" }
	for _, c := range []struct{ name, leader, other, want, remedy string }{
		{"the leader's disk is of an earlier time", node("m1"), node("m1") + node("m2"), "m2: it and m1 have API servers of the same cluster, but different data", "switch off the machine with the old data"},
		{"they are strangers", node("m1"), node("m3"), "m2: it and m1 have API servers", "switch off"},
		{"its node was deleted", node("m1"), node("m1"), "m2: its control plane works, but the cluster has no node with this name", "systemctl restart kubelet"},
		{"all is well", node("m1") + node("m2"), node("m1") + node("m2"), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &engine.World{Want: s.Fresh(), Facts: map[string]*engine.Facts{}}
			for i, nodes := range []string{c.leader, c.other} {
				w.Facts[s.Nodes[i].Hostname] = &engine.Facts{Sections: sectionsOf([]byte("@@ join\nmember\tyes\nca\tx\n@@ init\napi\tup\n" + nodes))}
			}
			w.Elect()
			require.Equal(t, s.Nodes[0], w.Leader)
			found, err := w.Apart()
			require.NoError(t, err)
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0].Host+": "+found[0].Message, c.want)
			assert.Contains(t, found[0].Remedy, c.remedy)
		})
	}
	t.Run("in a run", func(t *testing.T) {
		l := newLab(t, 2, 1)
		l.made()
		require.NoError(t, os.RemoveAll(l.cluster+"/nodes/m2"))
		before := l.bytes()
		require.ErrorContains(t, l.refused(), "m2: its control plane works")
		assert.Equal(t, before, l.bytes())
	})
}

func TestALearnerHasNoVote(t *testing.T) {
	s := preflightSpec(t, 0)
	w := &engine.World{Want: s.Fresh(), Leader: s.Nodes[0], Facts: map[string]*engine.Facts{}, Etcd: &engine.EtcdView{Members: []engine.EtcdMember{
		{Name: s.Nodes[0].Hostname}, {PeerURLs: []string{"https://10.9.0.4:2380"}, Learner: true},
	}}}
	w.Facts[s.Nodes[0].Hostname] = &engine.Facts{Sections: sectionsOf([]byte("@@ join\nmember\tyes\n"))}
	n := *s.Nodes[0]
	n.Hostname, n.HostIP = "m4", "10.9.0.4"
	s.Nodes = append(s.Nodes, &n)
	w.Facts["m4"] = &engine.Facts{Sections: sectionsOf([]byte("@@ join\nmember\tno\n"))}
	assert.Empty(t, w.WithoutQuorum())
	w.Etcd.Members[1].Learner = false
	assert.NotEmpty(t, w.WithoutQuorum())
}

// The changes of the run may restore the quorum, so paictl doesn't reject the run.
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
			w := &engine.World{Want: s.Fresh(), Leader: s.Nodes[0], Facts: map[string]*engine.Facts{}, Etcd: &engine.EtcdView{}}
			for _, n := range s.Nodes {
				w.Etcd.Members = append(w.Etcd.Members, engine.EtcdMember{Name: n.Hostname})
				member := "member\tno\n"
				if slices.Contains(c.members, n.Hostname) {
					member = "member\tyes\n"
				}
				if !slices.Contains(c.silent, n.Hostname) {
					w.Facts[n.Hostname] = &engine.Facts{Sections: sectionsOf([]byte("@@ join\n" + member))}
				}
			}
			assert.Equal(t, c.refused, len(w.WithoutQuorum()) > 0)
		})
	}
}
