package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// TestTheAgentHandsOutGPUs runs the agent with real kubelets, on machines that simulate eight GPUs each. Kubernetes' own scheduler allocates the
// GPUs.
func TestTheAgentHandsOutGPUs(t *testing.T) {
	a := &agents{services: sharedServices(t)}
	a.push()
	a.start(0, "-n", "agent")
	a.worker = a.names[1]
	// This isn't a t.Cleanup, because connections end with the test.
	defer func() {
		a.kubectl("delete pods,resourceclaims,deviceclasses -l test=agent --timeout=180s --grace-period=1 --ignore-not-found")
	}()

	t.Run("machines publish their GPUs", func(t *testing.T) {
		for _, worker := range a.names[1:] {
			eventually(t, time.Minute, worker+" has eight", func() bool { return len(a.published(worker)) == 8 })
		}
		assert.Empty(t, a.published(a.names[0]), "the master has none")
	})
	t.Run("GPUs of the scheduler's cells are for claims of its class", func(t *testing.T) {
		a.apply(fmt.Sprintf(deviceClass, "mine"))
		a.submitOf("mine", "other", 1, "")
		a.refused("other", "which doesn't have the class "+claim.Class)
	})
	t.Run("a pod that is deleted by force keeps its GPUs while its processes run", func(t *testing.T) {
		a.apply(fmt.Sprintf(deviceClass, claim.Class))
		a.apply(fmt.Sprintf(slow, claim.Class, a.worker))
		a.sees("slow")
		// The kubelet stops the pod with the pod's own grace period. A later forced deletion doesn't shorten that period.
		a.kubectl("delete pod slow --wait=false")
		eventually(t, time.Minute, "the kubelet has begun to end it", func() bool {
			return strings.Contains(a.kubectl("get events --field-selector involvedObject.name=slow,reason=Killing -o name"), "event")
		})
		a.kubectl("delete pod slow --force --grace-period=0")
		a.submit("next", 8, "")
		eventually(t, 90*time.Second, "the agent keeps them from the kubelet", func() bool {
			log := a.kubectl("-n pai-system logs -l app.kubernetes.io/name=agent --tail=-1 --prefix")
			return strings.Contains(log, "processes of the pod") && strings.Contains(log, "belongs to the claim default/slow")
		})
		a.on(a.worker, "pkill -9 -f '[s]low-of-the-test'")
		assert.Len(t, a.sees("next"), 8)
		a.kubectl("delete pod next --grace-period=1 --timeout=120s")
		a.kubectl("delete resourceclaims next slow --ignore-not-found")
	})
	t.Run("a container sees the GPUs of its claim and no others", func(t *testing.T) {
		a.submit("a", 3, "")
		a.submit("b", 5, "")
		three, five := a.sees("a"), a.sees("b")
		assert.Len(t, three, 3)
		all := append(slices.Clone(three), five...)
		slices.Sort(all)
		assert.Equal(t, []string{"nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidia4", "nvidia5", "nvidia6", "nvidia7"}, all)
		a.submit("none", 0, "{name: NVIDIA_VISIBLE_DEVICES, value: all}")
		assert.Empty(t, a.sees("none"))
	})
	t.Run("what another has is refused, whoever says otherwise", func(t *testing.T) {
		taken := strings.Replace(a.sees("a")[0], "nvidia", "gpu-", 1)
		a.apply(fmt.Sprintf(thief, a.worker))
		a.kubectl(fmt.Sprintf(`patch resourceclaim thief --subresource=status --type=merge -p '{"status":{"allocation":{"devices":{"results":[{"request":"gpus","driver":"gpu.paictl.openpai.org","pool":"%s","device":"%s"}]}}}}'`, a.worker, taken))
		a.refused("thief", taken+" belongs to the claim default/a")
	})
	t.Run("everybody hears of a GPU that breaks, and that it works again", func(t *testing.T) {
		index := strings.TrimPrefix(a.sees("a")[0], "nvidia")
		fault := func(what string) {
			assert.Contains(t, ok(t, "sandbox", "fault", "gpu", "--dir", a.dir, a.worker, index, what).stdout, "GPU "+index+" of "+a.worker)
		}
		told := func() string {
			return a.kubectl("get node " + a.worker + ` -o jsonpath='{.metadata.annotations.paictl\.openpai\.org/gpus} {.status.conditions[?(@.type=="GPUsUnhealthy")].message}'`)
		}
		fault("xid=79")
		began := time.Now()
		eventually(t, 30*time.Second, "the node says it", func() bool { return strings.Contains(told(), "GPU "+index+": XID 79: it has fallen off the bus") })
		t.Logf("the node says it after %.1f s", time.Since(began).Seconds())
		assert.Contains(t, told(), `"healthy":false`)
		eventually(t, 30*time.Second, "its pod says it", func() bool {
			return strings.Contains(a.kubectl("get pod a -o jsonpath='{.status.containerStatuses[0].allocatedResourcesStatus}'"), "Unhealthy")
		})
		t.Logf("its pod says it after %.1f s", time.Since(began).Seconds())
		eventually(t, 10*time.Second, "its container is told", func() bool {
			return strings.Contains(a.kubectl("exec a -- cat /run/paictl/gpus/gpus.json"), `"xids":[79]`)
		})
		assert.NotContains(t, a.kubectl("exec b -- cat /run/paictl/gpus/gpus.json"), "XID")
		_, err := a.try(a.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl exec a -- sh -c 'echo x > /run/paictl/gpus/gpus.json'")
		require.Error(t, err, "a container can't change what it is told")
		assert.Contains(t, ok(t, "node", "list", "-p", a.cluster).stdout, "GPU "+index+": XID 79: it has fallen off the bus")
		_, err = a.try(a.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl get --raw /api/v1/namespaces/pai-system/pods/"+a.agentOf(a.worker)+":9104/proxy/metrics")
		require.Error(t, err, "measurements name other people's pods")
		metrics := a.askPod(a.agentOf(a.worker), "9104", "/metrics")
		assert.Regexp(t, `DCGM_FI_DEV_XID_ERRORS\{[^}]*gpu="`+index+`"[^}]*namespace="default"[^}]*pod="a"\} 79`, string(metrics))
		fault("clear")
		eventually(t, 30*time.Second, "it works again", func() bool { return !strings.Contains(told(), "XID") && !strings.Contains(told(), "false") })
	})
	t.Run("people bring a GPU back", func(t *testing.T) {
		worker := a.names[2]
		gpu := func(code int, verb string, more ...string) string {
			r := run(t, a.args(append([]string{"node", "gpu", verb}, more...)...)...)
			require.Equal(t, code, r.code, "%s", r)
			t.Logf("paictl node gpu %s %s\n%s%s", verb, strings.Join(more, " "), r.stdout, r.stderr)
			return r.stdout + r.stderr
		}
		sick := func() string { return gpu(0, "list", worker, "--sick") }
		assert.NotContains(t, sick(), "XID")
		ok(t, "sandbox", "fault", "gpu", "--dir", a.dir, worker, "4", "xid=74")
		eventually(t, 30*time.Second, "the node says it", func() bool { return strings.Contains(sick(), "sick") })
		assert.Contains(t, gpu(0, "ignore", worker, "4"), "GPU 4 of "+worker+": it gets jobs again, although: XID 74")
		eventually(t, 10*time.Second, "the list says it", func() bool { return strings.Contains(sick(), "ignored") })
		gpu(0, "ignore", worker, "4", "--undo")
		eventually(t, 10*time.Second, "it is heeded again", func() bool { return strings.Contains(sick(), "sick") })
		assert.Contains(t, gpu(0, "reset", worker, "4"), "the faults of the simulated GPU are cleared")
		eventually(t, 10*time.Second, "it is well", func() bool { return !strings.Contains(sick(), "XID") })
		assert.Contains(t, gpu(1, "ignore", worker, "4"), "nothing is wrong with it")
		assert.Contains(t, gpu(1, "reset", a.worker, strings.TrimPrefix(a.sees("a")[0], "nvidia")), "the claim default/a holds it")
		assert.Contains(t, gpu(1, "reset", worker, "8"), "the machine has no GPU 8")
		assert.Contains(t, gpu(1, "reset", a.names[0], "0"), "no agent has reported GPUs")
		ok(t, "sandbox", "fault", "gpu", "--dir", a.dir, worker, "4", "clear")
	})
	t.Run("an agent publishes for its own machine alone", func(t *testing.T) {
		out := a.on(a.names[0], `KUBECONFIG=/etc/kubernetes/admin.conf kubectl --as=system:serviceaccount:pai-system:agent delete resourceslices --all 2>&1 || true`)
		assert.Contains(t, out, "an agent may publish only the GPUs of its own machine")
		assert.Len(t, a.published(a.worker), 8)
	})
	t.Run("pods keep their GPUs while the kubelet and the agent start again", func(t *testing.T) {
		before := a.containers()
		a.submit("waits", 1, "")
		a.on(a.worker, "systemctl restart kubelet")
		eventually(t, 90*time.Second, "the GPUs are published again", func() bool { return len(a.published(a.worker)) == 8 })
		a.kubectl("-n pai-system delete pod -l app.kubernetes.io/name=agent --field-selector spec.nodeName=" + a.worker)
		a.kubectl("-n pai-system rollout status daemonset/agent --timeout=120s")
		assert.Equal(t, before, a.containers())
		free := a.sees("a")
		a.kubectl("delete pod a --grace-period=1 --timeout=120s") // the agent that ends it isn't the one that started it
		assert.Subset(t, free, a.sees("waits"), "it has what the other had")
	})
	t.Run("containers use a driver by NVIDIA's own hook", a.containersUseADriver)
	t.Run("containers have the same GPUs after the machine's next start", func(t *testing.T) {
		before := a.sees("b")
		ok(t, "sandbox", "stop", "--dir", a.dir, a.worker)
		ok(t, "sandbox", "start", "--dir", a.dir, a.worker)
		eventually(t, 3*time.Minute, "the container is started again", func() bool {
			return a.kubectl(`get pod b -o jsonpath='{.status.containerStatuses[0].ready} {.status.containerStatuses[0].restartCount}'`) == "true 1"
		})
		assert.Equal(t, before, a.sees("b"))
	})
}

// agents holds the agents of the shared cluster.
type agents struct {
	*services
	worker string // the node that runs pods
}

// deviceClass is a class with whose claims kube-scheduler allocates GPUs. The scheduler's chart isn't started here; its class for claims matches no
// device.
const deviceClass = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %s, labels: {test: agent}}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.paictl.openpai.org'"}}]}
`

// thief is a pod that bypasses the scheduler, although its claim isn't allocated yet. The placeholder is its node.
const thief = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: thief, labels: {test: agent}}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.paictl.openpai.org, count: 1}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: thief, labels: {test: agent}}
spec:
  nodeName: %s
  containers:
    - {name: main, image: "docker.io/openpai/examples-python:3", imagePullPolicy: Never, resources: {claims: [{name: gpus}]}}
  resourceClaims: [{name: gpus, resourceClaimName: thief}]
`

// slow is a pod that holds all GPUs of a machine and stops only slowly.
const slow = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: slow, labels: {test: agent}}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: %s, count: 8}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: slow, labels: {test: agent}}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  terminationGracePeriodSeconds: 1800
  containers:
    - name: main
      image: docker.io/openpai/examples-python:3
      imagePullPolicy: Never
      command: [python3, -c, "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print([], flush=True); time.sleep(86400) # slow-of-the-test"]
      resources: {claims: [{name: gpus}]}
  resourceClaims: [{name: gpus, resourceClaimName: slow}]
