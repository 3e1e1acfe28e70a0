package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

func TestAPodIsFilteredAndBoundWithAnnotations(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	got := c.filter(p)
	require.Len(t, got.NodeNames, 1)
	assert.Equal(t, api.Binding, c.state(p))
	assert.Equal(t, got, c.filter(p), "the same node again")
	assert.Equal(t, "{}", c.bind(p, got.NodeNames[0]))
	c.wait(p, api.Bound)
	bound := c.pod(p)
	assert.Equal(t, got.NodeNames[0], bound.Spec.NodeName)
	assert.Equal(t, "0,1", bound.Annotations[annotation.IsolationKey])
	assert.Contains(t, bound.Annotations[annotation.BindInfoKey], "affinityGroupBindInfo")
	assert.NotEmpty(t, bound.Annotations[annotation.PlacementKey])
	assert.Equal(t, "{}", c.bind(p, got.NodeNames[0]), "a repeated bind changes nothing")
	assert.Contains(t, c.filter(p).Error, "bound already")
}

func TestAGangLiesTogetherAndItsSecondPodFindsItsPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	one := c.run(newPod("p1", spec("A", 5, "g:2:2")))
	two := c.run(newPod("p2", spec("A", 5, "g:2:2")))
	assert.ElementsMatch(t, []string{"a0:0,1", "a1:0,1"}, []string{gpus(one), gpus(two)})
	third := c.create(newPod("p3", spec("A", 5, "g:2:2")))
	assert.Contains(t, c.filter(third).Error, "hivedscheduler: User Error: ", "the gang is complete")
}

func TestAPodWaitsAndIsToldWhy(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("p1", spec("B", 5, "g1:1:2")))
	p := c.create(newPod("p2", spec("B", 5, "g2:1:2")))
	got := c.filter(p)
	assert.Empty(t, got.Error)
	assert.Nil(t, got.NodeNames)
	require.Contains(t, got.FailedNodes, "hivedscheduler")
	assert.NotEmpty(t, got.FailedNodes["hivedscheduler"])
	c.filter(p)
	said := c.said()
	require.Len(t, said, 1, "one event for one reason")
	assert.Contains(t, said[0], "Normal WaitingForCells ")
}

func TestARequestThatCannotBeReadIsRefused(t *testing.T) {
	c := newCluster(t, twoTeams)
	for name, text := range map[string]string{
		"no-annotation":   "",
		"no-yaml":         "{{",
		"unknown-vc":      spec("C", 1, "g:1:1"),
		"high-priority":   spec("A", 1001, "g:1:1"),
		"no-gpus":         spec("A", 1, "g:1:0"),
		"hundred-on-node": spec("A", 1, "h:1:100"),
	} {
		t.Run(name, func(t *testing.T) {
			p := c.create(newPod(name, text))
			got := c.filter(p)
			assert.Contains(t, got.Error, "hivedscheduler: User Error: ")
			assert.Equal(t, api.Waiting, c.state(p))
			c.filter(p)
			said := c.said()
			require.Len(t, said, 1)
			assert.Contains(t, said[0], "Warning Refused ")
		})
	}
}

