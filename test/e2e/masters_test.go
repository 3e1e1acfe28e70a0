package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoMasterIsSpecial runs three real masters. Each machine finds a working master by itself. Each master in turn loses its disk, is removed and
// added again, and gets new certificates. After each step, the object that was stored before must still exist.
func TestNoMasterIsSpecial(t *testing.T) {
	l := threeMasters(t, "e2em")

	t.Run("the API answers on every machine while a master is without power", func(t *testing.T) {
		c := l.client(3)
		for i := range 3 {
			c.begins()
			ok(t, "sandbox", "stop", "--dir", l.dir, "--unplug", l.names[i])
			time.Sleep(25 * time.Second) // for the client to notice
			gap := c.gap()
			t.Logf("without %s the client waited at most %.1f s", l.names[i], gap)
			assert.Less(t, gap, 10.0)
			ok(t, "sandbox", "start", "--dir", l.dir, l.names[i])
			l.keeps(i)
		}
		c.ends()
	})
	t.Run("the API's virtual address goes to a master that works, and ends with its line", func(t *testing.T) {
		vip := l.address(0)[:strings.LastIndex(l.address(0), ".")] + ".200"
		line := "kubernetes:\n  api-vip: " + vip + "\n"
		edit(t, l.conf(), "kubernetes:\n", line)
		l.up(0)
		assert.Zero(t, l.up(0).Changes)
		conf := ok(t, "cluster", "kubeconfig", "-p", l.cluster, "--print").stdout
		assert.Contains(t, conf, "server: https://"+vip+":6443\n")
		holder := func(asked int) int {
			return slices.Index(l.names, l.from(asked, "get lease -n kube-system pai-api-vip -o jsonpath={.spec.holderIdentity}"))
		}
		c := l.clientWith(3, conf)
		c.begins()
		had := holder(0)
		require.GreaterOrEqual(t, had, 0)
		ok(t, "sandbox", "stop", "--dir", l.dir, "--unplug", l.names[had])
		time.Sleep(25 * time.Second) // for the client to notice
		gap := c.gap()
		t.Logf("without %s the client waited at most %.1f s", l.names[had], gap)
		assert.Less(t, gap, 10.0)
		assert.NotEqual(t, had, holder((had+1)%3))
		ok(t, "sandbox", "start", "--dir", l.dir, l.names[had])
		l.keeps(had)
		c.ends()
		edit(t, l.conf(), line, "kubernetes:\n")
		l.up(0)
		for _, h := range l.names {
			assert.NotContains(t, l.on(h, "ip -4 addr"), vip)
		}
		assert.Zero(t, l.up(0).Changes)
	})
	t.Run("a master that lost its disk joins again, the first too", func(t *testing.T) {
		l.replaceDisk(0)
		assert.LessOrEqual(t, l.up(0).Changed, 2, "the machine with the new disk, and the one that sets its labels")
		l.keeps(0)
		assert.Zero(t, l.up(0).Changes)
	})
	t.Run("a master on which etcd counts is not reset for a file", func(t *testing.T) {
		const file = "/etc/kubernetes/kubelet.conf"
		l.on(l.names[1], "mv "+file+" "+file+".away")
		r := run(t, "cluster", "up", "-p", l.cluster)
		assert.Equal(t, 4, r.code, "%s", r)
		assert.Contains(t, r.stderr, "paictl does not delete its database for that")
		l.on(l.names[1], "mv "+file+".away "+file)
		assert.Zero(t, l.up(0).Changes)
		l.keeps(1)
	})
	t.Run("each master can be removed, and comes back", func(t *testing.T) {
		for i := range 3 {
			if i == 1 { // it is off, and comes back with its old disk, which still makes it a member
				ok(t, "sandbox", "stop", "--dir", l.dir, "--unplug", l.names[i])
			}
			ok(t, "node", "remove", l.names[i], "-p", l.cluster, "--yes")
			assert.Len(t, l.etcd((i+1)%3), 2)
			assert.NotContains(t, l.from((i+1)%3, "get nodes -o name"), l.names[i])
			switch i {
			case 2:
				l.replaceDisk(i)
			case 1:
				ok(t, "sandbox", "start", "--dir", l.dir, l.names[i])
			}
			ok(t, "node", "add", l.names[i]+"="+l.address(i), "--role", "master", "-p", l.cluster)
			l.keeps(i)
		}
	})
	t.Run("certificates are renewed only where they must be, and the API stays", func(t *testing.T) {
		const renew = "/usr/local/libexec/paictl/renew-certificates"
		for i := range 3 {
			assert.Empty(t, l.on(l.names[i], renew), "a day on which nothing expires, on the first master and on further ones")
		}
		out := l.on(l.names[1], renew+" 400 2>/dev/null")
		assert.Contains(t, out, "renewed apiserver:")
		assert.Contains(t, out, "restarted etcd\nrestarted kube-apiserver\nrestarted kube-controller-manager\nrestarted kube-scheduler")
		l.keeps(1)
		assert.Zero(t, l.up(0).Changes)
	})
	t.Run("a node that says what it likes of itself moves no other", func(t *testing.T) {
		l.kubectl("create -f - <<'EOF'\napiVersion: v1\nkind: Node\nmetadata: {name: aghost}\nEOF\n")
		l.kubectl(`patch node aghost --subresource=status --type merge -p '{"status":{"nodeInfo":{"kubeletVersion":"v1\n@@ zzz\nx\ty"}}}'`)
		assert.Zero(t, l.up(0).Changes)
		l.kubectl("delete node aghost")
	})
}

