package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// TestTheAgentHandsOutGPUsToOrdinaryPods gives two of a machine's eight GPUs to ordinary pods. pai-scheduler and Kubernetes' own scheduler both run.
func TestTheAgentHandsOutGPUsToOrdinaryPods(t *testing.T) {
	a := &agents{services: sharedServices(t)}
	a.worker = a.names[1]
	j := &jobs{&gpus{services: a.services}}
	path := filepath.Join(a.cluster, "layout.yaml")
	before := read(t, path)
	// This isn't a t.Cleanup, because connections end with the test.
	defer func() {
		require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
		a.kubectl("delete pods,resourceclaims -l test=agent --timeout=180s --grace-period=1 --ignore-not-found")
	}()
	layout := node(t, before)
	for _, m := range layout["machine-list"].([]any) {
		if machine := m.(map[string]any); machine["hostname"] == a.worker {
			machine["gpus-for-pods"] = []int{6, 7}
		}
	}
	require.NoError(t, os.WriteFile(path, []byte(encode(t, layout)), 0o600))
	a.push()
	a.start(0, "-n", "agent", "-n", "scheduler", "-n", "job-controller")
	given := func() string {
		return a.kubectl("get resourceslices --field-selector spec.nodeName=" + a.worker +
			` -o jsonpath='{range .items[*].spec.devices[?(@.attributes.forPods.bool==true)]}{.name} {end}'`)
	}
	eventually(t, time.Minute, "the machine publishes which are for pods", func() bool { return strings.Join(strings.Fields(given()), " ") == "gpu-6 gpu-7" })

	t.Run("a container sees the GPU of its own request", func(t *testing.T) {
		a.submitOrdinary("two", "pai-scheduler", 2)
		eventually(t, 2*time.Minute, "it runs", func() bool { return a.kubectl("get pod two -o jsonpath='{.status.phase}'") == "Running" })
		seen := append(a.seesIn("two", "c0"), a.seesIn("two", "c1")...)
		assert.ElementsMatch(t, []string{"nvidia6", "nvidia7"}, seen)
		made := a.kubectl(`get pod two -o jsonpath='{.status.extendedResourceClaimStatus.resourceClaimName}'`)
		stolen := fmt.Sprintf(`patch resourceclaim %s --subresource=status --type=merge -p '{"status":{"reservedFor":[{"resource":"pods","name":"thief","uid":"thief"}]}}'`, made)
		assert.Contains(t, a.kubectl(stolen+" 2>&1 || true"), "the scheduler's own")
		a.kubectl("delete pod two --grace-period=1 --timeout=120s")
	})
	t.Run("pods have them by either scheduler, and no more than there are", func(t *testing.T) {
		a.submitOrdinary("one", "pai-scheduler", 1)
		one := a.seesIn("one", "c0")
		a.submitOrdinary("other", "default-scheduler", 1)
		other := a.seesIn("other", "c0")
		assert.ElementsMatch(t, []string{"nvidia6", "nvidia7"}, slices.Concat(one, other))
		for name, scheduler := range map[string]string{"third": "pai-scheduler", "fourth": "default-scheduler"} {
			a.submitOrdinary(name, scheduler, 1)
			a.waitsOrdinary(name)
		}
		a.kubectl("delete pod third other --grace-period=1 --timeout=120s")
		assert.Equal(t, other, a.seesIn("fourth", "c0"), "what another had")
		a.kubectl("delete pod fourth --grace-period=1 --timeout=120s")
	})
	t.Run("a claim that a person writes is served, too", func(t *testing.T) {
		a.submitOf(claim.PodsClass, "person", 1, "")
		assert.Len(t, a.sees("person"), 1)
		a.kubectl("delete pod,resourceclaim person --grace-period=1 --timeout=120s")
	})
	t.Run("no job gets one", func(t *testing.T) {
		a.fillWithJobs(t, j)
	})
	t.Run("a sick one is given to no pod", func(t *testing.T) {
		fault := func(what string) {
			ok(t, "sandbox", "fault", "gpu", "--dir", a.dir, a.worker, "6", what)
			ok(t, "sandbox", "fault", "gpu", "--dir", a.dir, a.worker, "7", what)
		}
		tainted := func() string {
			return a.kubectl("get resourceslices --field-selector spec.nodeName=" + a.worker +
				` -o jsonpath='{range .items[*].spec.devices[?(@.taints[0].key=="` + claim.Unhealthy + `")]}{.name} {end}'`)
		}
		fault("xid=79")
		eventually(t, 30*time.Second, "they are tainted", func() bool { return strings.Join(strings.Fields(tainted()), " ") == "gpu-6 gpu-7" })
		assert.Len(t, a.seesIn("one", "c0"), 1, "who has it keeps it")
		a.submitOrdinary("late", "pai-scheduler", 1)
		a.waitsOrdinary("late")
		fault("clear")
		assert.Len(t, a.seesIn("late", "c0"), 1)
		assert.Empty(t, strings.TrimSpace(tainted()))
	})
}

