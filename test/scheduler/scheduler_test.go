package books_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/test/scheduler/schedulertest"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) {
	code := kubetest.Wrap(m).Run()
	schedulertest.Clean()
	os.Exit(code)
}

// division is the configuration of kubetest's nodes with eight GPUs each. A owns two nodes, and B owns one.
const division = `physicalCluster:
  cellTypes:
    NODE: {childCellType: HALF, childCellNumber: 2, isNodeLevel: true}
    HALF: {childCellType: G, childCellNumber: 4}
  physicalCells:
    - {cellType: NODE, cellAddress: test-1}
    - {cellType: NODE, cellAddress: test-2}
    - {cellType: NODE, cellAddress: test-3}
virtualClusters:
  A:
    virtualCells: [{cellType: NODE, cellNumber: 2}]
  B:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
`

// stage is a real API server with simulated nodes. Each test has a separate namespace with a configuration.
type stage struct {
	t  *testing.T
	c  *kube.Cluster
	ns string
}

func newStage(t *testing.T, name string) *stage {
	t.Helper()
	tier.More(t, "a control plane for each test")
	s := &stage{t: t, c: kubetest.StartNodes(t), ns: name}
	schedulertest.Namespace(t, s.c.Client, name)
	schedulertest.Configure(t, s.c.Client, name, division)
	t.Cleanup(func() {
		zero := int64(0)
		// The context of the test has already ended. The pods must be deleted, because other tests use the same nodes.
		_ = s.pods().DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
	})
	return s
}

func (s *stage) pods() interface {
	List(context.Context, metav1.ListOptions) (*corev1.PodList, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
} {
	return s.c.Client.CoreV1().Pods(s.ns)
}

func (s *stage) gang(name, vc string, priority, pods, gpus int) *schedulertest.Gang {
	s.t.Helper()
	g := &schedulertest.Gang{Namespace: s.ns, Name: name, VC: vc, Priority: priority, Pods: pods, GPUs: gpus}
	require.NoError(s.t, g.Create(s.t.Context(), s.c.Client))
	return g
}

func (s *stage) bound(gangs ...*schedulertest.Gang) {
	s.t.Helper()
	for _, g := range gangs {
		schedulertest.Eventually(s.t, 2*time.Minute, func() error { return g.Bound(s.t.Context(), s.c.Client) })
	}
	list, err := s.pods().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	require.NoError(s.t, schedulertest.DoubleUse(list.Items))
}

// waits waits until a gang waits and the scheduler reports the reason.
func (s *stage) waits(p *schedulertest.Scheduler, group string) api.Why {
	s.t.Helper()
	var why api.Why
	schedulertest.Eventually(s.t, time.Minute, func() error {
		code, text, err := p.Get("/v1/why/" + group)
		if err != nil || code != 200 {
			return fmt.Errorf("%d %s %w", code, text, err)
		}
		if err := json.Unmarshal([]byte(text), &why); err != nil {
			return err
		}
		if why.State != api.Waiting || why.Pods[0].Reason == "" {
			return fmt.Errorf("it doesn't wait: %s", text)
		}
		return nil
	})
	return why
}

func (s *stage) eventReasons() map[string]int {
	list, err := s.c.Client.CoreV1().Events(s.ns).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	out := map[string]int{}
	for i := range list.Items {
		if list.Items[i].Source.Component == "pai-scheduler" {
			out[list.Items[i].Reason]++
		}
	}
	return out
}

func TestThePluginBindsGangs(t *testing.T) {
	s := newStage(t, "binds")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	train := s.gang("train", "A", 5, 2, 8)
	eval := s.gang("eval", "B", 5, 2, 2)
	s.bound(train, eval)
	list, err := s.pods().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		for _, key := range []string{annotation.IsolationKey, annotation.BindInfoKey, annotation.PlacementKey} {
			assert.NotEmpty(t, list.Items[i].Annotations[key], key)
		}
	}
	big := s.gang("big", "B", 5, 1, 8)
	why := s.waits(p, "big")
	assert.Equal(t, 1, why.Position)
	schedulertest.Eventually(t, time.Minute, func() error {
		if n := s.eventReasons()[api.ReasonWaiting]; n != 1 {
			return fmt.Errorf("%d events say that it waits", n)
		}
		return nil
	})
	for i := range eval.Pods {
		require.NoError(t, s.pods().Delete(t.Context(), eval.PodName(i), metav1.DeleteOptions{}))
	}
	s.bound(big)
}

