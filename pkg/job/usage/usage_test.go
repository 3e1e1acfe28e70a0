package usage

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

// withoutGPUs is a list of two tasks that see no GPUs. The first task has a share of GPUs, and the second task has CPU cells.
const withoutGPUs = `{"kind":"PodList","apiVersion":"v1","items":[` +
	`{"metadata":{"name":"f-worker-0","uid":"u0","labels":{"FC_FRAMEWORK_NAME":"f","FC_TASKROLE_NAME":"worker","FC_TASK_INDEX":"0"},"annotations":{"hivedscheduler.microsoft.com/pod-leaf-cell-isolation":"0,1,2,3,4"}},` +
	`"spec":{"nodeName":"n2","containers":[{"name":"app","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"none"}],"resources":{"limits":{"cpu":"1","hivedscheduler.microsoft.com/pod-scheduling-enable":"1"}}}]},"status":{"containerStatuses":[{"name":"app","state":{"running":{}}}]}},` +
	`{"metadata":{"name":"f-worker-1","uid":"u1","labels":{"FC_FRAMEWORK_NAME":"f","FC_TASKROLE_NAME":"worker","FC_TASK_INDEX":"1"}},` +
	`"spec":{"nodeName":"n2","containers":[{"name":"app","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"none"}],"resources":{"limits":{"cpu":"1","hivedscheduler.microsoft.com/pod-scheduling-enable":"1"}}}]},"status":{"containerStatuses":[{"name":"app","state":{"running":{}}}]}}]}`

func TestTasksWithoutGPUsUseNone(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !answered(w, r, withoutGPUs) {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer s.Close()
	config := &rest.Config{Host: s.URL}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	c, err := job.New(&kube.Cluster{Config: config, Client: client})
	require.NoError(t, err)
	j := job.Of(&v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", Labels: map[string]string{v1.LabelUser: "ann"}, Annotations: map[string]string{v1.AnnotationJobName: "prep"}},
		Spec: v1.FrameworkSpec{TaskRoles: []v1.TaskRole{{Name: "worker", TaskNumber: 2}}}})
	list, _, err := Of(t.Context(), c, j)
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, Task{Task: "worker[0]", Pod: "f-worker-0", Node: "n2", CPULimit: 1, GPUIndices: []string{}, ShareOfGPUs: 5}, list[0])
	assert.Equal(t, Task{Task: "worker[1]", Pod: "f-worker-1", Node: "n2", CPULimit: 1, GPUIndices: []string{}}, list[1])
}

const pods = `{"kind":"PodList","apiVersion":"v1","items":[` +
	`{"metadata":{"name":"f-worker-1","uid":"u1","labels":{"FC_FRAMEWORK_NAME":"f","FC_TASKROLE_NAME":"worker","FC_TASK_INDEX":"1"},"annotations":{"hivedscheduler.microsoft.com/pod-leaf-cell-isolation":"0,3"}},` +
	`"spec":{"nodeName":"n1","containers":[{"name":"app","resources":{"limits":{"cpu":"2","memory":"1Gi"}}}]},"status":{"containerStatuses":[{"name":"app","state":{"running":{}}}]}},` +
	`{"metadata":{"name":"f-worker-0","uid":"u0","labels":{"FC_FRAMEWORK_NAME":"f","FC_TASKROLE_NAME":"worker","FC_TASK_INDEX":"0"}},` +
	`"spec":{"nodeName":"n2","containers":[{"name":"app","resources":{"limits":{"nvidia.com/gpu":"4"}}}]},"status":{"containerStatuses":[{"name":"app","state":{"running":{}}}]}},` +
	`{"metadata":{"name":"f-worker-2","uid":"u2","labels":{"FC_FRAMEWORK_NAME":"f","FC_TASKROLE_NAME":"worker","FC_TASK_INDEX":"2"}},` +
	`"spec":{"nodeName":"n1","containers":[{"name":"app"}]},"status":{"containerStatuses":[{"name":"app","state":{"waiting":{}}}]}}]}`

// answered responds like an API server to a request for a list of pods, or for one of these pods by its name. It reports whether the request was
// for pods; if not, it doesn't respond.
func answered(w http.ResponseWriter, r *http.Request, list string) bool {
	_, name, ok := strings.Cut(r.URL.Path, "/namespaces/pai-jobs/pods")
	if !ok {
		return false
	}
	if name == "" {
		_, _ = io.WriteString(w, list)
		return true
	}
	var all struct {
		Items []json.RawMessage `json:"items"`
	}
	_ = json.Unmarshal([]byte(list), &all)
	for _, item := range all.Items {
		if strings.Contains(string(item), `{"name":"`+strings.TrimPrefix(name, "/")+`"`) {
			_, _ = w.Write(item)
			return true
		}
	}
	return false
}

