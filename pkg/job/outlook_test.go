package job

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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// planned prepares a job without submitting it. The scheduler returns the recorded answer, or doesn't run if answer is "".
func planned(t *testing.T, more, answer string, objects ...runtime.Object) (*Client, *Prepared, *schedulerapi.OutlookQuery) {
	t.Helper()
	asked := &schedulerapi.OutlookQuery{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.Path != "POST "+schedulerapi.PathOutlook {
			t.Errorf("asked for %s %s", r.Method, r.URL)
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(asked))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	client := fake.NewClientset(objects...)
	scheduler, err := vc.NewSchedulerAt(client, server.URL)
	require.NoError(t, err)
	if answer == "" {
		server.Close()
	}
	c := &Client{Cluster: &kube.Cluster{Client: client}, Scheduler: scheduler, Namespace: kube.JobNamespace, Now: time.Now}
	text := "protocolVersion: 2\nname: train\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\n" +
		"taskRoles: {worker: {instances: 2, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 2}, commands: [echo]}}\ndefaults: {virtualCluster: B}\n" + more
	j, found := protocol.Parse("job.yaml", []byte(text))
	require.NoError(t, found.Err())
	f := &Facts{Cluster: render.Cluster{
		RuntimeImage: "pai-runtime:1", SchedulerName: "pai-scheduler", NodeLabels: map[string]string{labelWorker: "true"},
		SKUs:            map[string]render.SKU{"G": {GPU: 1, MilliCPU: 4000, MemoryMB: 4096, PerNode: 8}},
		VirtualClusters: map[string]render.VirtualCluster{"B": {Cells: map[string]int{"G": 16}}},
		Storages:        map[string]render.Storage{"data": {Claim: "data"}},
	}}
	p, found, err := c.Prepare(f, Request{File: j, User: "ann"})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	return c, p, asked
}

func TestTheOutlookOfAJobInWords(t *testing.T) {
	const starts = `{"gangs":[{"vc":"B","count":1,"starting":1,"pods":2,"result":"starts","nodes":["b0","b1"],"largest":{"pods":3,"gpusPerPod":2}}]}`
	const waits = `{"gangs":[{"vc":"B","count":1,"starting":0,"pods":2,"result":"waits","code":"NoCapacity","reason":"Virtual cluster B has 1 of 16 GPUs free for jobs of priority 10, but the gang requests 4.","positionInVC":3,"queueInVC":5,"largest":{"pods":1,"gpusPerPod":1}}]}`
	for name, tt := range map[string]struct {
		more, answer   string
		verdict        string
		sentence, cost string
	}{
		"it starts": {"", starts, "starts", "It would start now on 2 machines: b0, b1. The largest job of this shape that would start now has 3 tasks of 2 GPUs.", "It costs 4 GPU hours for each hour that it runs."},
		"it waits": {"extras: {maxDurationSec: 5400}", waits, "waits",
			"It would wait, as 3rd of 5 in the queue of B: Virtual cluster B has 1 of 16 GPUs free for jobs of priority 10, but the gang requests 4. The largest job of this shape that would start now has 1 task of 1 GPU.",
			"It costs up to 6 GPU hours for each run, with 4 GPUs until its time limit."},
		"it waits for another job": {"extras: {after: prepare}", starts, "starts", "It waits for prepare first; without that, it would start now on 2 machines: b0, b1. The largest job of this shape that would start now has 3 tasks of 2 GPUs.", "It costs 4 GPU hours for each hour that it runs."},
		"it preempts":              {"", `{"gangs":[{"vc":"B","count":1,"starting":0,"pods":2,"result":"preempts","code":"PreemptionUnderWay","victims":2,"positionInVC":1,"queueInVC":1}]}`, "preempts", "It would preempt 2 gangs, and start when those have stopped.", "It costs 4 GPU hours for each hour that it runs."},
		"it never starts":          {"", `{"gangs":[{"vc":"B","count":1,"starting":0,"pods":2,"result":"never","code":"Unsatisfiable","reason":"The gang can never start: it requests 4 GPUs, but virtual cluster B has 2 in one chain; request less."}]}`, "never", "It can never start: it requests 4 GPUs, but virtual cluster B has 2 in one chain; request less.", "It costs 4 GPU hours for each hour that it runs."},
		"some tasks start": {"extras: {gangAllocation: false}", `{"gangs":[{"vc":"B","count":2,"starting":1,"pods":1,"result":"waits","reason":"Full.","code":"NoCapacity","nodes":["b0"],"positionInVC":1,"queueInVC":1}]}`, "waits",
			"1 of 2 tasks would start now on b0; after these, it would wait, as 1st of 1 in the queue of B: Full.", "It costs 4 GPU hours for each hour that it runs."},
		"many tasks": {"extras: {gangAllocation: false}", `{"gangs":[{"vc":"B","count":2,"starting":1,"tried":1,"pods":1,"result":"starts","nodes":["b0"]}]}`, "starts",
			"At least 1 of 2 tasks would start now on b0.", "It costs 4 GPU hours for each hour that it runs."},
		"no scheduler answers": {"", "", "unknown", "It isn't known whether it would start now: the scheduler doesn't answer: none of its pods is ready", "It costs 4 GPU hours for each hour that it runs."},
	} {
		t.Run(name, func(t *testing.T) {
			c, p, _ := planned(t, tt.more, tt.answer)
			require.True(t, p.OnCells())
			o := c.Outlook(t.Context(), p, nil, true)
			assert.Equal(t, tt.verdict, o.Verdict)
			if tt.answer == "" {
				assert.True(t, strings.HasPrefix(o.Sentence, tt.sentence), o.Sentence)
			} else {
				assert.Equal(t, tt.sentence, o.Sentence)
			}
			assert.Equal(t, tt.cost, o.Cost)
			assert.Equal(t, 4, o.GPUs)
		})
	}
}

func TestAnOutlookShowsOnlyWhatItsReaderMayKnow(t *testing.T) {
	const held = `{"gangs":[{"vc":"B","count":1,"starting":1,"pods":2,"result":"starts","nodes":["b0"]},{"vc":"B","count":1,"starting":0,"pods":2,"result":"waits","reason":"free cells of virtual cluster B are reserved for vic~secret/default, which has waited for more than 24h","badNodes":" b1: the node is cordoned.","positionInVC":2,"queueInVC":2}]}`
	c, p, _ := planned(t, "", held)
	o := c.Outlook(t.Context(), p, func(string, string) string { return "" }, false)
	assert.Equal(t, "2 of 2 tasks would start now on 1 machine; after these, it would wait, as 2nd of 2 in the queue of B: free cells of virtual cluster B are reserved for another job, which has waited for more than 24h.", o.Sentence)
	assert.Empty(t, o.Machines)
	assert.Equal(t, 1, o.MachineCount)
	assert.Equal(t, "reserved for another job, which", aloneGangs.ReplaceAllString("reserved for pai-jobs/0123456789abcdef0123456789abcdef-worker-0, which", AnotherJob))

	o = c.Outlook(t.Context(), p, func(user, name string) string { return user + "/" + name }, true)
	assert.Contains(t, o.Reason, "vic~secret/default")
	assert.Contains(t, o.Reason, "b1: the node is cordoned")
}

func TestAnOutlookIsAboutThePodsThatASubmissionMakes(t *testing.T) {
	room := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: onHosts(corev1.NodeSelectorOpIn, "b1")}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: kube.JobNamespace}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	c, p, asked := planned(t, "extras: {maxDurationSec: 60, storages: [{name: data}]}", `{"gangs":[]}`, room, claim)
	c.Outlook(t.Context(), p, nil, true)
	require.Len(t, asked.Pods, 1)
	pod := asked.Pods[0].Pod
	assert.Equal(t, 2, asked.Pods[0].Count)
	assert.Contains(t, pod.Annotations["hivedscheduler.microsoft.com/pod-scheduling-spec"], "name: ann~train/default")
	assert.Equal(t, "ann", pod.Labels[schedulerapi.UserLabel])
	assert.EqualValues(t, 60, *pod.Spec.ActiveDeadlineSeconds)
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	require.Len(t, terms, 1)
	assert.Len(t, terms[0].MatchExpressions, 2, "the machines that run jobs, and have the storage")
	assert.Empty(t, pod.Spec.Containers)
}