// mixedDivision is the configuration of one node with eight GPUs, and two nodes with fifteen CPU cells each. A owns all of them.
const mixedDivision = `physicalCluster:
  skuTypes: {CPU: {cpu: 1}}
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 8, isNodeLevel: true}
    CPU-NODE: {childCellType: CPU, childCellNumber: 15, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: test-1}
    - {cellType: CPU-NODE, cellAddress: test-2}
    - {cellType: CPU-NODE, cellAddress: test-3}
virtualClusters:
  A:
    virtualCells: [{cellType: CPU-NODE, cellNumber: 2}]
  B:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
`

func TestThePluginBindsGangsToCPUCells(t *testing.T) {
	s := newStage(t, "processors")
	schedulertest.Configure(t, s.c.Client, s.ns, mixedDivision)
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	prep := &schedulertest.Gang{Namespace: s.ns, Name: "prep", VC: "A", Priority: 5, Pods: 4, GPUs: 6, CPU: "5500m", NoGPU: true, Extra: "leafCellType: CPU\n"}
	require.NoError(t, prep.Create(t.Context(), s.c.Client))
	schedulertest.Eventually(t, 2*time.Minute, func() error { return prep.Bound(t.Context(), s.c.Client) })
	s.bound(s.gang("train", "B", 5, 1, 8))
	list, err := s.pods().List(t.Context(), metav1.ListOptions{LabelSelector: "gang=prep"})
	require.NoError(t, err)
	nodes := map[string]int{}
	for i := range list.Items {
		nodes[list.Items[i].Spec.NodeName]++
		assert.NotContains(t, list.Items[i].Annotations, annotation.IsolationKey)
		assert.NotEmpty(t, list.Items[i].Annotations[annotation.PlacementKey])
	}
	assert.Equal(t, map[string]int{"test-2": 2, "test-3": 2}, nodes)

	p.Kill()
	again := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	more := &schedulertest.Gang{Namespace: s.ns, Name: "more", VC: "A", Priority: 5, Pods: 1, GPUs: 6, CPU: "5500m", NoGPU: true, Extra: "leafCellType: CPU\n"}
	require.NoError(t, more.Create(t.Context(), s.c.Client))
	why := s.waits(again, "more")
	assert.Equal(t, 6, why.Asks.CPUCells)
	assert.Contains(t, why.Sentence, "CPU cells", "what ran before the restart still has its cells")
	for i := range prep.Pods {
		require.NoError(t, s.pods().Delete(t.Context(), prep.PodName(i), metav1.DeleteOptions{}))
	}
	schedulertest.Eventually(t, 2*time.Minute, func() error { return more.Bound(t.Context(), s.c.Client) })
}

func TestASchedulerThatWasKilledKnowsEverything(t *testing.T) {
	s := newStage(t, "restarts")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	first := s.gang("first", "A", 5, 4, 4)
	s.bound(first)
	_, before, err := p.Get("/v1/inspect/clusterstatus")
	require.NoError(t, err)
	p.Kill()
	second := s.gang("second", "B", 5, 2, 4)
	again := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	s.bound(first, second)
	for i := range second.Pods {
		require.NoError(t, s.pods().Delete(t.Context(), second.PodName(i), metav1.DeleteOptions{}))
	}
	schedulertest.Eventually(t, time.Minute, func() error {
		if _, after, err := again.Get("/v1/inspect/clusterstatus"); err != nil || after != before {
			return fmt.Errorf("the cells differ: %w", err)
		}
		return nil
	})
}

