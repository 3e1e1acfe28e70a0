package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// TestTheSchedulerSharesGPUsBetweenTwoTeams follows the main use of the scheduler, on four machines that simulate eight GPUs each. vision owns three
// of the machines, and nlp owns one.
func TestTheSchedulerSharesGPUsBetweenTwoTeams(t *testing.T) {
	g := newGPUs(t)
	g.divide(3, 1)
	workers := g.names[1:]

	t.Run("opportunistic work fills the cluster", func(t *testing.T) {
		for i := range workers {
			g.submit(gang{vc: "vision", name: fmt.Sprintf("idle%d", i), pods: 1, gpus: 8, priority: -1})
			g.runs(fmt.Sprintf("idle%d", i), 1)
		}
		assert.Equal(t, 32, g.virtualCluster("vision").Opportunistic)
		assert.Zero(t, g.virtualCluster("vision").Used)
	})
	t.Run("guaranteed work starts, and no more than it needs has to go", func(t *testing.T) {
		g.submit(gang{vc: "nlp", name: "train", pods: 1, gpus: 8, priority: 10})
		g.runs("train", 1)
		assert.Equal(t, []string{"idle0", "idle1", "idle2", "train"}, g.gangs(), "the youngest gang went")
		assert.Contains(t, g.events("idle3-0"), "makes room for the gang train of virtual cluster nlp")
		assert.Equal(t, 8, g.virtualCluster("nlp").Used)
	})
	t.Run("a gang gets all that its team owns, and nothing of the other's", func(t *testing.T) {
		g.submit(gang{vc: "vision", name: "big", pods: 3, gpus: 8, priority: 10})
		g.runs("big", 3)
		assert.Equal(t, []string{"big", "train"}, g.gangs())
		g.submit(gang{vc: "vision", name: "more", pods: 1, gpus: 1, priority: 10})
		g.waits("more")
		assert.Equal(t, []string{"big", "more", "train"}, g.gangs())
		g.remove("more")
	})
	t.Run("what can never be met is refused with its reason", func(t *testing.T) {
		g.submit(gang{vc: "nlp", name: "huge", pods: 1, gpus: 100, priority: 10})
		eventually(t, time.Minute, "it is refused", func() bool { return strings.Contains(g.events("huge-0"), "Refused") })
		g.remove("huge")
	})
	t.Run("only the scheduler says where a pod lies", func(t *testing.T) {
		annotate := "KUBECONFIG=/etc/kubernetes/admin.conf kubectl -n pai-jobs annotate --overwrite pod train-0 %s 2>&1 || true"
		for annotation, says := range map[string]string{
			"hivedscheduler.microsoft.com/pod-leaf-cell-isolation=0":               "are the scheduler's own",
			"hivedscheduler.microsoft.com/pod-scheduling-spec='leafCellNumber: 1'": "the request of a pod can't be changed",
		} {
			assert.Contains(t, g.on(g.names[0], fmt.Sprintf(annotate, annotation)), says)
		}
	})
	t.Run("a scheduler that is new knows everything", func(t *testing.T) {
		before := g.api("/v1/inspect/affinitygroups/")
		g.kubectl("-n pai-system delete pod -l app.kubernetes.io/name=scheduler")
		var after string
		eventually(t, time.Minute, "the new one leads", func() bool {
			after = g.api("/v1/inspect/affinitygroups/")
			return after != ""
		})
		assert.JSONEq(t, before, after)
		g.submit(gang{vc: "vision", name: "later", pods: 1, gpus: 8, priority: 10})
		g.waits("later")
		g.remove("later")
		assert.Equal(t, []string{"big", "train"}, g.gangs())
	})
	t.Run("a machine that dies turns bad, and gangs go elsewhere", g.survivesADeadMachine)
	t.Run("vc set moves a machine while everything runs", g.movesAMachine)
}

// survivesADeadMachine unplugs a machine of a gang. At its end, the gangs again and second of vision run.
func (g *gpus) survivesADeadMachine(t *testing.T) {
	dead := g.pods("big")[0].Node
	ok(t, "sandbox", "stop", "--dir", g.dir, "--unplug", dead)
	eventually(t, 3*time.Minute, "Kubernetes misses the machine", func() bool {
		return strings.Contains(g.kubectl("get nodes --no-headers "+dead), "NotReady")
	})
	// The pods are deleted as by a job controller that knows that the machine won't return.
	g.kubectl("-n pai-jobs delete pods -l job=big --force --grace-period=0")
	eventually(t, time.Minute, "its cell is bad", func() bool {
		v := g.virtualCluster("vision")
		return v.Bad == 8 && v.Free == 16
	})
	g.submit(gang{vc: "vision", name: "again", pods: 2, gpus: 8, priority: 10})
	g.runs("again", 2)
	for _, p := range g.pods("again") {
		assert.NotEqual(t, dead, p.Node)
	}

	g.submit(gang{vc: "vision", name: "second", pods: 1, gpus: 8, priority: 5})
	g.waits("second")
	var why struct{ Explanation struct{ Code string } }
	require.NoError(t, json.Unmarshal([]byte(g.api("/v1/why/vision/second")), &why))
	assert.Equal(t, "BadNodes", why.Explanation.Code)

	ok(t, "sandbox", "start", "--dir", g.dir, dead)
	g.runs("second", 1)
	assert.Equal(t, dead, g.pods("second")[0].Node)
}

