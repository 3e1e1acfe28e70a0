package vc

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
)

func TestAVirtualClusterWithJobsInsideIsNotRemoved(t *testing.T) {
	gone := api.ChangedVirtualCluster{Name: "vision", Before: owner("vision", 16, 2)}
	empty := api.ChangedVirtualCluster{Name: "nlp", Before: owner("nlp", 8, 1), After: owner("nlp", 0, 0)}
	smaller := api.ChangedVirtualCluster{Name: "audio", Before: owner("audio", 16, 2), After: owner("audio", 8, 1)}
	cpus := owner("prep", 0, 0)
	cpus.CPU = &cell.CPUStats{Guaranteed: 15}
	onlyCPUs := api.ChangedVirtualCluster{Name: "prep", Before: owner("prep", 8, 1), After: cpus}
	changes := []api.Change{
		{VC: "vision", Group: "ann~train/default", Effect: api.Downgraded, GPUs: 8},
		{VC: "vision", Group: "bob~eval/default", Effect: api.Refused, GPUs: 4},
		{VC: "vision", Group: "bob~eval/default-CPU", Effect: api.Orphaned, CPUCells: 2},
		{VC: "nlp", Group: "eve~big/default", Effect: api.Refused, GPUs: 1},
		{VC: "nlp", Group: "eve~back/default", Effect: api.Restored, GPUs: 1},
		{VC: "audio", Group: "ann~loses/default", Effect: api.Downgraded, GPUs: 8},
		{VC: "prep", Group: "ann~moves/default", Effect: api.Downgraded, GPUs: 8},
	}
	opts := &SetOptions{}
	ch := &change{outcome: outcome{Changed: true, Effect: &api.Validation{Valid: true, VirtualClusters: []api.ChangedVirtualCluster{gone, empty, smaller, onlyCPUs}, Changes: changes}}}
	err := opts.checkInside(t.Context(), nil, ch)
	require.EqualError(t, err, "nlp has 1 job inside: eve/big waits for 1 GPU; vision has 2 jobs inside: bob/eval runs on 2 CPU cells, ann/train runs on 8 GPUs")
	assert.Contains(t, hint.Of(err), "with --force running jobs continue without a guarantee")
	ch.Effect.VirtualClusters = ch.Effect.VirtualClusters[2:]
	assert.NoError(t, opts.checkInside(t.Context(), nil, ch), "who keeps cells of its own is only shown what changes")
}

func TestARefusalNamesAFewOfManyJobs(t *testing.T) {
	in := inside{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		in.add("v", "ann/"+name, "runs")
	}
	assert.EqualError(t, in.refuse(), "v has 10 jobs inside: ann/a runs, ann/b runs, ann/c runs, ann/d runs, ann/e runs, ann/f runs, ann/g runs, ann/h runs, and 2 more")
}

func TestJobsInsideAreFoundWithoutAScheduler(t *testing.T) {
	pod := func(name, vc, node string, phase corev1.PodPhase, request string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pai-jobs", Name: name, Labels: map[string]string{v1.LabelVC: vc}, Annotations: map[string]string{annotation.SpecKey: request}},
			Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	request := func(gang string) string {
		return "virtualCluster: vision\npriority: 0\nleafCellNumber: 1\naffinityGroup: {name: " + gang + ", members: [{podNumber: 1, leafCellNumber: 1}]}\n"
	}
	c := &cluster{Cluster: &kube.Cluster{Client: fake.NewClientset(
		pod("a", "vision", "gpu-1", corev1.PodRunning, request("ann~train/default")), pod("b", "vision", "", corev1.PodPending, request("bob~eval/default")),
		pod("c", "vision", "gpu-1", corev1.PodSucceeded, request("bob~done/default")), pod("d", "nlp", "gpu-1", corev1.PodRunning, request("eve~other/default")),
		pod("e", "vision", "", corev1.PodPending, ""),
	)}}
	opts := &SetOptions{Requests: []vc.Request{{Name: "vision", Delete: true}, {Name: "nlp"}}}
	ch := &change{outcome: outcome{Changed: true}}
	err := opts.checkInside(t.Context(), c, ch)
	assert.EqualError(t, err, "vision has 3 jobs inside: ann/train runs, bob/eval waits, pai-jobs/e waits")

	client := fake.NewClientset()
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the server is currently unable to handle the request")
	})
	c.Client = client
	err = opts.checkInside(t.Context(), c, ch)
	require.EqualError(t, err, "look for jobs in the virtual cluster vision: the server is currently unable to handle the request", "not known is not none")
	assert.Contains(t, hint.Of(err), "--force")
	opts.Force = true
	assert.NoError(t, opts.checkInside(t.Context(), c, ch))
}