func TestGuaranteedGangsStartWhereOpportunisticOnesFillTheCluster(t *testing.T) {
	s := newStage(t, "preempts")
	before := s.eventReasons() // where the tests run more than once
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	var opportunistic []*schedulertest.Gang
	for i := range 6 {
		opportunistic = append(opportunistic, s.gang(fmt.Sprintf("o%d", i), "B", -1, 1, 4))
	}
	s.bound(opportunistic...)
	train := s.gang("train", "A", 5, 2, 8)
	s.bound(train)
	list, err := s.pods().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, 4, "four gangs had to go, and no more")
	schedulertest.Eventually(t, time.Minute, func() error {
		reasons := s.eventReasons()
		if reasons[api.ReasonPreempted]-before[api.ReasonPreempted] != 4 || reasons[api.ReasonPreempting] == before[api.ReasonPreempting] {
			return fmt.Errorf("events say %v", reasons)
		}
		return nil
	})
}

// The processors, which kube-scheduler counts, are in use, too.
func TestGuaranteedGangsStartWhereProcessorsAreTakenToo(t *testing.T) {
	s := newStage(t, "processors")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	for name, value := range map[string]int32{"low": -10, "high": 100} {
		_, err := s.c.Client.SchedulingV1().PriorityClasses().Create(t.Context(), priorityClass(name, value), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	create := func(g *schedulertest.Gang, class string) *schedulertest.Gang {
		t.Helper()
		for i := range g.Pods {
			p := g.Pod(i)
			p.Spec.PriorityClassName = class
			_, err := s.c.Client.CoreV1().Pods(s.ns).Create(t.Context(), p, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		return g
	}
	for i := range 3 {
		s.bound(create(&schedulertest.Gang{Namespace: s.ns, Name: fmt.Sprintf("o%d", i), VC: "B", Priority: -1, Pods: 1, GPUs: 8, CPU: "14"}, "low"))
	}
	s.bound(create(&schedulertest.Gang{Namespace: s.ns, Name: "train", VC: "A", Priority: 5, Pods: 2, GPUs: 8, CPU: "14"}, "high"))
}

// Each node has free cells, but no node has free processors. So one gang must be preempted, and no other gang.
func TestAGuaranteedGangStartsWhereProcessorsAloneAreTaken(t *testing.T) {
	s := newStage(t, "only-processors")
	schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	create := func(g *schedulertest.Gang) *schedulertest.Gang {
		t.Helper()
		require.NoError(t, g.Create(t.Context(), s.c.Client))
		return g
	}
	var opportunistic []*schedulertest.Gang
	for i := range 3 {
		opportunistic = append(opportunistic, create(&schedulertest.Gang{Namespace: s.ns, Name: fmt.Sprintf("o%d", i), VC: "B", Priority: -1, Pods: 1, GPUs: 1, CPU: "14"}))
	}
	s.bound(opportunistic...)
	start := time.Now()
	s.bound(create(&schedulertest.Gang{Namespace: s.ns, Name: "train", VC: "A", Priority: 5, Pods: 1, GPUs: 1, CPU: "14"}))
	t.Logf("started after %s", time.Since(start))
	left := 0
	list, err := s.pods().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			left++
		}
	}
	assert.Equal(t, 3, left, "one gang had to go")
}

// Pods that the scheduler may not preempt use the processors of one node, so the gang goes to another node.
func TestAGangGoesWhereItsPodsCanRun(t *testing.T) {
	s := newStage(t, "elsewhere")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	s.bound(s.gang("first", "A", 5, 1, 1))
	list, err := s.pods().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	// Without the foreign pod, the next pod would be placed on the same node.
	foreign := (&schedulertest.Gang{Name: "foreign", Pods: 1, CPU: "15"}).Pod(0)
	foreign.Annotations, foreign.Spec.SchedulerName, foreign.Spec.NodeName = nil, "", list.Items[0].Spec.NodeName
	delete(foreign.Spec.Containers[0].Resources.Limits, annotation.EnableKey)
	_, err = s.c.Client.CoreV1().Pods(s.ns).Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	second := &schedulertest.Gang{Namespace: s.ns, Name: "second", VC: "A", Priority: 5, Pods: 1, GPUs: 1, CPU: "10"}
	require.NoError(t, second.Create(t.Context(), s.c.Client))
	schedulertest.Eventually(t, time.Minute, func() error { return second.Bound(t.Context(), s.c.Client) })
	code, text, err := p.Get("/v1/why/A/second")
	require.NoError(t, err)
	assert.Equal(t, 200, code)
	assert.NotContains(t, text, `"node":"`+foreign.Spec.NodeName+`"`)
}

func TestANewDivisionStartsWhatWaits(t *testing.T) {
	s := newStage(t, "divides")
	p := schedulertest.Start(t, s.c, schedulertest.Options{Name: "one", Namespace: s.ns})
	first := s.gang("first", "B", 5, 1, 8)
	s.bound(first)
	second := s.gang("second", "B", 5, 1, 8)
	s.waits(p, "second")
	schedulertest.Configure(t, s.c.Client, s.ns, strings.NewReplacer("cellNumber: 2}", "cellNumber: 1}", "cellNumber: 1}", "cellNumber: 2}").Replace(division))
	s.bound(second)
	_, text, err := p.Get("/metrics")
	require.NoError(t, err)
	assert.Contains(t, text, "pai_scheduler_config_generation 2")
}

// replicas starts two replicas, which elect a leader. If a process can't have a separate host name, it skips the test.
func (s *stage) replicas() (leader, standby *schedulertest.Scheduler) {
	s.t.Helper()
	if out, err := exec.CommandContext(s.t.Context(), "unshare", "--uts", "--map-root-user", "hostname", "x").CombinedOutput(); err != nil {
		s.t.Skipf("no host names of one's own: %v %s", err, out)
	}
	first := schedulertest.Start(s.t, s.c, schedulertest.Options{Name: "pod-one", Namespace: s.ns, Elect: true})
	s.leads(first)
	second := schedulertest.Start(s.t, s.c, schedulertest.Options{Name: "pod-two", Namespace: s.ns, Elect: true})
	schedulertest.Eventually(s.t, time.Minute, func() error {
		code, text, err := second.Get("/readyz")
		if err != nil || code != 200 {
			return fmt.Errorf("%d %s %w", code, text, err)
		}
		return nil
	})
	return first, second
}

func (s *stage) leads(p *schedulertest.Scheduler) {
	s.t.Helper()
	schedulertest.Eventually(s.t, time.Minute, func() error {
		_, text, err := p.Get("/metrics")
		if err == nil && !strings.Contains(text, "pai_scheduler_leader 1") {
			err = fmt.Errorf("it doesn't lead")
		}
		return err
	})
}

func TestTheOtherReplicaTakesOver(t *testing.T) {
	for name, tt := range map[string]struct {
		end   func(*schedulertest.Scheduler)
		limit time.Duration
	}{
		"when the leader is stopped": {(*schedulertest.Scheduler).Stop, 10 * time.Second},
		"when the leader is killed":  {(*schedulertest.Scheduler).Kill, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, strings.ReplaceAll(name, " ", "-"))
			leader, standby := s.replicas()
			first := s.gang("first", "A", 5, 2, 8)
			s.bound(first)
			_, text, err := standby.Get("/metrics")
			require.NoError(t, err)
			assert.Contains(t, text, "pai_scheduler_leader 0")
			start := time.Now()
			tt.end(leader)
			second := s.gang("second", "B", 5, 1, 8)
			s.bound(first, second)
			took := time.Since(start)
			t.Logf("taken over after %s", took)
			assert.Less(t, took, tt.limit+extra())
			s.leads(standby)
		})
	}
}

// extra returns the additional time that a busy machine may need.
func extra() time.Duration { return 30 * time.Second }

func priorityClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}
