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

	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

// sleepers is a job that waits to be looked at. Tasks of a job of two are given a token, since they watch
// for each other's addresses.
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

// ask tries what a job's token can do. The first argument is the folder of the token, each other one a
// path of the API; it prints a line "STATUS PATH" for each.
const ask = `
import ssl, sys, urllib.error, urllib.request
folder = sys.argv[1]
context = ssl.create_default_context(cafile=folder + "/ca.crt")
token = open(folder + "/token").read()
for path in sys.argv[2:]:
    request = urllib.request.Request("https://kubernetes.default.svc" + path, headers={"Authorization": "Bearer " + token})
    try:
        print(urllib.request.urlopen(request, context=context, timeout=20).status, path)
    except urllib.error.HTTPError as e:
        print(e.code, path)
`

// mayDoLittle looks at what a job can do to others, from outside and from within.
func (j *jobs) mayDoLittle(t *testing.T) {
	for name, tasks := range map[string]int{"alone": 1, "pair": 2} {
		j.forget(t, name)
		j.submit(t, jobFile(t, fmt.Sprintf(sleepers, name, tasks)))
	}
	defer j.forget(t, "alone")
	defer j.forget(t, "pair")
	// Another user's job, with a secret.
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
	t.Run("a job of one task has no token at all", func(t *testing.T) {
		r := ok(t, j.job("exec", "alone", "--", "sh", "-c", "ls -d /var/run/secrets/*/* /run/secrets/* 2>/dev/null | wc -l")...)
		assert.Equal(t, "0", strings.TrimSpace(r.stdout))
	})
	t.Run("a token is good for the job's own addresses, and for nothing else", func(t *testing.T) { j.tokenReadsItsOwn(t, "pair", "alone") })
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

// confined checks a pod as Kubernetes has it.
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

// tokenReadsItsOwn tries from inside a pod of a job what its token can do to another of the same user,
// and to that of another user.
func (j *jobs) tokenReadsItsOwn(t *testing.T, name, other string) {
	own, others, bobs := v1.ObjectName("ann", name), v1.ObjectName("ann", other), v1.ObjectName("bob", "theirs")
	const in = "/api/v1/namespaces/pai-jobs/"
	allowed := in + "configmaps/" + v1.ConfigMapName(own)
	refused := []string{
		in + "configmaps", in + "configmaps/" + v1.ConfigMapName(others), in + "configmaps/" + v1.ConfigMapName(bobs),
		in + "secrets", in + "secrets/" + v1.SpecSecretName(own), in + "secrets/" + v1.SpecSecretName(others), in + "secrets/" + v1.SpecSecretName(bobs),
		in + "pods", in + "pods/" + v1.PodName(own, "main", 0), in + "pods/" + v1.PodName(own, "main", 0) + "/log", in + "serviceaccounts", in + "events",
		"/apis/frameworkcontroller.microsoft.com/v1/namespaces/pai-jobs/frameworks", "/apis/frameworkcontroller.microsoft.com/v1/namespaces/pai-jobs/frameworks/" + own,
		"/api/v1/nodes", "/api/v1/namespaces", "/api/v1/namespaces/pai-system/secrets", "/api/v1/namespaces/pai-system/configmaps",
		"/api/v1/namespaces/pai-system/services/job-controller:http/proxy/v1/jobs",
	}
	args := append([]string{name, "--task", "0", "--", "python3", "-c", ask, tokenFolder(t, &j.podsOf(t, name)[0]), allowed}, refused...)
	answers := strings.Split(strings.TrimSpace(ok(t, j.job("exec", args...)...).stdout), "\n")
	require.Len(t, answers, 1+len(refused), "%s", answers)
	assert.Equal(t, "200 "+allowed, answers[0])
	for i, path := range refused {
		assert.Equal(t, "403 "+path, answers[i+1])
	}
}

// tokenFolder is where a pod has its token.
func tokenFolder(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	for _, v := range p.Spec.Volumes {
		for _, m := range p.Spec.Containers[0].VolumeMounts {
			if v.Projected != nil && m.Name == v.Name {
				return m.MountPath
			}
		}
	}
	t.Fatalf("%s has no token", p.Name)
	return ""
}

// podsOf are the pods of one of ann's jobs.
func (j *jobs) podsOf(t testing.TB, name string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, json.Unmarshal([]byte(j.kubectl("-n pai-jobs get pods -o json -l "+v1.LabelFramework+"="+v1.ObjectName("ann", name))), &list))
	return list.Items
}
