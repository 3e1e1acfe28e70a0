package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// failuresAreExplained causes failures of jobs, and checks that paictl explains them. The last failure removes a machine.
func (j *jobs) failuresAreExplained(t *testing.T) {
	t.Run("no such virtual cluster", func(t *testing.T) {
		r := j.refused(t, jobFile(t, read(t, example(t, "hello"))+"defaults: {virtualCluster: nowhere}\n"))
		assert.Contains(t, r.stderr, "nowhere")
		assert.Contains(t, r.stderr, "default", "there is one that can be had")
	})
	t.Run("more than the virtual cluster owns", func(t *testing.T) {
		r := j.refused(t, example(t, "waits", "instances: 2", "instances: 40"))
		assert.Contains(t, r.stderr, "default")
		assert.Contains(t, r.stderr, "32")
	})
	t.Run("more than the user's quota", func(t *testing.T) {
		_ = run(t, j.args("job", "delete", "gpu", "--user", "eve", "--yes")...)
		r := run(t, j.args("job", "submit", example(t, "gpu"), "--user", "eve", "--replace")...)
		text := r.stdout + r.stderr
		if r.code == 0 {
			eventually(t, time.Minute, "it says that the quota is too small", func() bool {
				text = run(t, j.args("job", "why", "gpu", "--user", "eve")...).stdout
				return strings.Contains(strings.ToLower(text), "quota")
			})
			_ = run(t, j.args("job", "delete", "gpu", "--user", "eve", "--yes")...)
		}
		assert.Contains(t, strings.ToLower(text), "quota")
		assert.Contains(t, text, "eve")
	})
	t.Run("one megabyte that is no YAML", func(t *testing.T) {
		noise := make([]byte, 1<<20)
		source := rand.New(rand.NewPCG(1, 2))
		for i := range noise {
			noise[i] = byte(source.Uint32())
		}
		r := j.refused(t, jobFile(t, string(noise)))
		assert.Less(t, len(r.stderr), 2000, "the noise isn't printed")
		assert.Contains(t, r.stderr, "job.yaml")
	})
	t.Run("the image does not exist", func(t *testing.T) {
		j.forget(t, "no-image")
		j.submit(t, example(t, "hello", "examples-python:3", "no-such-image:1"), "--name", "no-image")
		defer j.forget(t, "no-image")
		eventually(t, 2*time.Minute, "it says that the image can't be pulled", func() bool {
			why := j.why(t, "no-image")
			return strings.Contains(why, "can't get docker.io/openpai/no-such-image:1")
		})
		t.Logf("%s: %s", j.state(t, "no-image"), j.why(t, "no-image"))
	})
	t.Run("its Secret is gone", j.missesItsSecret)
	t.Run("it writes more to the disk than it may", func(t *testing.T) {
		j.forget(t, "hoarder")
		j.submit(t, jobFile(t, fmt.Sprintf(hoarder, "hoarder")))
		f := j.ended(t, "hoarder", "failed", "PodDiskLimitExceeded")
		assert.Zero(t, f.Status.RetryPolicyStatus.TotalRetriedCount)
		t.Log(j.why(t, "hoarder"))
		j.forget(t, "hoarder")
	})
	t.Run("it starts after another", func(t *testing.T) {
		for _, name := range []string{"first", "then", "never"} {
			j.forget(t, name)
		}
		j.submit(t, example(t, "hello", "name: hello", "name: first"))
		j.submit(t, example(t, "hello", "name: hello", "name: then"), "--after", "first")
		j.ended(t, "then", "succeeded", "Succeeded")
		first, then := j.framework(t, "first").Status, j.framework(t, "then").Status
		assert.False(t, then.RunTime.Before(first.CompletionTime), "%s, and the other ended at %s", then.RunTime, first.CompletionTime)
		j.submit(t, example(t, "hello", "name: hello", "name: first", "examples-python:3", "no-such-image:1"))
		j.submit(t, example(t, "hello", "name: hello", "name: never"), "--after", "first")
		assert.Contains(t, j.why(t, "never"), "starts after ann/first")
		ok(t, j.job("stop", "first")...)
		j.ended(t, "never", "failed", "DependencyFailed")
		t.Log(j.why(t, "never"))
	})
	t.Run("its pod is evicted", func(t *testing.T) {
		name := j.sleeps(t, "evicted")
		pod := j.podsOf(t, name)[0]
		eviction := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":"pai-jobs"}}`, pod.Name)
		j.on(j.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl create --raw /api/v1/namespaces/pai-jobs/pods/"+pod.Name+"/eviction -f - <<'END'\n"+eviction+"\nEND")
		j.runsAgain(t, name, string(pod.UID))
		j.forget(t, name)
	})
	t.Run("its controller is killed meanwhile", func(t *testing.T) {
		name := j.sleeps(t, "survives")
		pod := j.podsOf(t, name)[0]
		j.kubectl("-n pai-system delete pod -l app.kubernetes.io/name=job-controller --grace-period=0 --force")
		j.forget(t, "hello")
		j.submit(t, example(t, "hello"))
		j.ended(t, "hello", "succeeded", "Succeeded")
		assert.Equal(t, pod.UID, j.podsOf(t, name)[0].UID, "the new one lets it run")
		j.forget(t, name)
	})
	t.Run("its GPU breaks", j.losesItsGPU)
	t.Run("its machine is lost", j.losesItsMachine)
}

// noticing is the file of a job that fails once it reads that its GPU is broken.
const noticing = `protocolVersion: 2
name: %s
type: job
prerequisites:
  - {name: python, type: dockerimage, uri: "docker.io/openpai/examples-python:3"}
taskRoles:
  main:
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 1}
    commands: ["until grep -q reason /run/paictl/gpus/gpus.json; do sleep 0.5; done", "echo CUDA error; exit 1"]
`

// losesItsGPU breaks the GPU of a job. The retry of the job gets another GPU.
func (j *jobs) losesItsGPU(t *testing.T) {
	const name = "noticing"
	j.forget(t, name)
	j.submit(t, jobFile(t, fmt.Sprintf(noticing, name)))
	j.is(t, name, "running")
	device := func(p *corev1.Pod) string {
		out := j.kubectl("-n pai-jobs exec " + p.Name + " -c app -- sh -c 'cd /dev; ls -d nvidia[0-9]*'")
		return strings.TrimPrefix(strings.Fields(out)[0], "nvidia")
	}
	pod := j.podsOf(t, name)[0]
	node, index := pod.Spec.NodeName, device(&pod)
	ok(t, "sandbox", "fault", "gpu", "--dir", j.dir, node, index, "xid=79")
	began := time.Now()
	var f *v1.Framework
	eventually(t, time.Minute, "its report names the GPU", func() bool {
		f = j.framework(t, name)
		return f.Status.RetryPolicyStatus.TotalRetriedCount > 0
	})
	t.Logf("tried again after %.1f s", time.Since(began).Seconds())
	j.is(t, name, "running")
	page := ok(t, j.job("get", name)...).stdout
	t.Log(page)
	assert.Contains(t, page, "116 container GPU fault")
	again := j.podsOf(t, name)[0]
	require.NotEqual(t, pod.UID, again.UID)
	assert.NotEqual(t, node+" "+index, again.Spec.NodeName+" "+device(&again))
	assert.Zero(t, f.Status.RetryPolicyStatus.AccountableRetriedCount, "the machine is at fault")

	// No gang gets the broken GPU. "why" reports the reason for a job that would need it.
	j.forget(t, "waits")
	j.submit(t, example(t, "waits", "instances: 2", "instances: 4"))
	j.is(t, "waits", "queued")
	ok(t, j.job("stop", name)...)
	j.ended(t, name, "stopped", "")
	var why string
	eventually(t, time.Minute, "why says that a GPU is sick", func() bool {
		why = j.why(t, "waits")
		return strings.Contains(why, "XID 79")
	})
	t.Log(why)
	ok(t, "sandbox", "fault", "gpu", "--dir", j.dir, node, index, "clear")
	j.ended(t, "waits", "succeeded", "Succeeded")
	j.forget(t, name)
}

// hoarder is the file of a job that writes 200 MiB, although its limit is 64 MiB.
const hoarder = `protocolVersion: 2
name: %s
type: job
prerequisites:
  - {name: python, type: dockerimage, uri: "docker.io/openpai/examples-python:3"}
taskRoles:
  main:
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    extraContainerOptions: {diskMB: 64}
    commands: ["head -c 200M /dev/zero > /tmp/file", "sleep 600"]
`

// missesItsSecret deletes the Secret that contains the commands of a waiting job.
func (j *jobs) missesItsSecret(t *testing.T) {
	const name = "no-secret"
	j.forget(t, "gpu")
	j.forget(t, name)
	j.submit(t, example(t, "gpu"), "--set", "seconds=3600")
	j.is(t, "gpu", "running")
	submit := func() { j.submit(t, example(t, "waits", "instances: 2", "instances: 4"), "--name", name) }
	submit()
	j.is(t, name, "queued")
	secret := v1.SpecSecretName(v1.ObjectName("ann", name))
	j.kubectl("-n pai-jobs delete secret " + secret)
	j.forget(t, "gpu")
	defer j.forget(t, name)
	eventually(t, 3*time.Minute, "it says what to do", func() bool { return strings.Contains(j.why(t, name), "submit the same file again") })
	t.Logf("%s: %s", j.state(t, name), j.why(t, name))
	submit()
	j.ended(t, name, "succeeded", "Succeeded")
}

// losesItsMachine unplugs the machine of a running job. Kubernetes waits until the machine returns, and "why" reports that. When an administrator
// marks the machine as lost, the job continues on another machine.
func (j *jobs) losesItsMachine(t *testing.T) {
	name := j.sleeps(t, "lost")
	pod := j.podsOf(t, name)[0]
	dead := pod.Spec.NodeName
	ok(t, "sandbox", "stop", "--dir", j.dir, "--unplug", dead)
	defer func() {
		ok(t, "sandbox", "start", "--dir", j.dir, dead)
		j.kubectl("taint node " + dead + " node.kubernetes.io/out-of-service:NoExecute- || true")
	}()
	eventually(t, 3*time.Minute, "Kubernetes misses the machine", func() bool {
		return strings.Contains(j.kubectl("get nodes --no-headers "+dead), "NotReady")
	})
	eventually(t, time.Minute, "the job says so", func() bool { return strings.Contains(j.why(t, name), dead) })
	t.Log(j.why(t, name))
	j.kubectl("taint node " + dead + " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	j.runsAgain(t, name, string(pod.UID))
	assert.NotEqual(t, dead, j.podsOf(t, name)[0].Spec.NodeName)
	j.forget(t, name)
}

// sleeps submits a job with one task, which runs until it is stopped, and waits until the task runs.
func (j *jobs) sleeps(t *testing.T, name string) string {
	t.Helper()
	j.forget(t, name)
	j.submit(t, jobFile(t, fmt.Sprintf(sleepers, name, 1)))
	eventually(t, 2*time.Minute, name+" runs", func() bool { return strings.Contains(j.log(t, name), "ready") })
	return name
}

// runsAgain waits until a job runs in another pod. The retry must not count against the job.
func (j *jobs) runsAgain(t *testing.T, name, pod string) {
	t.Helper()
	eventually(t, 5*time.Minute, name+" runs again", func() bool {
		pods := j.podsOf(t, name)
		return len(pods) == 1 && string(pods[0].UID) != pod && j.state(t, name) == "running"
	})
	f := j.framework(t, name)
	assert.Equal(t, int32(1), f.Status.RetryPolicyStatus.TotalRetriedCount)
	assert.Zero(t, f.Status.RetryPolicyStatus.AccountableRetriedCount)
	t.Log(j.why(t, name))
}

// refused submits a file that paictl must reject, and checks that no objects were created.
func (j *jobs) refused(t *testing.T, path string) result {
	t.Helper()
	before := j.kubectl("-n pai-jobs get frameworks,secrets -o name")
	r := run(t, j.job("submit", path)...)
	assert.Equal(t, 1, r.code, "%s", r)
	assert.NotEmpty(t, strings.TrimSpace(r.stderr))
	assert.Equal(t, before, j.kubectl("-n pai-jobs get frameworks,secrets -o name"))
	return r
}