func TestRoomIsWhatPodsDontRequest(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("1Gi")}}}
	}
	worker := map[string]string{labelWorker: "true"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "x"}, Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}, Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("24Mi")}}}}}}
	c, _, _ := planned(t, "", `{}`, node("a", corev1.ConditionTrue, worker), node("lost", corev1.ConditionUnknown, worker), node("master", corev1.ConditionTrue, nil), pod)
	rooms, err := c.FreeCapacity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []FreeCapacity{{"a", 3500, 1000}}, rooms)
}

func TestWithoutASchedulerOfGPUsTheOutlookIsTheRoomOfMachines(t *testing.T) {
	p := &Prepared{Summary: Summary{Tasks: 2, VirtualCluster: "default"}, Objects: objects(t, "ann", "train", "echo")}
	assert.False(t, p.OnCells())
	for name, tt := range map[string]struct {
		rooms    []FreeCapacity
		gpus     int
		err      error
		verdict  string
		sentence string
	}{
		"both tasks":  {[]FreeCapacity{{"a", 500, 500}, {"b", 1000, 100}, {"c", 3000, 64}}, 0, nil, "starts", "It would start now on 2 machines: b, c."},
		"one task":    {[]FreeCapacity{{"a", 1000, 500}}, 0, nil, "waits", "It would wait: by the requests of the pods that run now, machines have no room for 1 task of 1 CPU and 64 MiB."},
		"nothing":     {nil, 0, nil, "waits", "It would wait: by the requests of the pods that run now, machines have no room for 2 tasks of 1 CPU and 64 MiB."},
		"too many":    {[]FreeCapacity{{"a", -5, -5}}, 0, nil, "waits", "It would wait: by the requests of the pods that run now, machines have no room for 2 tasks of 1 CPU and 64 MiB."},
		"GPUs":        {[]FreeCapacity{{"a", 1000, 500}}, 1, nil, "unknown", "It isn't known whether it would start now: this cluster has no scheduler for GPUs, and Kubernetes places them."},
		"no machines": {nil, 0, errNoQueue, "unknown", "It isn't known whether it would start now: this cluster has no scheduler for GPUs, and Kubernetes places them."},
	} {
		t.Run(name, func(t *testing.T) {
			p.GPUs = tt.gpus
			o := p.CapacityOutlook(tt.rooms, tt.err, true)
			assert.Equal(t, tt.verdict, o.Verdict)
			assert.Equal(t, tt.sentence, o.Sentence)
			assert.Empty(t, o.Cost)
			assert.Equal(t, []string{tt.sentence}, o.Lines())
		})
	}
	assert.Empty(t, (*Outlook)(nil).Lines())
	assert.Equal(t, " on 6 machines: a, b, c and 3 more", (&Outlook{MachineCount: 6, Machines: []string{"a", "b", "c", "d", "e", "f"}}).on())
}