// measured measures a job with a number of tasks through the server at a URL.
func measured(t *testing.T, url string, tasks int32) ([]Task, []error) {
	t.Helper()
	config := &rest.Config{Host: url}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	c, err := job.New(&kube.Cluster{Config: config, Client: client})
	require.NoError(t, err)
	j := job.Of(&v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", Labels: map[string]string{v1.LabelUser: "ann"}, Annotations: map[string]string{v1.AnnotationJobName: "train"}},
		Spec: v1.FrameworkSpec{TaskRoles: []v1.TaskRole{{Name: "worker", TaskNumber: tasks}}}})
	list, problems, err := Of(t.Context(), c, j)
	require.NoError(t, err)
	return list, problems
}

func TestTasksThatRunAreMeasuredAndNodesThatDontAnswerAreNamed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case answered(w, r, pods):
		case r.URL.Path == "/api/v1/nodes/n1/proxy/stats/summary":
			_, _ = io.WriteString(w, `{"pods":[{"podRef":{"uid":"u1"},"containers":[{"name":"app","cpu":{"usageNanoCores":1500000000},"memory":{"workingSetBytes":1048576}}]}]}`)
		case r.URL.Path == "/api/v1/nodes/n2/proxy/stats/summary":
			w.WriteHeader(http.StatusBadGateway)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer s.Close()
	list, problems := measured(t, s.URL, 3)
	require.Len(t, list, 2, "a task that waits uses nothing")
	cpu, memory := 1.5, int64(1<<20)
	assert.Equal(t, Task{Task: "worker[0]", Pod: "f-worker-0", Node: "n2", GPUs: 4, GPUIndices: []string{}}, list[0])
	assert.Equal(t, Task{Task: "worker[1]", Pod: "f-worker-1", Node: "n1", CPU: &cpu, CPULimit: 2, Memory: &memory, MemoryLimit: 1 << 30, GPUs: 2, GPUIndices: []string{"0", "3"}}, list[1])
	require.Len(t, problems, 1)
	assert.ErrorContains(t, problems[0], "ask the kubelet of n2")
}

// oneEach is a list of two tasks, one on n1 and one on n2, with containers that the machines report.
const oneEach = `{"kind":"PodList","apiVersion":"v1","items":[` +
	`{"metadata":{"name":"f-worker-0","uid":"u0","labels":{"FC_FRAMEWORK_NAME":"f","FC_TASKROLE_NAME":"worker","FC_TASK_INDEX":"0"}},` +
	`"spec":{"nodeName":"n1","containers":[{"name":"app"}]},"status":{"containerStatuses":[{"name":"beside","containerID":"containerd://bb","state":{"running":{}}},{"name":"app","containerID":"containerd://a0","state":{"running":{}}}]}},` +
	`{"metadata":{"name":"f-worker-1","uid":"u1","labels":{"FC_FRAMEWORK_NAME":"f","FC_TASKROLE_NAME":"worker","FC_TASK_INDEX":"1"}},` +
	`"spec":{"nodeName":"n2","containers":[{"name":"app"}]},"status":{"containerStatuses":[{"name":"app","containerID":"containerd://a1","state":{"running":{}}}]}}]}`

// onN1 is the response of the log-manager on n1, which includes containers of other jobs.
const onN1 = `[{"pod":"u0","container":"bb","cpu":7,"memoryBytes":7},{"pod":"u0","container":"a0","cpu":0.5,"memoryBytes":1024},{"pod":"another","container":"a0","cpu":9,"memoryBytes":9}]`