// fillWithJobs runs jobs on the GPUs, so that pods have only one free GPU at first.
func (a *agents) fillWithJobs(t *testing.T, j *jobs) {
	task := func(name string, gpus, instances int) string {
		return jobFile(t, fmt.Sprintf(`protocolVersion: 2
name: %s
type: job
prerequisites:
  - {name: python, type: dockerimage, uri: docker.io/openpai/examples-python:3}
taskRoles:
  main:
    instances: %d
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: %d}
    commands: [sleep 3600]
`, name, instances, gpus))
	}
	sizes := map[string]int{"whole": 8, "part": 6}
	j.submit(t, task("whole", 8, len(a.names)-2))
	j.is(t, "whole", "running")
	j.submit(t, task("part", 6, 1))
	j.is(t, "part", "running")
	for name, gpus := range sizes {
		for _, p := range j.podsOf(t, name) {
			files := strings.Fields(a.kubectl("-n pai-jobs exec " + p.Name + " -c app -- sh -c 'cd /dev; ls -d nvidia[0-9]*'"))
			assert.Len(t, files, gpus, p.Name)
			if p.Spec.NodeName == a.worker {
				assert.Equal(t, []string{"nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidia4", "nvidia5"}, files)
			}
			assert.Equal(t, name == "part", p.Spec.NodeName == a.worker, p.Name)
		}
	}
	j.submit(t, task("more", 1, 1))
	j.is(t, "more", "queued")
	why := j.why(t, "more")
	t.Logf("%s", why)
	assert.Contains(t, why, fmt.Sprintf("owns %d GPUs", 8*(len(a.names)-1)-2))
	for _, name := range []string{"more", "part", "whole"} {
		ok(t, j.job("stop", name)...)
	}
	j.ended(t, "whole", "stopped", "")
}

// submitOrdinary creates a pod whose containers c0, c1, … request one GPU each in the usual way of Kubernetes. Each container prints the GPUs that
// it sees.
func (a *agents) submitOrdinary(name, scheduler string, containers int) {
	a.t.Helper()
	var all strings.Builder
	for i := range containers {
		fmt.Fprintf(&all, `
    - name: c%d
      image: docker.io/openpai/examples-python:3
      imagePullPolicy: Never
      command: [python3, -c, "import json, os, time; print(json.dumps(sorted(f for f in os.listdir('/dev') if f.startswith('nvidia'))), flush=True); time.sleep(86400)"]
      resources: {limits: {nvidia.com/gpu: 1}}`, i)
	}
	a.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {test: agent}}
spec:
  schedulerName: %s
  terminationGracePeriodSeconds: 1
  containers:%s
`, name, scheduler, all.String()))
}

// seesIn waits for the output of a container, and returns the device files of GPUs in it.
func (a *agents) seesIn(pod, container string) (files []string) {
	a.t.Helper()
	eventually(a.t, 2*time.Minute, pod+" runs", func() bool {
		out, err := a.try(a.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl logs "+pod+" -c "+container)
		return err == nil && json.Unmarshal([]byte(strings.TrimSpace(out)), &files) == nil
	})
	return files
}

// waitsOrdinary waits until a condition of the pod reports that no GPU is free for the pod.
func (a *agents) waitsOrdinary(name string) {
	a.t.Helper()
	eventually(a.t, time.Minute, name+" waits", func() bool {
		return strings.HasPrefix(a.kubectl("get pod "+name+` -o jsonpath='{.status.phase} {.status.conditions[?(@.type=="PodScheduled")].reason}'`), "Pending Unschedulable")
	})
}
