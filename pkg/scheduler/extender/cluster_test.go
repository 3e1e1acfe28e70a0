package extender_test

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
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/extender/extendertest"
)

func TestMain(m *testing.M) {
	extendertest.Main()
	os.Exit(kubetest.Wrap(m).Run())
}

// division is eight GPUs on each of kubetest's nodes; A owns two nodes, B one.
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

// stage is a real API server, simulated nodes, and a namespace of the test's own with a configuration.
type stage struct {
	t  *testing.T
	c  *kube.Cluster
	ns string
}

func newStage(t *testing.T, name string) *stage {
	t.Helper()
	if testing.Short() {
		t.Skip("a control plane for each test: not with -short")
	}
	s := &stage{t: t, c: kubetest.StartNodes(t), ns: name}
	extendertest.Namespace(t, s.c.Client, name)
	extendertest.Configure(t, s.c.Client, name, division)
	t.Cleanup(func() {
		zero := int64(0)
		// The context of the test has ended. Others use the same nodes.
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

func (s *stage) gang(name, vc string, priority, pods, gpus int) *extendertest.Gang {
	s.t.Helper()
	g := &extendertest.Gang{Namespace: s.ns, Name: name, VC: vc, Priority: priority, Pods: pods, GPUs: gpus}
	require.NoError(s.t, g.Create(s.t.Context(), s.c.Client))
	return g
}

func (s *stage) bound(gangs ...*extendertest.Gang) {
	s.t.Helper()
	for _, g := range gangs {
		extendertest.Eventually(s.t, 2*time.Minute, func() error { return g.Bound(s.t.Context(), s.c.Client) })
	}
	list, err := s.pods().List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	require.NoError(s.t, extendertest.DoubleUse(list.Items))
}

// waits waits until a gang waits and the scheduler has said so.
func (s *stage) waits(p *extendertest.Pair, group string) api.Why {
	s.t.Helper()
	var why api.Why
	extendertest.Eventually(s.t, time.Minute, func() error {
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

func TestAStockKubeSchedulerBindsGangs(t *testing.T) {
	s := newStage(t, "binds")
	p := extendertest.Start(t, s.c, extendertest.Options{Name: "one", Namespace: s.ns})
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
	extendertest.Eventually(t, time.Minute, func() error {
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

// mixedDivision is one node of eight GPUs, and two of fifteen CPU cells, which A owns.
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

func TestAStockKubeSchedulerBindsGangsToCPUCells(t *testing.T) {
	s := newStage(t, "processors")
	extendertest.Configure(t, s.c.Client, s.ns, mixedDivision)
	p := extendertest.Start(t, s.c, extendertest.Options{Name: "one", Namespace: s.ns})
	prep := &extendertest.Gang{Namespace: s.ns, Name: "prep", VC: "A", Priority: 5, Pods: 4, GPUs: 6, CPU: "5500m", NoGPU: true, Extra: "leafCellType: CPU\n"}
	require.NoError(t, prep.Create(t.Context(), s.c.Client))
	extendertest.Eventually(t, 2*time.Minute, func() error { return prep.Bound(t.Context(), s.c.Client) })
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
	again := extendertest.Start(t, s.c, extendertest.Options{Name: "one", Namespace: s.ns})
	more := &extendertest.Gang{Namespace: s.ns, Name: "more", VC: "A", Priority: 5, Pods: 1, GPUs: 6, CPU: "5500m", NoGPU: true, Extra: "leafCellType: CPU\n"}
	require.NoError(t, more.Create(t.Context(), s.c.Client))
	why := s.waits(again, "more")
	assert.Equal(t, 6, why.Asks.CPUCells)
	assert.Contains(t, why.Sentence, "CPU cells", "what ran before the restart still has its cells")
	for i := range prep.Pods {
		require.NoError(t, s.pods().Delete(t.Context(), prep.PodName(i), metav1.DeleteOptions{}))
	}
	extendertest.Eventually(t, 2*time.Minute, func() error { return more.Bound(t.Context(), s.c.Client) })
}

func TestAnExtenderThatWasKilledKnowsEverything(t *testing.T) {
	s := newStage(t, "restarts")
	p := extendertest.Start(t, s.c, extendertest.Options{Name: "one", Namespace: s.ns})
	first := s.gang("first", "A", 5, 4, 4)
	s.bound(first)
	_, before, err := p.Get("/v1/inspect/clusterstatus")
	require.NoError(t, err)
	p.Kill()
	second := s.gang("second", "B", 5, 2, 4)
	again := extendertest.Start(t, s.c, extendertest.Options{Name: "one", Namespace: s.ns})
	s.bound(first, second)
	for i := range second.Pods {
		require.NoError(t, s.pods().Delete(t.Context(), second.PodName(i), metav1.DeleteOptions{}))
	}
	extendertest.Eventually(t, time.Minute, func() error {
		if _, after, err := again.Get("/v1/inspect/clusterstatus"); err != nil || after != before {
			return fmt.Errorf("the cells differ: %w", err)
		}
		return nil
	})
}

func TestGuaranteedGangsStartWhereOpportunisticOnesFillTheCluster(t *testing.T) {
	s := newStage(t, "preempts")
	before := s.eventReasons() // where the tests run more than once
	extendertest.Start(t, s.c, extendertest.Options{Name: "one", Namespace: s.ns})
	var opportunistic []*extendertest.Gang
	for i := range 6 {
		opportunistic = append(opportunistic, s.gang(fmt.Sprintf("o%d", i), "B", -1, 1, 4))
	}
	s.bound(opportunistic...)
	train := s.gang("train", "A", 5, 2, 8)
	s.bound(train)
	list, err := s.pods().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, 4, "four gangs had to go, and no more")
	extendertest.Eventually(t, time.Minute, func() error {
		reasons := s.eventReasons()
		if reasons[api.ReasonPreempted]-before[api.ReasonPreempted] != 4 || reasons[api.ReasonPreempting] == before[api.ReasonPreempting] {
			return fmt.Errorf("events say %v", reasons)
		}
		return nil
	})
}

// Processors, which kube-scheduler counts, are short as well: it never asks for a node then, only for victims.
func TestGuaranteedGangsStartWhereProcessorsAreTakenToo(t *testing.T) {
	s := newStage(t, "processors")
	extendertest.Start(t, s.c, extendertest.Options{Name: "one", Namespace: s.ns})
	for name, value := range map[string]int32{"low": -10, "high": 100} {
		_, err := s.c.Client.SchedulingV1().PriorityClasses().Create(t.Context(), priorityClass(name, value), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	create := func(g *extendertest.Gang, class string) *extendertest.Gang {
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
		s.bound(create(&extendertest.Gang{Namespace: s.ns, Name: fmt.Sprintf("o%d", i), VC: "B", Priority: -1, Pods: 1, GPUs: 8, CPU: "14"}, "low"))
	}
	s.bound(create(&extendertest.Gang{Namespace: s.ns, Name: "train", VC: "A", Priority: 5, Pods: 2, GPUs: 8, CPU: "14"}, "high"))
}

func TestANewDivisionStartsWhatWaits(t *testing.T) {
	s := newStage(t, "divides")
	p := extendertest.Start(t, s.c, extendertest.Options{Name: "one", Namespace: s.ns})
	first := s.gang("first", "B", 5, 1, 8)
	s.bound(first)
	second := s.gang("second", "B", 5, 1, 8)
	s.waits(p, "second")
	extendertest.Configure(t, s.c.Client, s.ns, strings.NewReplacer("cellNumber: 2}", "cellNumber: 1}", "cellNumber: 1}", "cellNumber: 2}").Replace(division))
	s.bound(second)
	_, text, err := p.Get("/metrics")
	require.NoError(t, err)
	assert.Contains(t, text, "pai_scheduler_config_generation 2")
}

// replicas starts two pairs that elect one of them. It skips where a host name can't be had.
func (s *stage) replicas() (leader, standby *extendertest.Pair) {
	s.t.Helper()
	if out, err := exec.CommandContext(s.t.Context(), "unshare", "--uts", "--map-root-user", "hostname", "x").CombinedOutput(); err != nil {
		s.t.Skipf("no host names of one's own: %v %s", err, out)
	}
	first := extendertest.Start(s.t, s.c, extendertest.Options{Name: "pod-one", Namespace: s.ns, Elect: true})
	s.leads(first)
	second := extendertest.Start(s.t, s.c, extendertest.Options{Name: "pod-two", Namespace: s.ns, Elect: true})
	extendertest.Eventually(s.t, time.Minute, func() error {
		code, text, err := second.Get("/readyz")
		if err != nil || code != 200 {
			return fmt.Errorf("%d %s %w", code, text, err)
		}
		return nil
	})
	return first, second
}

func (s *stage) leads(p *extendertest.Pair) {
	s.t.Helper()
	extendertest.Eventually(s.t, time.Minute, func() error {
		_, text, err := p.Get("/metrics")
		if err == nil && !strings.Contains(text, "pai_scheduler_leader 1") {
			err = fmt.Errorf("it doesn't lead")
		}
		return err
	})
}

func TestTheOtherReplicaTakesOver(t *testing.T) {
	for name, tt := range map[string]struct {
		end   func(*extendertest.Pair)
		limit time.Duration
	}{
		"when the leader is stopped": {(*extendertest.Pair).Stop, 10 * time.Second},
		"when the leader is killed":  {(*extendertest.Pair).Kill, 15 * time.Second},
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

// extra is what a machine that does other work besides may take longer.
func extra() time.Duration { return 30 * time.Second }

func TestAnExtenderWhoseNeighbourIsNotElectedDoesNotAct(t *testing.T) {
	s := newStage(t, "neighbours")
	leader, standby := s.replicas()
	standby.KillScheduler()
	train := s.gang("train", "A", 5, 2, 8)
	s.bound(train)
	leader.KillExtender()
	more := s.gang("more", "B", 5, 1, 8)
	_, text, err := standby.Get("/metrics")
	require.NoError(t, err)
	assert.Contains(t, text, "pai_scheduler_leader 0")
	extendertest.Eventually(t, time.Minute, func() error { return unscheduled(t, s.c.Client, more) })
}

// unscheduled waits until kube-scheduler has failed on a pod.
func unscheduled(t *testing.T, client kubernetes.Interface, g *extendertest.Gang) error {
	p, err := client.CoreV1().Pods(g.Namespace).Get(t.Context(), g.PodName(0), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return nil
		}
	}
	return fmt.Errorf("it was not tried: %v", p.Status.Conditions)
}

func priorityClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}
