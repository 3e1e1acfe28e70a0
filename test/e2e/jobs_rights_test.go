package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// sleepers is the file of a job that does nothing, so that tests can inspect it. If the job has two tasks, they get a token, which they need to
// request each other's addresses.
const sleepers = `
protocolVersion: 2
name: %s
type: job
secrets: {word: "xyzzy-%[1]s"}
prerequisites: [{name: python, type: dockerimage, uri: "docker.io/openpai/examples-python:3"}]
taskRoles:
  main:
    instances: %d
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}
    commands: ["echo ready; word='<%% $secrets.word %%>'; sleep 1000000"]
`

// mayDoLittle checks which effects a job can have on other jobs, by inspecting its pods and by running commands in its tasks.
func (j *jobs) mayDoLittle(t *testing.T) {
	for name, tasks := range map[string]int{"alone": 1, "pair": 2} {
		j.forget(t, name)
		j.submit(t, jobFile(t, fmt.Sprintf(sleepers, name, tasks)))
	}
	defer j.forget(t, "alone")
	defer j.forget(t, "pair")
	// This is a job of another user, with a secret.
	bob := jobFile(t, fmt.Sprintf(sleepers, "theirs", 1))
	_ = run(t, j.args("job", "delete", "theirs", "--user", "bob", "--yes")...)
	ok(t, j.args("job", "submit", bob, "--user", "bob", "--replace")...)
	defer func() { _ = run(t, j.args("job", "delete", "theirs", "--user", "bob", "--yes")...) }()
	for _, name := range []string{"alone", "pair"} {
		eventually(t, 2*time.Minute, name+" runs", func() bool { return strings.Contains(j.log(t, name), "ready") })
	}

	t.Run("a pod is not privileged and sees nothing of its machine", func(t *testing.T) {
		for _, name := range []string{"alone", "pair"} {
			pods := j.podsOf(t, name)
			require.NotEmpty(t, pods)
			for i := range pods {
				confined(t, &pods[i])
			}
		}
		inside := ok(t, j.job("exec", "alone", "--", "sh", "-c", "cat /proc/1/comm; ls /sys/class/block /dev | tr '\\n' ' '; mount -t tmpfs none /mnt 2>&1 || echo refused")...)
		assert.Contains(t, inside.stdout, "refused")
	})
	t.Run("a pod doesn't reach the cloud's metadata service", func(t *testing.T) {
		pod := j.podsOf(t, "alone")[0]
		route := func(port string) string {
			out, _ := j.try(pod.Spec.NodeName, "ip route add default dev lo metric 9999 2>/dev/null; ip route get 169.254.169.254 from "+pod.Status.PodIP+" iif cni0 ipproto tcp dport "+port+" 2>&1; ip route del default dev lo metric 9999 2>/dev/null")
			return out
		}
		assert.Contains(t, route("80"), "Permission denied", "the kernel's word for prohibited")
		assert.NotContains(t, route("53"), "Permission denied", "some clouds have their DNS server there")
	})
	t.Run("a job has no rights in the cluster", func(t *testing.T) {
		for _, name := range []string{"alone", "pair"} {
			r := ok(t, j.job("exec", name, "--task", "0", "--", "sh", "-c", "ls -d /var/run/secrets/*/* /run/secrets/* 2>/dev/null | wc -l")...)
			assert.Equal(t, "0", strings.TrimSpace(r.stdout), name)
		}
		assert.Empty(t, strings.TrimSpace(j.kubectl("-n pai-jobs get configmaps,serviceaccounts,roles,rolebindings -o name -l "+v1.LabelFramework+"="+v1.ObjectName("ann", "pair"))))
	})
	t.Run("addresses are for the job's own tasks", func(t *testing.T) {
		const ask = "import sys, urllib.error, urllib.request\nfor i in range(1, len(sys.argv), 2):\n  try: print(urllib.request.urlopen(urllib.request.Request(sys.argv[i], headers={'Authorization': 'Bearer ' + sys.argv[i+1]}), timeout=20).status)\n  except urllib.error.HTTPError as e: print(e.code)"
		token := func(name string) string {
			for _, e := range j.podsOf(t, name)[0].Spec.Containers[0].Env {
				if e.Name == spec.PeersTokenVariable {
					return e.Value
				}
			}
			return "none"
		}
		url := "http://job-controller.pai-system.svc.cluster.local/v1/peers/" + v1.ObjectName("ann", "pair") + "?attempt=0"
		own := token("pair")
		require.NotEqual(t, "none", own)
		r := ok(t, j.job("exec", "alone", "--", "python3", "-c", ask, url, own, url, token("alone"), url, "x."+own, strings.Replace(url, "/v1/peers/", "/v1/peers/a", 1), own)...)
		assert.Equal(t, []string{"200", "403", "403", "403"}, strings.Fields(r.stdout))
	})
	t.Run("a job can't read the history and logs of others", func(t *testing.T) {
		const get = "import sys, urllib.error, urllib.request\ntry: print('read', len(urllib.request.urlopen(sys.argv[1], timeout=20).read()))\nexcept (urllib.error.URLError, OSError) as e: print('refused', e)"
		for _, path := range []string{"/v1/jobs", "/v1/jobs/" + v1.ObjectName("bob", "theirs"), "/v1/jobs/" + v1.ObjectName("bob", "theirs") + "/logs?role=main&task=0"} {
			r := ok(t, j.job("exec", "alone", "--", "python3", "-c", get, "http://job-controller.pai-system.svc.cluster.local"+path)...)
			assert.Contains(t, r.stdout, "refused", path)
		}
	})
	t.Run("a job's secret is not in what others read", func(t *testing.T) {
		assert.NotContains(t, j.kubectl("-n pai-jobs get pods,frameworks,configmaps,events -o yaml"), "xyzzy-")
	})
}

// confined checks the restrictions of a pod in the object that the API server returns.
func confined(t *testing.T, p *corev1.Pod) {
	t.Helper()
	s := p.Spec
	assert.False(t, s.HostNetwork || s.HostPID || s.HostIPC, "of its own")
	for _, v := range s.Volumes {
		assert.Nil(t, v.HostPath, v.Name)
	}
	for _, c := range append(s.InitContainers, s.Containers...) {
		if c.SecurityContext != nil {
			assert.False(t, ptr(c.SecurityContext.Privileged), c.Name)
			require.NotNil(t, c.SecurityContext.Capabilities, c.Name)
			assert.Empty(t, c.SecurityContext.Capabilities.Add, c.Name)
			assert.Contains(t, c.SecurityContext.Capabilities.Drop, corev1.Capability("NET_RAW"), c.Name)
		}
		assert.Empty(t, c.VolumeDevices, c.Name)
	}
	assert.False(t, s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken, "no token but the job's own")
}

// podsOf returns the pods of one of ann's jobs.
func (j *jobs) podsOf(t testing.TB, name string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, json.Unmarshal([]byte(j.kubectl("-n pai-jobs get pods -o json -l "+v1.LabelFramework+"="+v1.ObjectName("ann", name))), &list))
	return list.Items
}