`

// apply runs "kubectl apply" on the first host.
func (a *agents) apply(text string) {
	a.t.Helper()
	a.on(a.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl apply -f - 2>&1 <<'END'\n"+text+"\nEND\n")
}

// submit creates a pod that prints the GPUs that it sees each time it is started.
func (a *agents) submit(name string, gpus int, env string) {
	a.t.Helper()
	a.submitOf(claim.Class, name, gpus, env)
}

func (a *agents) submitOf(class, name string, gpus int, env string) {
	a.t.Helper()
	claims, resources := "", ""
	if gpus > 0 {
		a.apply(fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s, labels: {test: agent}}
spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: %s, count: %d}}]}}
`, name, class, gpus))
		claims, resources = fmt.Sprintf("resourceClaims: [{name: gpus, resourceClaimName: %s}]", name), "resources: {claims: [{name: gpus}]}"
	}
	a.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {test: agent}}
spec:
  nodeSelector: {kubernetes.io/hostname: %[2]s}
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: docker.io/openpai/examples-python:3
      imagePullPolicy: Never
      command: [python3, -c, "import json, os, time; print(json.dumps(sorted(f for f in os.listdir('/dev') if f.startswith('nvidia'))), flush=True); time.sleep(86400)"]
      env: [%[3]s]
      %[4]s
  %[5]s