// movesAMachine moves a machine from vision to nlp. It begins while vision uses all of its machines.
func (g *gpus) movesAMachine(t *testing.T) {
	set := []string{"vc", "set", "nlp", "--cells", g.cellType + "=2", "--take-from", "vision"}
	dry := ok(t, g.args(append(set, "--dry-run")...)...)
	assert.Contains(t, dry.stdout, "vision/second (8 GPUs of ann) loses its guarantee", "the lower priority of the two")
	assert.NotContains(t, dry.stdout, "vision/again")
	assert.Equal(t, 8, g.virtualCluster("nlp").Guaranteed, "a dry run changes nothing")

	before, revision := g.schedulerPods(), g.revisions()["cluster-configuration"]
	done := ok(t, g.args(append(set, "--yes", "-m", "nlp grows")...)...)
	assert.Contains(t, done.stderr, "the scheduler uses it")
	assert.Equal(t, before, g.schedulerPods(), "nothing was restarted")
	assert.Equal(t, revision, g.revisions()["cluster-configuration"])
	assert.Equal(t, 16, g.virtualCluster("nlp").Guaranteed)
	assert.Equal(t, 8, g.virtualCluster("vision").Opportunistic)
	assert.Equal(t, []string{"again", "second", "train"}, g.gangs(), "nobody was killed for it")
	assert.Contains(t, ok(t, g.args("config", "history")...).stdout, "nlp grows")

	g.submit(gang{vc: "nlp", name: "grown", pods: 1, gpus: 8, priority: 0})
	g.runs("grown", 1)
	assert.Equal(t, []string{"again", "grown", "train"}, g.gangs(), "who lost the guarantee makes room")

	tooMuch := run(t, g.args("vc", "set", "nlp", "--cells", g.cellType+"=9", "--yes")...)
	assert.Equal(t, 1, tooMuch.code, "%s", tooMuch)
	assert.Contains(t, tooMuch.stderr, "services-configuration.yaml:")
	assert.Equal(t, 16, g.virtualCluster("nlp").Guaranteed)
}

// gpus is a cluster that runs the scheduler. It has one master, and workers with GPUs.
type gpus struct {
	*services
	cellType string // the type of a worker
	pause    string // an image that every machine has
}

func newGPUs(t testing.TB) *gpus {
	t.Helper()
	s := sharedServices(t)
	g := &gpus{services: s}
	var layout struct {
		Machines []struct {
			SKU string `yaml:"machine-type"`
		} `yaml:"machine-list"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join(s.cluster, "layout.yaml"))), &layout))
	g.cellType = layout.Machines[1].SKU + "-NODE"
	var manifest struct {
		Artifacts []struct{ Name, Image string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join(bundle, "manifest.yaml"))), &manifest))
	for _, a := range manifest.Artifacts {
		if a.Name == "pause" {
			g.pause = a.Image
		}
	}
	require.NotEmpty(t, g.pause)
	return g
}

// divide assigns machines to vision and nlp, and starts the scheduler.
func (g *gpus) divide(vision, nlp int) {
	g.t.Helper()
	owns := func(n int) map[string]any {
		return map[string]any{"virtualCells": []any{map[string]any{"cellType": g.cellType, "cellNumber": n}}}
	}
	// The test creates the pods of users itself, so its account must be trusted.
	g.set("scheduler", map[string]any{"virtualClusters": map[string]any{"vision": owns(vision), "nlp": owns(nlp)},
		"admission": map[string]any{"trustedAccounts": []any{"kubernetes-admin"}}})
	g.push()
	g.start(0, "-n", "scheduler")
	eventually(g.t, time.Minute, "the scheduler leads", func() bool { return g.api("/v1/virtualclusters") != "" })
}

// gang is a group of pods that start together.
type gang struct {
	vc, name             string
	pods, gpus, priority int
}

func (g *gpus) submit(j gang) {
	g.t.Helper()
	var text strings.Builder
	for i := range j.pods {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s-%[6]d
  namespace: pai-jobs
  labels: {job: %[1]s, userName: ann}
  annotations:
    hivedscheduler.microsoft.com/pod-scheduling-spec: |
      {virtualCluster: %[2]s, priority: %[5]d, leafCellNumber: %[4]d, affinityGroup: {name: %[1]s, members: [{podNumber: %[3]d, leafCellNumber: %[4]d}]}}
spec:
  schedulerName: pai-scheduler
  restartPolicy: Never
  terminationGracePeriodSeconds: 2
  containers:
    - name: main
      image: %[7]s
      imagePullPolicy: Never
      env:
        - {name: NVIDIA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['hivedscheduler.microsoft.com/pod-leaf-cell-isolation']"}}}
      resources: {limits: {hivedscheduler.microsoft.com/pod-scheduling-enable: 1, cpu: 10m, memory: 16Mi}}
`, j.name, j.vc, j.pods, j.gpus, j.priority, i, g.pause)
	}
	g.on(g.names[0], "KUBECONFIG=/etc/kubernetes/admin.conf kubectl apply -f - 2>&1 <<'END'\n"+text.String()+"END\n")
}

