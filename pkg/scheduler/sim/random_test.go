package sim_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/sim"
)

// clusters are the configurations for random steps: racks with cells below the node, pinned cells, two GPU models.
var clusters = []string{`
physicalCluster:
  cellTypes:
    PAIR: {childCellType: V100, childCellNumber: 2}
    NODE: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
  - {cellType: RACK, cellChildren: [{cellAddress: a0}, {cellAddress: a1}]}
  - {cellType: RACK, cellChildren: [{cellAddress: b0}, {cellAddress: b1}]}
  - {cellType: RACK, cellChildren: [{cellAddress: c0}, {cellAddress: c1}]}
virtualClusters:
  A: {virtualCells: [{cellType: RACK, cellNumber: 1}, {cellType: RACK.NODE.PAIR, cellNumber: 1}]}
  B: {virtualCells: [{cellType: RACK.NODE, cellNumber: 3}]}
`, `
physicalCluster:
  cellTypes:
    PAIR: {childCellType: V100, childCellNumber: 2}
    NODE: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}
    K-NODE: {childCellType: K80, childCellNumber: 3, isNodeLevel: true}
  physicalCells:
  - {cellType: NODE, cellAddress: a0, pinnedCellId: PIN}
  - {cellType: NODE, cellAddress: a1, cellChildren: [{pinnedCellId: SMALL}, {}]}
  - {cellType: NODE, cellAddress: b0}
  - {cellType: K-NODE, cellAddress: c0}
  - {cellType: K-NODE, cellAddress: c1}
virtualClusters:
  A: {virtualCells: [{cellType: NODE, cellNumber: 1}, {cellType: K-NODE, cellNumber: 1}], pinnedCells: [{pinnedCellId: PIN}]}
  B: {virtualCells: [{cellType: NODE.PAIR, cellNumber: 1}, {cellType: K-NODE.K80, cellNumber: 2}], pinnedCells: [{pinnedCellId: SMALL}]}
`, `
physicalCluster:
  cellTypes:
    NODE: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
  - {cellType: NODE, cellAddress: a0}
  - {cellType: NODE, cellAddress: a1}
  - {cellType: NODE, cellAddress: b0}
virtualClusters:
  A: {virtualCells: [{cellType: NODE, cellNumber: 2}]}
  B: {virtualCells: [{cellType: NODE.V100, cellNumber: 3}]}
`}

// world makes random steps. It simulates a controller and an API server.
type world struct {
	*rand.Rand
	steps   []map[string]any
	gangs   int
	pods    []*worldPod
	cluster int
}

type worldPod struct {
	id, spec string
	// bound means that the last answer was bind. running means that this bind was accepted.
	bound, running bool
}

func (w *world) pick(list ...any) any { return list[w.IntN(len(list))] }

func (w *world) gang() {
	w.gangs++
	pods, each := 1+w.IntN(3), 1+w.IntN(4)
	spec := fmt.Sprintf("{virtualCluster: %v, priority: %v, lazyPreemptionEnable: %v, ignoreK8sSuggestedNodes: %v, leafCellNumber: %d, affinityGroup: {name: g%d, members: [{podNumber: %d, leafCellNumber: %d}]}",
		w.pick("A", "B"), w.pick(-1, -1, 0, 1, 5), w.IntN(3) == 0, w.IntN(4) > 0, each, w.gangs, pods, each)
	if w.cluster == 1 {
		spec += fmt.Sprint(w.pick("", "", ", pinnedCellId: PIN", ", pinnedCellId: SMALL", ", leafCellType: K80", ", leafCellType: V100"))
	}
	for i := range pods {
		w.pods = append(w.pods, &worldPod{id: fmt.Sprintf("g%d-%d", w.gangs, i), spec: spec + "}"})
	}
}

func (w *world) next(clusters int) (map[string]any, *worldPod) {
	switch n := w.IntN(100); {
	case n < 12 || len(w.pods) == 0:
		w.gang()
	case n < 18:
		return map[string]any{"op": w.pick("setNodeBad", "setNodeHealthy", "setNodeHealthy"), "node": w.pick("a0", "a1", "b0", "b1", "c0", "c1")}, nil
	case n < 21:
		step := map[string]any{"op": "start"}
		if w.IntN(3) == 0 && clusters > 1 {
			step["config"] = w.reconfigured()
		}
		return step, nil
	}
	p := w.pods[w.IntN(len(w.pods))]
	switch {
	case p.running:
		return map[string]any{"op": "deleteAllocatedPod", "pod": p.id}, p
	case p.bound:
		return map[string]any{"op": "addAllocatedPod", "pod": p.id}, p
	case w.IntN(12) == 0:
		return map[string]any{"op": "deleteUnallocatedPod", "pod": p.id, "podSchedulingSpec": p.spec}, p
	}
	step := map[string]any{"op": "schedule", "pod": p.id, "podSchedulingSpec": p.spec, "phase": w.pick("Filtering", "Filtering", "Preempting")}
	if w.IntN(5) == 0 {
		step["suggestedNodes"] = []string{"a0", "b0", "c0"}
	}
	return step, p
}

