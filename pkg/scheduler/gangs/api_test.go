package gangs

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestTheInspectAPIAnswersAsHiveDDoes(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("p", spec("B", 5, "g:1:1")))
	c.run(newPod("o", spec("B", -1, "o:1:1")))
	var out strings.Builder
	for _, path := range []string{
		"/", "/v1/inspect/affinitygroups/", "/v1/inspect/affinitygroups/g", "/v1/inspect/affinitygroups/B/g", "/v1/inspect/affinitygroups/g?vc=B",
		"/v1/inspect/affinitygroups/none", "/v1/inspect/clusterstatus", "/v1/inspect/clusterstatus/physicalcluster",
		"/v1/inspect/clusterstatus/virtualclusters/", "/v1/inspect/clusterstatus/virtualclusters/B", "/v1/inspect/clusterstatus/virtualclusters/C", "/v1/nothing",
	} {
		code, text := c.ask(http.MethodGet, path, nil)
		out.WriteString(path + " " + http.StatusText(code) + "\n" + text + "\n")
	}
	code, text := c.ask(http.MethodDelete, "/v1/inspect/affinitygroups/g", nil)
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, text, "NotImplemented")
	golden(t, "inspect.txt", out.String())
}

func TestWhySaysWhereAGangWouldGo(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.create(newPod("w", spec("B", 1, "ready:1:1")))
	var why api.Why
	c.get("/v1/why/ready", &why)
	require.Equal(t, "Ready", why.Explanation.Code)
	require.Len(t, why.Explanation.Nodes, 1)
	assert.Equal(t, "The gang can start now on node "+why.Explanation.Nodes[0]+".", why.Sentence)
}

func TestWhySaysWhatAGangWaitsFor(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("r", spec("B", 5, "runs:1:2")))
	w1 := c.create(newPod("w1", spec("B", 1, "waits:1:2")))
	w2 := c.create(newPod("w2", spec("B", 4, "urgent:1:2")))
	c.waits(w1)
	var why api.Why
	c.get("/v1/why/waits", &why)
	assert.Equal(t, api.Waiting, why.State)
	assert.Equal(t, [3]int{2, 2, 2}, [3]int{why.Position, why.PositionInVC, why.QueueLength})
	assert.NotEmpty(t, why.Explanation.Code)
	assert.NotEqual(t, "Ready", why.Explanation.Code)
	assert.Contains(t, why.Sentence, "; number 2 of 2 waiting gangs")
	require.Len(t, why.Pods, 1)
	assert.Equal(t, "jobs/w1", why.Pods[0].Name)

	c.get("/v1/why/B/urgent", &why)
	assert.Equal(t, 1, why.Position)
	c.waits(w2)

	var running api.Why
	c.get("/v1/why/runs?vc=B", &running)
	assert.Equal(t, api.Bound, running.State)
	assert.Equal(t, "it has 2 GPUs on 1 node", running.Sentence)
	assert.Nil(t, running.Explanation)
	assert.Zero(t, running.Position)
	require.NotNil(t, running.Running)
	assert.Equal(t, 2, running.Running.GPUs)
}

func TestWhyFindsGangsByTheirNames(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.create(newPod("one", spec("A", 1, "same:1:1")))
	c.create(newPod("two", spec("B", 1, "same:1:1")))
	c.create(newPod("three", "virtualCluster: A\nleafCellType: G\nleafCellNumber: 1\n")) // a gang with the name of its pod
	for name, tt := range map[string]struct {
		path string
		code int
		want string
	}{
		"with its virtual cluster":  {"/v1/why/A/same", 200, `"vc":"A","group":"same"`},
		"with a query":              {"/v1/why/same?vc=B", 200, `"vc":"B","group":"same"`},
		"named by namespace/pod":    {"/v1/why/jobs/three", 200, `"group":"jobs/three"`},
		"of two virtual clusters":   {"/v1/why/same", 400, "several virtual clusters have a group same: A, B"},
		"unknown":                   {"/v1/why/none", 404, "User Error: there is no group none"},
		"unknown in its cluster":    {"/v1/why/three?vc=B", 404, "virtual cluster B has no group three"},
		"without a name":            {"/v1/why/", 404, "there is no group"},
		"of a request in bad shape": {"/v1/why/A/none", 404, "there is no group A/none"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := c.ask(http.MethodGet, tt.path, nil)
			assert.Equal(t, tt.code, code)
			assert.Contains(t, text, tt.want)
		})
	}
}