// TestMastersGetNewSettings changes the settings of three masters, breaks one master, and creates the cluster again.
func TestMastersGetNewSettings(t *testing.T) {
	l := threeMasters(t, "e2ems")

	t.Run("a changed setting reaches one master after the other, etcd too", func(t *testing.T) {
		edit(t, l.conf(), "extra:\n", "extra:\n    kubeadm:\n      etcd: {local: {extraArgs: [{name: snapshot-count, value: \"5000\"}]}}\n      scheduler: {extraArgs: [{name: v, value: \"3\"}]}\n")
		l.up(0)
		for i := range 3 {
			args := l.on(l.names[i], "ps -eo args | grep -e '[e]tcd --' -e '[k]ube-scheduler --'")
			assert.Contains(t, args, "--snapshot-count=5000")
			assert.Contains(t, args, "--v=3")
			l.keeps(i)
		}
		assert.Zero(t, l.up(0).Changes)
	})
	t.Run("a setting that breaks the API server is taken back, and only one master saw it", func(t *testing.T) {
		before := read(t, l.conf())
		edit(t, l.conf(), "extra:\n    kubeadm:\n", "extra:\n    kubeadm:\n      apiServer: {extraArgs: [{name: no-such-flag, value: \"1\"}]}\n")
		r := run(t, "cluster", "up", "-p", l.cluster)
		assert.Equal(t, 3, r.code, "%s", r)
		assert.Contains(t, r.stderr, "the earlier ones are back in force")
		assert.Contains(t, r.stderr, "unknown flag: --no-such-flag")
		for i := range 3 {
			l.keeps(i)
		}
		require.NoError(t, os.WriteFile(l.conf(), []byte(before), 0o600))
		l.up(0)
		assert.Zero(t, l.up(0).Changes)
	})
	t.Run("a cluster is made again only when asked to", func(t *testing.T) {
		r := run(t, "cluster", "recreate", "-p", l.cluster, "--confirm", "other")
		assert.Equal(t, 2, r.code, "%s", r)
		l.keeps(0)
		r = ok(t, "cluster", "recreate", "-p", l.cluster, "--confirm", "pai")
		assert.Contains(t, r.stderr, "4 nodes")
		assert.NotContains(t, l.kubectl("get configmaps -o name"), "configmap/kept")
		l.isReady(4)
		assert.Zero(t, l.up(0).Changes)
	})
}