`, name, a.worker, env, resources, claims))
}

// sees waits for the output of a pod, and returns the device files of GPUs in it.
func (a *agents) sees(name string) (files []string) {
	a.t.Helper()
	eventually(a.t, 2*time.Minute, name+" runs", func() bool {
		out, err := a.try(a.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl logs "+name)
		return err == nil && json.Unmarshal([]byte(strings.TrimSpace(out)), &files) == nil
	})
	return files
}

// refused waits until the agent reports why a pod doesn't get its GPUs. Then it deletes the pod and its claim.
func (a *agents) refused(name, why string) {
	a.t.Helper()
	eventually(a.t, time.Minute, "the agent refuses the claim of "+name, func() bool {
		return strings.Contains(a.kubectl("get events --field-selector involvedObject.name="+name+" -o jsonpath='{.items[*].message}'"), why)
	})
	a.kubectl("delete pod " + name + " --grace-period=1")
	a.kubectl("delete resourceclaim " + name + " --ignore-not-found")
}

// agentOf returns the name of the agent's pod on a node.
func (a *agents) agentOf(node string) string {
	a.t.Helper()
	return a.kubectl("-n pai-system get pods -l app.kubernetes.io/name=agent --field-selector spec.nodeName=" + node + " -o jsonpath='{.items[0].metadata.name}'")
}

// published returns the names of the devices that the agent has published for a node.
func (a *agents) published(node string) []string {
	a.t.Helper()
	return strings.Fields(a.kubectl("get resourceslices --field-selector spec.nodeName=" + node + " -o jsonpath='{.items[*].spec.devices[*].name}'"))
}

// containers returns the IDs of the pods' containers. An ID changes if its container is started again.
func (a *agents) containers() string {
	a.t.Helper()
	out := a.kubectl(`get pods a b -o jsonpath='{range .items[*]}{.status.containerStatuses[0].containerID} {end}'`)
	require.NotEmpty(a.t, strings.Fields(out))
	return out
}