func TestTheQueueIsInTheOrderInWhichGangsStart(t *testing.T) {
	c := newCluster(t, twoTeams)
	for _, p := range []*corev1.Pod{
		newPod("q1", spec("A", 1, "early:1:1")), newPod("q2", spec("B", 9, "urgent:2:2")), newPod("q3", spec("A", 1, "late:1:1")),
	} {
		c.create(p)
	}
	var queue api.Queue
	c.get("/v1/queue", &queue)
	var names []string
	for _, q := range queue.Items {
		names = append(names, q.Group)
	}
	assert.Equal(t, []string{"early", "urgent", "late"}, names, "virtual clusters take turns")
	assert.Equal(t, 4, queue.Items[1].GPUs, "of the whole gang")
	assert.Equal(t, 1, queue.Items[1].Pods, "that are there")
	c.get("/v1/queue?vc=A", &queue)
	require.Len(t, queue.Items, 2)
	assert.Equal(t, [2]int{3, 2}, [2]int{queue.Items[1].Position, queue.Items[1].PositionInVC})
}

func TestAWaitingGangThatLosesItsPodKeepsItsPlace(t *testing.T) {
	c := newCluster(t, twoTeams)
	arrive := func(name, gang string) *corev1.Pod {
		c.clock.add(time.Minute)
		return c.create(newPod(name, spec("A", 1, gang+":1:1")))
	}
	queue := func() (names []string) {
		var q api.Queue
		c.get("/v1/queue", &q)
		for _, i := range q.Items {
			names = append(names, i.Group)
		}
		return names
	}
	early := arrive("early-1", "early")
	arrive("late-1", "late")
	c.delete(early)
	early = arrive("early-2", "early")
	assert.Equal(t, []string{"early", "late"}, queue(), "something deleted its pod, and its controller made another")
	c.delete(early)
	c.clock.add(placeKept + time.Second)
	arrive("early-3", "early")
	assert.Equal(t, []string{"late", "early"}, queue(), "it was away for long")
}

func TestVirtualClustersAreListed(t *testing.T) {
	c := newCluster(t, strings.Replace(twoTeams, "  B:\n", "  B:\n    quota: {perUser: 2, users: {alice: 1}}\n    policy: start-now\n", 1))
	c.run(newPod("p", spec("A", 5, "g:1:2")))
	c.run(newPod("o", spec("B", -1, "o:1:1")))
	c.create(newPod("w", spec("B", 5, "w:2:1")))
	var got api.VirtualClusters
	c.get("/v1/virtualclusters", &got)
	require.Len(t, got.Items, 2)
	a, b := got.Items[0], got.Items[1]
	assert.Equal(t, int64(1), got.Generation)
	assert.Equal(t, []api.Cells{{CellType: "RACK", CellNumber: 1}}, a.Cells)
	assert.Equal(t, [4]int{4, 2, 2, 0}, [4]int{a.Guaranteed, a.Used, a.Free, a.Opportunistic})
	assert.Equal(t, [4]int{2, 0, 2, 1}, [4]int{b.Guaranteed, b.Used, b.Free, b.Opportunistic})
	assert.Equal(t, [2]int{1, 1}, [2]int{b.WaitingGangs, b.WaitingPods})
	require.Len(t, a.Leaves, 1)
	assert.Equal(t, [3]int{4, 2, 0}, [3]int{a.Leaves[0].Guaranteed, a.Leaves[0].Used, a.Leaves[0].Bad})
	var nodes api.Nodes
	c.get("/v1/nodes", &nodes)
	used := 0
	for _, n := range nodes.Items {
		assert.Subset(t, n.Configured, n.Used)
		used += len(n.Used)
	}
	assert.Equal(t, 3, used, "those of the opportunistic gang, too")
	assert.Equal(t, &api.Quota{PerUser: 2, Users: map[string]int{"alice": 1}}, b.Quota)
	assert.Equal(t, [2]string{"balanced", "start-now"}, [2]string{a.Policy, b.Policy})
}

func TestQuotasAreChargedToTheUserOfThePod(t *testing.T) {
	c := newCluster(t, strings.Replace(twoTeams, "  A:\n", "  A:\n    quota: {perUser: 1, groups: {nlp: 1}}\n", 1))
	one := newPod("p1", spec("A", 5, "g1:1:1"))
	one.Labels = map[string]string{api.UserLabel: "alice"}
	c.run(one)
	two := newPod("p2", spec("A", 5, "g2:1:1"))
	two.Labels = map[string]string{api.UserLabel: "alice"}
	two = c.create(two)
	assert.Contains(t, c.waits(two), "alice")
	other := newPod("p3", spec("A", 5, "g3:1:1"))
	other.Labels = map[string]string{api.UserLabel: "bob", api.UserGroupLabel: "nlp"}
	c.run(other)
	grouped := newPod("p4", spec("A", 5, "g4:1:1"))
	grouped.Labels = map[string]string{api.UserLabel: "carol", api.UserGroupLabel: "nlp"}
	grouped = c.create(grouped)
	assert.Contains(t, c.waits(grouped), "nlp")
}