func TestACorrectedRequestIsReadAgain(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", "virtualCluster: ["))
	require.NotEmpty(t, c.filter(p).Error)
	p.Annotations[annotation.SpecKey] = spec("A", 1, "g:1:1")
	_, err := c.client.CoreV1().Pods("jobs").Update(t.Context(), p, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually(func() bool { return len(c.filter(p).NodeNames) == 1 })
}

func TestQuestionsThatMeanNothingAreUserErrors(t *testing.T) {
	c := newCluster(t, twoTeams)
	waiting := c.create(newPod("waiting", spec("A", 5, "g:1:2")))
	stranger := newPod("stranger", spec("A", 5, "x:1:1"))
	bindOf := func(p *corev1.Pod, node string) map[string]any {
		return map[string]any{"PodName": p.Name, "PodNamespace": p.Namespace, "PodUID": p.UID, "Node": node}
	}
	for name, tt := range map[string]struct {
		verb string
		body any
		code int
		want string
	}{
		"filter without a pod":              {"filter", map[string]any{"NodeNames": []string{"a0"}}, 200, `{"Error":"hivedscheduler: User Error: the field Pod is empty"}`},
		"filter without names":              {"filter", map[string]any{"Pod": waiting}, 200, "nodeCacheCapable"},
		"filter of a pod nobody knows":      {"filter", map[string]any{"Pod": stranger, "NodeNames": []string{}}, 200, "User Error: the pod jobs/stranger (uid-stranger) is not known"},
		"filter with names that are none":   {"filter", map[string]any{"Pod": waiting, "NodeNames": "a0"}, 400, "User Error: the request can't be read"},
		"filter of nothing":                 {"filter", "", 400, "User Error: the request can't be read"},
		"bind without a node":               {"bind", bindOf(waiting, ""), 200, `{"Error":"hivedscheduler: User Error: one of`},
		"bind of a pod without a place":     {"bind", bindOf(waiting, "a0"), 200, "has no place: its state is Waiting"},
		"bind of a pod nobody knows":        {"bind", bindOf(stranger, "a0"), 200, "is not known"},
		"preempt without a pod":             {"preempt", map[string]any{}, 400, `"hivedscheduler: User Error: the field Pod is empty"`},
		"preempt for a pod nobody knows":    {"preempt", map[string]any{"Pod": stranger}, 400, `"hivedscheduler: User Error: the pod jobs/stranger`},
		"preempt with a malformed question": {"preempt", "[]", 400, "User Error: the request can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := c.ask(http.MethodPost, "/v1/extender/"+tt.verb, tt.body)
			assert.Equal(t, tt.code, code)
			assert.Contains(t, text, tt.want)
		})
	}
}

func TestABindToAnotherNodeThanChosenIsRefused(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 5, "g:1:2")))
	node := c.filter(p).NodeNames[0]
	other := "a0"
	if node == other {
		other = "a1"
	}
	assert.Contains(t, c.bind(p, other), "has its place on "+node+", not on "+other)
	assert.Equal(t, "{}", c.bind(p, node))
}

func TestABindingThatFailsKeepsThePlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	fail := true
	c.client.PrependReactor("create", "pods/binding", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fail, nil, errors.New("no storage")
	})
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	node := c.filter(p).NodeNames[0]
	assert.Contains(t, c.bind(p, node), "Platform Error: bind jobs/p to "+node+": no storage")
	assert.Equal(t, api.Binding, c.state(p))
	fail = false
	assert.Equal(t, []string{node}, c.filter(p).NodeNames)
	assert.Equal(t, "{}", c.bind(p, node))
}

func TestABindingWhoseAnswerWasLostIsDone(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	node := c.filter(p).NodeNames[0]
	b, err := c.e.binding(p.UID, node)
	require.NoError(t, err)
	require.NoError(t, c.e.post(t.Context(), b))
	require.NoError(t, c.e.post(t.Context(), b), "the second finds it bound")
}

func TestAPodThatIsAskedAboutAgainAndAgainIsBoundAnyway(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	for range 3 {
		c.filter(p)
		assert.Equal(t, api.Binding, c.state(p))
	}
	c.filter(p)
	c.wait(p, api.Bound)
	assert.NotEmpty(t, c.pod(p).Spec.NodeName)
}

func TestTheThresholdOfForcedBindingsIsConfigured(t *testing.T) {
	c := newCluster(t, "forcePodBindThreshold: 1\n"+twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	c.filter(p)
	c.filter(p)
	c.wait(p, api.Bound)
}

func TestAPodWhoseNodeIsNotOfferedIsBoundAnyway(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	node := c.filter(p).NodeNames[0]
	c.filter(p, "b1")
	c.wait(p, api.Bound)
	assert.Equal(t, node, c.pod(p).Spec.NodeName)
}

func TestOnlyOfferedNodesAreUsedWhereThePodWantsThat(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("B", 5, "g:1:2", "ignoreK8sSuggestedNodes: false\n")))
	got := c.filter(p, "b1")
	assert.Equal(t, []string{"b1"}, got.NodeNames)
	q := c.create(newPod("q", spec("A", 5, "h:2:2", "ignoreK8sSuggestedNodes: false\n")))
	assert.Contains(t, c.filter(q, "a0").FailedNodes, waitKey)
}

func TestAPodThatTheInformerHasNotSeenIsLookedUp(t *testing.T) {
	c := newCluster(t, twoTeams)
	p := c.create(newPod("p", spec("A", 5, "g:1:2")))
	c.e.mu.Lock()
	c.e.state.remove(c.e.state.pods[p.UID])
	c.e.mu.Unlock()
	assert.Len(t, c.filter(p).NodeNames, 1)
}