// reconfigured returns the cluster's configuration with random numbers of cells for the virtual clusters. No number increases.
func (w *world) reconfigured() string {
	text := clusters[w.cluster]
	return strings.NewReplacer("cellNumber: 3}", fmt.Sprintf("cellNumber: %d}", 1+w.IntN(3)), "cellNumber: 2}", fmt.Sprintf("cellNumber: %d}", 1+w.IntN(2))).Replace(text)
}

// learn updates the world with an answer.
func (w *world) learn(l *sim.Line, p *worldPod) {
	switch {
	case l.Op == "start":
		for _, q := range w.pods {
			q.bound = false
		}
	case p == nil:
	case l.Op == "schedule":
		for _, q := range w.pods {
			q.bound = false // another decision may have taken the pod's place
		}
		p.bound = l.Result == "bind" && p.wantsBind(w)
	case l.Op == "addAllocatedPod":
		p.bound, p.running = false, l.Result == sim.OK
	default:
		p.bound, p.running = false, false
	}
}

// wantsBind reports whether a bind counts. A bind of the preempting phase isn't accepted, because kube-scheduler filters again.
func (p *worldPod) wantsBind(w *world) bool { return w.steps[len(w.steps)-1]["phase"] != "Preempting" }

// TestRandomStepsKeepTheStateAndSurviveRestarts runs random, unusual steps. It checks the state after each step, and sometimes
// restarts the scheduler. After a restart, gangs must run in the same places. PAICTL_SIM_SEEDS is the number of seeds.
func TestRandomStepsKeepTheStateAndSurviveRestarts(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	if n, err := strconv.ParseUint(os.Getenv("PAICTL_SIM_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { randomSteps(t, seed, 400) })
	}
}

func randomSteps(t *testing.T, seed uint64, n int) {
	t.Helper()
	w := &world{Rand: rand.New(rand.NewPCG(seed, 4)), cluster: int(seed) % len(clusters)}
	r := sim.NewStepper("-", sim.ReplayOptions{Verify: true, ReadFile: os.ReadFile, Config: &sim.Source{Name: "random.yaml", Data: []byte(clusters[w.cluster])}})
	run := func(step map[string]any) *sim.Line {
		w.steps = append(w.steps, step)
		text, err := json.Marshal(step)
		require.NoError(t, err)
		l := r.Step(text)
		if l.Violation != "" || l.Result == sim.Failed {
			w.fail(t, seed, fmt.Sprintf("%s: %s%s", l.Result, l.Violation, l.Reason))
		}
		return l
	}
	run(map[string]any{"op": "start"})
	for range n {
		step, p := w.next(len(clusters))
		var before *sim.Line
		if step["op"] == "start" && step["config"] == nil {
			before = run(map[string]any{"op": "inspect"})
		}
		w.learn(run(step), p)
		if before != nil {
			was, is := allocated(asMap(t, before), asMap(t, run(map[string]any{"op": "inspect"})))
			if !slices.Equal(was, is) {
				w.fail(t, seed, "gangs changed in a restart:\n"+strings.Join(was, "\n")+"\n"+strings.Join(is, "\n"))
			}
		}
	}
}

// fail writes the steps to a file for "paictl scheduler replay", and fails the test.
func (w *world) fail(t *testing.T, seed uint64, message string) {
	t.Helper()
	if dir := os.Getenv("PAICTL_KEEP_STEPS"); dir != "" {
		w.steps[0]["config"] = clusters[w.cluster]
		b, _ := json.MarshalIndent(w.steps, "", " ")
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/steps-%d.json", dir, seed), b, 0o644))
	}
	t.Fatalf("seed %d, step %d (PAICTL_KEEP_STEPS=DIR keeps the steps): %s", seed, len(w.steps), message)
}

func asMap(t *testing.T, l *sim.Line) map[string]any {
	t.Helper()
	b, err := json.Marshal(l)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	return m
}
