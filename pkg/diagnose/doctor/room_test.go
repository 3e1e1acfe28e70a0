package doctor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// withScheduler adds a scheduler to a cluster. answers maps paths to the scheduler's responses.
func withScheduler(t *testing.T, c *Cluster, answers map[string]any) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, path, behind := strings.Cut(r.URL.Path, "/services/scheduler:http/proxy")
		answer, known := answers[path]
		if !behind || !known {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(srv.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: srv.URL})
	require.NoError(t, err)
	c.Jobs = &job.Client{Namespace: kube.JobNamespace, Scheduler: vc.NewScheduler(client)}
}

func TestAJobIsNotSubmittedWhereTheSchedulerSaysThatNothingIsFree(t *testing.T) {
	gang := &trial{vc: "default", machines: []string{"w1", "w2"}}
	for name, one := range map[string]struct {
		vc   schedulerapi.VirtualCluster
		says string
	}{
		"all GPUs are used":                        {schedulerapi.VirtualCluster{Name: "default", Guaranteed: 16, Used: 16}, "no room for a job of 2 tasks: 0 GPUs free of 16"},
		"all GPUs and CPU cells are used":          {schedulerapi.VirtualCluster{Name: "default", Guaranteed: 16, Used: 16, CPU: &cell.CPUStats{Guaranteed: 4, Used: 4}}, "no room for a job of 2 tasks: 0 GPUs free of 16 and 0 CPU cells free of 4"},
		"a CPU cell is free":                       {schedulerapi.VirtualCluster{Name: "default", Guaranteed: 16, Used: 16, CPU: &cell.CPUStats{Guaranteed: 4, Used: 3, Free: 1}}, ""},
		"a GPU is free":                            {schedulerapi.VirtualCluster{Name: "default", Guaranteed: 16, Used: 15, Free: 1}, ""},
		"it owns nothing, and uses what others do": {schedulerapi.VirtualCluster{Name: "default"}, ""},
		"there is no such virtual cluster":         {schedulerapi.VirtualCluster{Name: "other", Guaranteed: 8}, ""},
	} {
		c := patient(t, 1, 2)
		withScheduler(t, c, map[string]any{schedulerapi.PathVirtualClusters: schedulerapi.VirtualClusters{Items: []schedulerapi.VirtualCluster{one.vc}}})
		f := c.noVacancy(t.Context(), gang)
		if one.says == "" {
			assert.Nil(t, f, name)
			continue
		}
		require.NotNil(t, f, name)
		assert.Equal(t, one.says, f.Message, name)
		assert.Equal(t, Warning, f.Verdict, "%s: the cluster has no fault", name)
		assert.Contains(t, f.Remedy, "when jobs have finished")
	}
	c := patient(t, 1, 2)
	withScheduler(t, c, nil)
	assert.Nil(t, c.noVacancy(t.Context(), gang), "without a scheduler the job shows it")
}

func TestAJobThatWaitsForWhatOthersHaveIsGivenUpSoon(t *testing.T) {
	gang := &trial{vc: "default", machines: []string{"w1", "w2"}, nodes: []string{"w1", "w2"}}
	group := endUser + "~gang-abcdef/task0"
	detail := &job.Detail{}
	detail.Framework, detail.State = v1.ObjectName(endUser, "gang-abcdef"), string(job.Queued)
	later := now
	waits := func(code string, nodes ...string) *Cluster {
		c := patient(t, 1, 2)
		c.Now = func() time.Time { return later }
		withScheduler(t, c, map[string]any{
			schedulerapi.PathQueue: schedulerapi.Queue{Items: []schedulerapi.Queued{{VC: "default", Group: "alice~train/worker"}, {VC: "default", Group: group}}},
			schedulerapi.PathWhy + group: schedulerapi.Why{Sentence: "default has 1 of 16 GPUs free, and the gang wants 2.",
				Explanation: &cell.Explanation{Code: code, Nodes: nodes, GPUs: 2, OwnedGPUs: 16, UsedGPUs: 15, FreeGPUs: 1}},
		})
		return c
	}
	c, w := waits(cell.NoCapacity), waiting{}
	assert.Nil(t, w.full(t.Context(), c, gang, detail), "it may get its place at once")
	later = now.Add(patience - time.Second)
	assert.Nil(t, w.full(t.Context(), c, gang, detail))
	later = now.Add(patience)
	f := w.full(t.Context(), c, gang, detail)
	require.NotNil(t, f)
	assert.Equal(t, "no room for a job of 2 tasks: 1 GPU free of 16", f.Message)
	assert.Equal(t, Warning, f.Verdict)
	assert.Equal(t, "default has 1 of 16 GPUs free, and the gang wants 2.", f.Evidence)
	f = w.full(t.Context(), waits(cell.BadNodes), gang, detail)
	require.NotNil(t, f)
	assert.Contains(t, f.Remedy, "paictl node gpu list --sick")
	assert.Nil(t, w.full(t.Context(), waits(cell.Ready, "w2", "w1"), gang, detail), "the scheduler is to start it, and that it doesn't is a fault")
	f = w.full(t.Context(), waits(cell.Ready, "w2"), gang, detail)
	require.NotNil(t, f)
	assert.Equal(t, "no room for a job of 2 tasks: it is to run on w1 and w2, and there is room on w2 alone", f.Message)

	running := *detail
	running.State = string(job.Running)
	assert.Nil(t, w.full(t.Context(), c, gang, &running))
	assert.Nil(t, w.full(t.Context(), c, gang, detail), "it begins to wait again")
}

func TestAGangGoesWhereFewerTasksRun(t *testing.T) {
	task := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: kube.JobNamespace, Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	c := patient(t, 1, 3, task("a", "w1", corev1.PodRunning), task("b", "w1", corev1.PodRunning), task("c", "w2", corev1.PodRunning), task("d", "w3", corev1.PodSucceeded))
	c.Jobs = &job.Client{Namespace: kube.JobNamespace}
	busy, err := c.tasksOn(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"w1": 2, "w2": 1}, busy)
}