func TestAWaitingPodHoldsUpTheNextWhereThatIsConfigured(t *testing.T) {
	c := newCluster(t, "waitingPodSchedulingBlockMilliSec: 40\n"+twoTeams)
	c.run(newPod("p1", spec("B", 5, "g1:1:2")))
	p := c.create(newPod("p2", spec("B", 5, "g2:1:2")))
	start := time.Now()
	c.filter(p)
	assert.GreaterOrEqual(t, time.Since(start), 40*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pause(ctx, time.Hour)
}

func TestAReplicaThatDoesNotLeadAnswersNothing(t *testing.T) {
	c := prepare(t, twoTeams)
	opts := testOptions
	opts.Lease = "pai-scheduler"
	c.start(opts)
	p := newPod("p", spec("A", 5, "g:1:2"))
	_, text := c.ask(http.MethodPost, "/v1/extender/filter", map[string]any{"Pod": p, "NodeNames": []string{}})
	assert.Contains(t, text, "Platform Error: this replica doesn't lead")
	code, _ := c.ask(http.MethodPost, "/v1/extender/preempt", map[string]any{"Pod": p})
	assert.Equal(t, http.StatusServiceUnavailable, code)
	code, _ = c.ask(http.MethodGet, "/v1/queue", nil)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	code, _ = c.ask(http.MethodGet, "/readyz", nil)
	assert.Equal(t, http.StatusOK, code, "it could lead")
}

func TestABugEndsOneDecisionAndNoMore(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("p", spec("B", 5, "g:1:2")))
	q := c.create(newPod("q", spec("A", 5, "h:1:2")))
	c.e.mu.Lock()
	c.e.state.core = nil
	c.e.mu.Unlock()
	code, text := c.ask(http.MethodPost, "/v1/extender/filter", map[string]any{"Pod": q, "NodeNames": []string{"a0"}})
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Contains(t, text, "Platform Error: a bug of the scheduler")
	assert.Len(t, c.filter(q).NodeNames, 1, "the state was rebuilt")
	var got groups
	c.get("/v1/inspect/affinitygroups/", &got)
	assert.Len(t, got.Items, 2)
	_, metrics := c.ask(http.MethodGet, "/metrics", nil)
	assert.Contains(t, metrics, "pai_scheduler_bugs_total 1")
}

// BenchmarkFilter is the work of the extender for one pod in a cluster of 1024 nodes, without the network: the
// question decoded, decided, and answered.
func BenchmarkFilter(b *testing.B) {
	var yaml strings.Builder
	var names []string
	yaml.WriteString("physicalCluster:\n  cellTypes:\n    NODE: {childCellType: G, childCellNumber: 8, isNodeLevel: true}\n  physicalCells:\n")
	for i := range 1024 {
		names = append(names, fmt.Sprintf("node-%d", i))
		fmt.Fprintf(&yaml, "    - {cellType: NODE, cellAddress: node-%d}\n", i)
	}
	yaml.WriteString("virtualClusters:\n  A: {virtualCells: [{cellType: NODE, cellNumber: 1024}]}\n")
	config, findings := parseConfiguration("f", yaml.String())
	require.Empty(b, findings.Errors())
	e := New(fake.NewClientset(), testOptions, slog.New(slog.DiscardHandler), &record.FakeRecorder{}, time.Now)
	p := newPod("p", spec("A", 5, "g:1:2"))
	question, err := json.Marshal(map[string]any{"Pod": p, "NodeNames": names})
	require.NoError(b, err)
	s, err := e.newState(config, nil)
	require.NoError(b, err)
	for _, name := range names {
		s.reconcileNode(name, readyNode(name))
	}
	e.state, e.term, e.active = s, "alone", config
	verbs := e.Verbs()
	b.ReportAllocs()
	for b.Loop() {
		s.reconcile("jobs/p", p)
		w := httptest.NewRecorder()
		verbs.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/extender/filter", bytes.NewReader(question)))
		if !strings.Contains(w.Body.String(), `"NodeNames":["node-`) {
			b.Fatal(w.Body.String())
		}
		s.reconcile("jobs/p", nil)
	}
}