func TestJobsThatCameDuringTheQuestionCount(t *testing.T) {
	validation := api.Validation{Valid: true, VirtualClusters: []api.ChangedVirtualCluster{{Name: "vision", Before: owner("vision", 16, 2)}},
		Changes: []api.Change{{VC: "vision", Group: "ann~train/default", Effect: api.Downgraded, GPUs: 8}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, api.PathValidate) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(validation))
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	c := &cluster{Cluster: &kube.Cluster{Client: client}, scheduler: vc.NewScheduler(client)}
	ch := &change{outcome: outcome{Changed: true, Effect: &api.Validation{Valid: true}}} // without any, when it was shown
	opts := &SetOptions{}
	assert.EqualError(t, opts.checkAgain(t.Context(), c, ch), "vision has 1 job inside: ann/train runs on 8 GPUs")
	opts.Force = true
	assert.NoError(t, opts.checkAgain(t.Context(), c, ch))
}

func TestTheListShowsCPUCellsAndDeletedVirtualClusters(t *testing.T) {
	a, gone := *owner("a", 16, 2), api.VirtualCluster{Name: "vision", Opportunistic: 8, WaitingGangs: 1}
	a.Used, a.Free = 8, 8
	s := &state{Running: true, VirtualClusters: v3.VirtualClusters{VirtualClusters: api.VirtualClusters{Items: []api.VirtualCluster{a}, Deleted: []api.VirtualCluster{gone}}}}
	got := listTable(s, false)
	assert.Equal(t, []string{"NAME", "GPUS", "USED", "OPPORTUNISTIC", "FREE", "BAD", "WAITING", "QUOTA", "CELLS"}, got.Header)
	assert.Equal(t, [][]string{{"a", "16", "8", "0", "8", "0", "0", "-", "2 x node"}, {"vision (deleted)", "0", "0", "8", "0", "0", "1", "-", "-"}}, got.Rows)
	assert.Len(t, listTable(s, true).Rows, 1, "a name that other commands take is one that is there")

	s.Items[0].CPU = &cell.CPUStats{Guaranteed: 30, Used: 4, Opportunistic: 1, Free: 25, Bad: 1}
	got = listTable(s, false)
	assert.Equal(t, []string{"NAME", "GPUS", "USED", "OPPORTUNISTIC", "FREE", "BAD", "CPU CELLS", "WAITING", "QUOTA", "CELLS"}, got.Header)
	assert.Equal(t, []string{"a", "16", "8", "0", "8", "0", "30: 4 used, 25 free, 1 opportunistic, 1 bad", "0", "-", "2 x node"}, got.Rows[0])
	s.Running = false
	assert.Equal(t, []string{"a", "16", "-", "-", "-", "-", "30", "-", "-", "2 x node"}, listTable(s, false).Rows[0])
}

func TestAVirtualClusterSaysItsCPUCells(t *testing.T) {
	v := owner("a", 0, 0)
	v.CPU = &cell.CPUStats{Guaranteed: 15}
	assert.Equal(t, "15 CPU cells", amounts(v))
	v.Guaranteed = 1
	assert.Equal(t, "1 GPU and 15 CPU cells", amounts(v))
	assert.Equal(t, "(2 CPU cells of ann) continues to run without a guarantee, as now; a retry would be refused", effectText(&api.Change{Effect: api.Orphaned, CPUCells: 2, User: "ann"}))
}