func (g *gpus) remove(name string) {
	g.t.Helper()
	g.kubectl("-n pai-jobs delete pods -l job=" + name)
}

// pod holds the fields of a gang's pod that the tests need.
type pod struct{ Name, Gang, Node, Phase, Devices string }

// pods returns the pods that aren't being deleted. If gang isn't "", it returns only the pods of that gang.
func (g *gpus) pods(gang string) []pod {
	g.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct {
				Name, DeletionTimestamp string
				Labels, Annotations     map[string]string
			}
			Spec   struct{ NodeName string }
			Status struct{ Phase string }
		}
	}
	require.NoError(g.t, json.Unmarshal([]byte(g.kubectl("-n pai-jobs get pods -o json")), &list))
	var out []pod
	for _, p := range list.Items {
		if p.Metadata.DeletionTimestamp == "" && (gang == "" || p.Metadata.Labels["job"] == gang) {
			out = append(out, pod{p.Metadata.Name, p.Metadata.Labels["job"], p.Spec.NodeName, p.Status.Phase, p.Metadata.Annotations["hivedscheduler.microsoft.com/pod-leaf-cell-isolation"]})
		}
	}
	return out
}

// gangs returns the names of all gangs with pods.
func (g *gpus) gangs() []string {
	var out []string
	for _, p := range g.pods("") {
		out = append(out, p.Gang)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// runs waits until all n pods of a gang run, and checks that no GPU has two users. If the pods don't run, it logs their state.
func (g *gpus) runs(gang string, n int) {
	g.t.Helper()
	started := false
	defer func() {
		if !started {
			g.t.Logf("%s\n%s\n%s", g.kubectl("-n pai-jobs describe pods -l job="+gang+" || true"), g.kubectl("get nodes"),
				g.kubectl("-n pai-system logs --tail=50 -l app.kubernetes.io/name=scheduler --all-containers || true"))
		}
	}()
	eventually(g.t, 3*time.Minute, gang+" runs", func() bool {
		running := 0
		for _, p := range g.pods(gang) {
			if p.Phase == "Running" && p.Devices != "" {
				running++
			}
		}
		return running == n
	})
	started = true
	users := map[string]string{}
	for _, p := range g.pods("") {
		for device := range strings.SplitSeq(p.Devices, ",") {
			if p.Devices == "" {
				break
			}
			at := p.Node + "/" + device
			assert.Empty(g.t, users[at], "%s has two users", at)
			users[at] = p.Name
		}
	}
}

// waits waits until an event reports that a gang waits, and checks that its pods are on no machine.
func (g *gpus) waits(gang string) {
	g.t.Helper()
	eventually(g.t, time.Minute, gang+" waits", func() bool { return strings.Contains(g.events(gang+"-0"), "WaitingCells") })
	for _, p := range g.pods(gang) {
		assert.Empty(g.t, p.Node)
	}
}

// events returns the events of a pod, with their reasons and messages.
func (g *gpus) events(name string) string {
	return g.kubectl("-n pai-jobs get events --field-selector involvedObject.name=" + name + ` -o jsonpath='{range .items[*]}{.reason}: {.message}{"\n"}{end}'`)
}

// api sends a request to the scheduler, and returns the response. It returns "" if the scheduler doesn't respond.
func (g *gpus) api(path string) string { return string(g.ask("scheduler:9096", path)) }

// virtualCluster returns the numbers of a virtual cluster in "vc list".
func (g *gpus) virtualCluster(name string) (out struct{ Guaranteed, Used, Opportunistic, Free, Bad int }) {
	g.t.Helper()
	r := ok(g.t, g.args("vc", "list", "-o", "json")...)
	var all struct {
		Running bool
		Items   []struct {
			Name                                       string
			Guaranteed, Used, Opportunistic, Free, Bad int
		}
	}
	require.NoError(g.t, json.Unmarshal([]byte(r.stdout), &all), "%s", r)
	require.True(g.t, all.Running, "%s", r)
	for _, v := range all.Items {
		if v.Name == name {
			out.Guaranteed, out.Used, out.Opportunistic, out.Free, out.Bad = v.Guaranteed, v.Used, v.Opportunistic, v.Free, v.Bad
			return out
		}
	}
	g.t.Fatalf("there is no virtual cluster %s: %s", name, r)
	return out
}

// schedulerPods returns the pods of the scheduler, with the numbers of restarts of their containers.
func (g *gpus) schedulerPods() string {
	return g.kubectl(`-n pai-system get pods -l app.kubernetes.io/name=scheduler -o jsonpath='{range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}'`)
}