func TestProcessorsAndMemoryAreKnownWithoutAnyRightOnKubelets(t *testing.T) {
	for _, c := range []struct {
		name            string
		second, kubelet func(http.ResponseWriter)
		cpu             float64 // the CPU of the second task; -1: not known
		problem         string
	}{
		{"both machines measure", says(200, `[{"pod":"u1","container":"a1","cpu":2,"memoryBytes":2048}]`), says(403, ""), 2, ""},
		{"a machine has no agent, or an older one", says(404, `{"code":"NotFound","message":"nothing measures the containers of this machine"}`), says(403, ""), -1,
			"processors and memory on n2 are not shown: no log-manager that measures them answers there"},
		{"the controller is older", says(404, `404 page not found`), says(403, ""), -1, "processors and memory on n2 are not shown"},
		{"an agent is being renewed", says(503, `{"code":"Unavailable","message":"the agent doesn't answer now"}`), says(403, ""), -1,
			"read the use of processors and memory on n2: ask the job controller: the agent doesn't answer now"},
		{"a container that the machine doesn't find", says(200, `[]`), says(403, ""), -1, "log-manager on n2 finds the containers of only 0 of 1 task"},
		{"an operator asks the kubelet where there is no agent", says(404, `{"code":"NotFound","message":"nothing"}`), says(200, kubeletOfN2), 3, ""},
		{"an operator asks the kubelet about what the agent doesn't find", says(200, `[]`), says(200, kubeletOfN2), 3, ""},
		{"no sense comes from an agent", says(200, `{}`), says(403, ""), -1, "read the use of processors and memory on n2: read the job controller's answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case answered(w, r, oneEach):
				case strings.HasSuffix(r.URL.Path, "/proxy/v1/machines/n1/use"):
					says(200, onN1)(w)
				case strings.HasSuffix(r.URL.Path, "/proxy/v1/machines/n2/use"):
					c.second(w)
				case r.URL.Path == "/api/v1/nodes/n2/proxy/stats/summary":
					c.kubelet(w)
				case strings.HasSuffix(r.URL.Path, "/secrets/job-controller-token"):
					w.WriteHeader(http.StatusForbidden)
				default:
					t.Error("nothing else is asked for: ", r.URL.Path)
				}
			}))
			defer s.Close()
			list, problems := measured(t, s.URL, 2)
			require.Len(t, list, 2)
			assert.InDelta(t, 0.5, *list[0].CPU, 0)
			assert.Equal(t, int64(1024), *list[0].Memory)
			if c.cpu < 0 {
				assert.Nil(t, list[1].CPU)
				assert.Nil(t, list[1].Memory)
			} else {
				assert.InDelta(t, c.cpu, *list[1].CPU, 0)
			}
			if c.problem == "" {
				assert.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			assert.ErrorContains(t, problems[0], c.problem)
		})
	}
}

// kubeletOfN2 is the summary that the kubelet of n2 returns.
const kubeletOfN2 = `{"pods":[{"podRef":{"uid":"u1"},"containers":[{"name":"app","cpu":{"usageNanoCores":3000000000},"memory":{"workingSetBytes":1048576}}]}]}`

func says(status int, text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func TestOfManyMachinesThatAreNotMeasuredTheFirstAreNamed(t *testing.T) {
	assert.Equal(t, "a, b, c", listed([]string{"a", "b", "c"}))
	assert.Equal(t, "a, b, c and 1 more machine", listed([]string{"a", "b", "c", "d"}))
}

func TestGPUsAreMeasuredByTheirMachines(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case answered(w, r, pods):
		case strings.HasSuffix(r.URL.Path, "/proxy/v1/machines/n1/gpus"):
			_, _ = io.WriteString(w, `[{"gpu":"0","namespace":"pai-jobs","pod":"f-worker-1","utilizationPercent":90,"memoryUsedMiB":1024,"memoryFreeMiB":1024,"powerWatts":300},
				{"gpu":"1","namespace":"pai-jobs","pod":"another","utilizationPercent":5,"memoryUsedMiB":1,"memoryFreeMiB":1,"powerWatts":1},
				{"gpu":"2","namespace":"elsewhere","pod":"f-worker-1","utilizationPercent":5,"powerWatts":1},
				{"gpu":"3","namespace":"pai-jobs","pod":"f-worker-1","utilizationPercent":30,"memoryUsedMiB":1024,"memoryFreeMiB":1024,"powerWatts":100}]`)
		case strings.HasSuffix(r.URL.Path, "/gpus"): // of a controller that is older, too
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"code":"NotFound","message":"nothing measures the GPUs of machine n2"}`)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer s.Close()
	list, problems := measured(t, s.URL, 3)
	require.Len(t, problems, 1, "only that of the kubelets: %v", problems)
	assert.ErrorContains(t, problems[0], "nodes/proxy")
	require.Len(t, list, 2)
	assert.Nil(t, list[0].GPUUtilization)
	assert.InDelta(t, 60, *list[1].GPUUtilization, 0)
	assert.Equal(t, int64(2<<30), *list[1].GPUMemory)
	assert.Equal(t, int64(4<<30), *list[1].GPUMemorySize)
	assert.InDelta(t, 400, *list[1].GPUPower, 0)
}