// threeMasters creates a cluster with three masters and a worker. It also creates the object whose existence keeps checks.
func threeMasters(t testing.TB, name string) *lab {
	t.Helper()
	l := newLab(t, name, 4)
	l.masters("", 0, 1, 2)
	l.up(0)
	l.isReady(4)
	l.kubectl("create configmap kept --from-literal=word=kept")
	return l
}

// TestMastersAreReplacedAndRecovered removes one master permanently, and then two of three masters.
func TestMastersAreReplacedAndRecovered(t *testing.T) {
	l := threeMasters(t, "e2er")
	t.Run("a machine that was removed while it was off stays out when it comes back", func(t *testing.T) {
		ok(t, "sandbox", "stop", "--dir", l.dir, "--unplug", l.names[3])
		ok(t, "node", "remove", l.names[3], "-p", l.cluster, "--yes")
		ok(t, "sandbox", "start", "--dir", l.dir, l.names[3])
		eventually(t, 2*time.Minute, "the status says that it knocks", func() bool {
			return strings.Contains(run(t, "cluster", "status", "-p", l.cluster).stdout, "warning: "+l.names[3]+" was removed from the cluster and tries to join again, last at ")
		})
		assert.NotContains(t, l.from(0, "get nodes -o name"), l.names[3])
		t.Log(l.on(l.names[0], "grep -F paictl-removed-machines /var/log/kubernetes/audit.log | tail -n 1"))
	})
	t.Run("a dead master is replaced by one command, the first too", func(t *testing.T) {
		ok(t, "sandbox", "stop", "--dir", l.dir, "--unplug", l.names[0])
		r := ok(t, "cluster", "recover", "--dead", l.names[0], "--new", l.names[3]+"="+l.address(3), "-p", l.cluster, "--yes")
		t.Log(r.stderr)
		l.keeps(3)
		assert.NotContains(t, l.from(3, "get nodes -o name"), l.names[0])
		assert.Zero(t, l.up(0).Changes)
		again := ok(t, "cluster", "recover", "--dead", l.names[0], "--new", l.names[3]+"="+l.address(3), "-p", l.cluster, "--yes")
		assert.Contains(t, again.stderr, "is no longer in the layout")
	})
	t.Run("one member of etcd goes on alone", func(t *testing.T) {
		recover := []string{"cluster", "recover", "--from-member", l.names[3], "-p", l.cluster}
		r := run(t, append(recover, "--dry-run")...)
		assert.Contains(t, r.stderr, "etcd has a quorum, says ")
		l.replaceDisk(1)
		l.replaceDisk(2)
		r = run(t, "cluster", "up", "-p", l.cluster)
		assert.NotZero(t, r.code, "%s", r)
		r = ok(t, append(recover, "--dry-run")...)
		t.Log(r.stdout)
		assert.Contains(t, r.stdout, l.names[3]+" continues alone, with the data that it has (up to revision ")
		assert.Contains(t, r.stdout, l.names[1]+" has no data of etcd; it joins again.")
		r = run(t, recover...)
		assert.Equal(t, 2, r.code, "it has to be confirmed: %s", r)
		r = ok(t, append(recover, "--confirm", "pai")...)
		t.Log(r.stderr)
		for i := 1; i < 4; i++ {
			l.keeps(i)
		}
		assert.NotContains(t, l.on(l.names[3], "cat /etc/kubernetes/manifests/etcd.yaml"), "force-new-cluster")
		assert.Zero(t, l.up(0).Changes)
	})
}