func TestMetricsAreWellFormed(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("p", spec("A", 5, "g:1:2")))
	w := c.create(newPod("w", spec("B", 5, "w:2:2")))
	c.waits(w)
	c.clock.add(time.Minute)
	_, text := c.ask(http.MethodGet, "/metrics", nil)
	problems, err := promlint.New(strings.NewReader(text + "\n")).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	for _, want := range []string{
		"pai_scheduler_leader 1", "pai_scheduler_config_valid 1", "pai_scheduler_config_generation 1",
		`pai_scheduler_decisions_total{result="bind"} 1`, `pai_scheduler_bindings_total{result="ok"} 1`,
		`pai_scheduler_waiting_gangs{vc="B"} 1`, `pai_scheduler_waiting_pods{vc="A"} 0`, `pai_scheduler_oldest_waiting_seconds{vc="B"} 58`,
		`pai_scheduler_vc_guaranteed_gpus{vc="A"} 4`, `pai_scheduler_vc_used_gpus{vc="A"} 2`, `pai_scheduler_vc_free_cells{cell_type="NODE",vc="A"} 1`,
		"pai_scheduler_gpus 8", "pai_scheduler_used_gpus 2", `pai_scheduler_pods{state="Bound"} 1`, "pai_scheduler_decision_duration_seconds_count 2",
	} {
		assert.Contains(t, text, want)
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	c := newCluster(t, twoTeams)
	_, text := c.ask(http.MethodGet, "/metrics", nil)
	docs, err := os.ReadFile("../../../docs/scheduler.md")
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "# HELP pai_scheduler_"); ok {
			name, _, _ = strings.Cut(name, " ")
			assert.Contains(t, string(docs), "`pai_scheduler_"+name+"`")
		}
	}
}

func TestTheStandbyPassesQuestionsOnToTheLeader(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.create(newPod("w", spec("B", 5, "w:1:2")))
	leader := httptest.NewServer(c.b.API())
	defer leader.Close()
	u, err := url.Parse(leader.URL)
	require.NoError(t, err)

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-system", Name: "leader-0"}, Status: corev1.PodStatus{PodIP: u.Hostname()}}
	standby := prepare(t, twoTeams, pod)
	opts := testOptions
	opts.Port = u.Port()
	lock := &testLock{holder: "leader-0_uuid", identity: "standby-0_uuid"}
	opts.Election = NewElection(standby.clock.now)
	opts.Election.Follow(lock, 6*time.Second)
	standby.start(opts)
	_, _, err = opts.Election.Get(t.Context())
	require.NoError(t, err)
	var queue api.Queue
	standby.get("/v1/queue", &queue)
	assert.Len(t, queue.Items, 1)
	code, _ := standby.ask(http.MethodPost, api.PathValidate, twoTeams)
	assert.Equal(t, http.StatusOK, code)
	code, _ = standby.ask(http.MethodGet, "/v1/why/none", nil)
	assert.Equal(t, http.StatusNotFound, code, "the leader's answer")

	leader.Close()
	code, text := standby.ask(http.MethodGet, "/v1/queue", nil)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "leader-0, which does, doesn't answer")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/queue", nil)
	r.Header.Set(forwarded, "1")
	w := httptest.NewRecorder()
	standby.b.API().ServeHTTP(w, r)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, "a question isn't passed on twice")
}

func TestHealthAndReadinessAreTold(t *testing.T) {
	c := newCluster(t, twoTeams)
	for _, path := range []string{"/healthz", "/readyz"} {
		code, text := c.ask(http.MethodGet, path, nil)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "ok", text)
	}
	broken := prepare(t, "virtualClusters: [")
	broken.start(testOptions)
	code, text := broken.ask(http.MethodGet, "/readyz", nil)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "hivedscheduler.yaml:1")
	require.Error(t, broken.b.Lead(t.Context()))
	code, _ = broken.ask(http.MethodPost, api.PathValidate, twoTeams)
	assert.Equal(t, http.StatusServiceUnavailable, code)
}
