package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lostNode breaks a worker in four different ways, one after the other.
func (l *lab) lostNode(t *testing.T) {
	worker := l.names[1]
	l.on(l.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl apply -f - <<'EOM'\n"+read(t, "../../examples/demo/netcheck.yaml")+"EOM\n")
	// podsRun waits until the pod on the worker responds to the other machine. The pod's address must be in the node's subnet, because the route is
	// only then up to date.
	podsRun := func(but string) string {
		t.Helper()
		subnet := ""
		eventually(t, 90*time.Second, "the pod answers at its node's subnet", func() bool {
			subnet = l.kubectl("get node " + worker + " -o jsonpath={.spec.podCIDR}")
			prefix := strings.TrimSuffix(subnet, "0/24")
			ip := l.kubectl("-n paictl-demo get pods --field-selector spec.nodeName=" + worker + " -o jsonpath={.items[0].status.podIP}")
			if subnet == but || prefix == subnet || !strings.HasPrefix(ip, prefix) {
				return false
			}
			_, err := l.try(l.names[0], "bash -c 'exec 3<>/dev/tcp/"+ip+"/8080'")
			return err == nil
		})
		return subnet
	}
	subnet := podsRun("")

	// The object of the node is deleted, and its kubelet registers it again immediately. flannel and the pods keep their subnet.
	l.kubectl("delete node " + worker)
	l.on(worker, "systemctl restart kubelet")
	eventually(t, time.Minute, "the node is back", func() bool {
		got := l.kubectl("get node " + worker + " --ignore-not-found -o jsonpath={.spec.podCIDR}")
		return got != "" && got != subnet
	})
	r := ok(t, "cluster", "status", "-p", l.cluster)
	assert.Contains(t, r.stdout, "no pod starts: cni0 has ")
	r = ok(t, "cluster", "up", "-p", l.cluster)
	assert.Contains(t, r.stdout+r.stderr, "delete interface cni0")
	assert.Regexp(t, `were stopped and start again: [1-9]`, r.stdout+r.stderr) // other pods may run there, too
	subnet = podsRun(subnet)

	// The object of the node is deleted permanently, so the machine must join again.
	l.kubectl("delete node " + worker)
	l.up(0)
	podsRun(subnet)
	assert.Zero(t, l.up(0).Changes)

	// The kubelet is stopped.
	l.on(worker, "systemctl stop kubelet")
	assert.Equal(t, 6, run(t, "cluster", "plan", "-p", l.cluster, "--exit-code").code)
	assert.Equal(t, 1, l.up(0).Changes)
	assert.Equal(t, "active", l.on(worker, "systemctl is-active kubelet"))

	// The kubelet rejects a setting. The other machines are left unchanged.
	file := filepath.Join(l.cluster, "kubernetes-configuration.yaml")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	bad := strings.Replace(string(good), "imageGCHighThresholdPercent: 100", "imageGCHighThresholdPercent: 300", 1)
	require.NotEqual(t, string(good), bad)
	require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
	s := l.up(3)
	require.Len(t, s.Failed, 3)
	for _, f := range s.Failed {
		if f.Host == worker {
			assert.Contains(t, f.Error, "the kubelet does not stay up: failed to validate kubelet configuration")
			assert.Contains(t, f.Error, "300 must be between 0 and 100")
		} else {
			assert.Equal(t, "not changed: the new kubelet settings failed on "+worker, f.Error)
		}
	}
	assert.Equal(t, "active", l.on(l.names[0], "systemctl is-active kubelet && ! grep -q 'imageGCHighThresholdPercent: 300' /etc/paictl/kubelet.conf.d/*"))
	require.NoError(t, os.WriteFile(file, good, 0o600))
	l.up(0)
	l.isReady(3)
	assert.Zero(t, l.up(0).Changes)
	l.kubectl("delete namespace paictl-demo --wait")
}