// TestAMasterListedAboveTheOthersJoinsThem adds a master to a cluster with one master, whose address is the address of the API. The new master is
// above the other in layout.yaml, and has the lower address.
func TestAMasterListedAboveTheOthersJoinsThem(t *testing.T) {
	l := newLab(t, "e2en", 2)
	l.masters("", 1)
	layout := filepath.Join(l.cluster, "layout.yaml")
	one := read(t, layout)
	require.Regexp(t, `load-balance-ip: "?`+l.address(1), read(t, l.conf()))
	require.NoError(t, os.WriteFile(layout, []byte(withoutMachine(t, one, l.names[0])), 0o600))
	l.up(0)
	l.from(1, "create configmap kept --from-literal=word=kept")

	l.masters("", 0, 1)
	text := read(t, layout)
	require.Less(t, strings.Index(text, l.names[0]), strings.Index(text, l.names[1]))
	l.up(0)
	for i := range 2 {
		assert.Equal(t, "kept", l.from(i, "get configmap kept -o jsonpath={.data.word}"))
		assert.Len(t, l.etcd(i), 2)
	}
	assert.Zero(t, l.up(0).Changes)
}

// withoutMachine removes a machine from the text of a layout.
func withoutMachine(t testing.TB, text, name string) string {
	t.Helper()
	var out []string
	skip := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  - ") {
			skip = strings.Contains(line, name)
		} else if !strings.HasPrefix(line, "   ") {
			skip = false
		}
		if !skip {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// masters creates the configuration of a cluster in which the given hosts are masters behind a load balancer. If balancer is "", the cluster has no
// load balancer.
func (l *lab) masters(balancer string, hosts ...int) {
	l.t.Helper()
	quick := filepath.Join(filepath.Dir(l.cluster), "quick-start.yaml")
	text := read(l.t, filepath.Join(l.dir, "quick-start.yaml"))
	if balancer != "" {
		text += "load-balance-ip: " + balancer + "\n"
	}
	text += "masters:\n"
	for _, i := range hosts {
		text += "  - " + l.address(i) + "\n"
	}
	require.NoError(l.t, os.WriteFile(quick, []byte(text), 0o600))
	ok(l.t, "config", "generate", "-f", "-i", quick, "-o", l.cluster)
}

func (l *lab) conf() string { return filepath.Join(l.cluster, "kubernetes-configuration.yaml") }

// replaceDisk unplugs a host, and starts it with an empty disk.
func (l *lab) replaceDisk(i int) {
	l.t.Helper()
	ok(l.t, "sandbox", "stop", "--dir", l.dir, "--unplug", l.names[i])
	ok(l.t, "sandbox", "start", "--dir", l.dir, "--new-disk", l.names[i])
}

// from runs kubectl on a master. The command uses the API server of that master.
func (l *lab) from(i int, args string) string {
	l.t.Helper()
	return l.on(l.names[i], fmt.Sprintf("KUBECONFIG=/etc/kubernetes/admin.conf kubectl --server=https://%s:6443 %s 2>&1", l.address(i), args))
}

// keeps checks that the object of threeMasters still exists according to a master's own API server, and that etcd has three started members.
func (l *lab) keeps(i int) {
	l.t.Helper()
	eventually(l.t, 2*time.Minute, "the API server of "+l.names[i]+" has what was stored", func() bool {
		out, err := l.try(l.names[i], fmt.Sprintf("KUBECONFIG=/etc/kubernetes/admin.conf kubectl --server=https://%s:6443 get configmap kept -o jsonpath={.data.word}", l.address(i)))
		return err == nil && out == "kept"
	})
	members := l.etcd(i)
	assert.Len(l.t, members, 3)
	for _, m := range members {
		assert.Contains(l.t, m, ", started, ")
		assert.Contains(l.t, m, ", false", "a learner has no vote")
	}
}

// etcd returns the list of etcd's members according to one member. It waits for the member's pod, because the API contains the pod only a moment
// after the pod has started.
func (l *lab) etcd(i int) []string {
	l.t.Helper()
	var out string
	eventually(l.t, time.Minute, "etcd of "+l.names[i]+" answers", func() bool {
		var err error
		out, err = l.try(l.names[i], fmt.Sprintf("KUBECONFIG=/etc/kubernetes/admin.conf kubectl --server=https://%s:6443 -n kube-system exec etcd-%s -- etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key member list",
			l.address(i), l.names[i]))
		return err == nil
	})
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	return lines
}
