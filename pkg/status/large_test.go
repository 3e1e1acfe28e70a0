package status

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/test/tier"
)

// Numbers of objects in a large cluster.
const (
	largeNodes = 1000
	largeGPUs  = 8
	largeJobs  = 10_000
)

// crowd is an API server that creates each object on request, so that the objects' memory isn't attributed to the follower.
func crowd(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "" {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	make, n := kindOf(r.URL.Path)
	if make == nil {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	to, next := min(from+limit, n), ""
	if to < n {
		next = strconv.Itoa(to)
	}
	_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"1","continue":%q},"items":[`, next)
	for i := from; i < to; i++ {
		if i > from {
			_, _ = w.Write([]byte(","))
		}
		_ = json.NewEncoder(w).Encode(make(i))
	}
	_, _ = w.Write([]byte("]}"))
}

func kindOf(path string) (func(int) any, int) {
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "nodes":
		return func(i int) any { return largeNode(i) }, largeNodes
	case "pods":
		return func(i int) any { return largePod(i) }, largeJobs + 500
	case "resourceslices":
		return func(i int) any { return largeSlice(i) }, largeNodes
	case "resourceclaims":
		return func(i int) any {
			p := largePod(i)
			c := claim.New(p, 1)
			c.Status = claim.Status(p, claim.Place{Node: nodeName(i / largeGPUs), Indices: []int32{int32(i % largeGPUs)}, Details: []byte(`{}`)}, metav1.Now())
			return c
		}, largeNodes * largeGPUs
	case "frameworks":
		return func(i int) any { return largeJob(i) }, largeJobs
	case "events":
		return func(i int) any { // by name, and not by time
			at := metav1.NewTime(time.Now().Add(-time.Duration(i*7919%20_000) * 100 * time.Millisecond))
			return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", i), Namespace: kube.JobNamespace}, Message: strings.Repeat("text ", 40), LastTimestamp: at,
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: v1.PodName(jobName(i), "worker", 0), Namespace: kube.JobNamespace}}
		}, 20_000
	}
	return nil, 0
}

func nodeName(i int) string { return fmt.Sprintf("gpu-%03d", i) }
func jobName(i int) string  { return v1.ObjectName("user", strconv.Itoa(i)) }

// bulk returns large annotations, as Kubernetes and other programs write them on all objects.
func bulk(n int) map[string]string {
	return map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("text ", n/5)}
}

func largeNode(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{"pai-worker": "true"}, Annotations: bulk(2000)}}
	var told schedulerapi.NodeDevices
	for k := range int32(largeGPUs) {
		told.Devices = append(told.Devices, schedulerapi.Device{Index: k, Healthy: true, Model: "NVIDIA A100-SXM4-80GB"})
	}
	text, _ := json.Marshal(told)
	n.Annotations[schedulerapi.DevicesAnnotation] = string(text)
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1Ti")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for k := range 50 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example/image-%d@sha256:%064d", k, k)}})
	}
	return n
}

func largeSlice(i int) *resourceapi.ResourceSlice {
	node := nodeName(i)
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"}, Spec: resourceapi.ResourceSliceSpec{Driver: claim.Driver, NodeName: &node}}
	for k := range int32(largeGPUs) {
		model, uuid := "NVIDIA A100-SXM4-80GB", fmt.Sprintf("GPU-%036d", int32(i)*largeGPUs+k)
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: claim.DeviceName(k), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: &model}, "uuid": {StringValue: &uuid}}})
	}
	return s
}

func largePod(i int) *corev1.Pod {
	name := v1.PodName(jobName(i%largeJobs), "worker", int32(i/largeJobs))
	expected := name + "-abcdefgh"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: kube.JobNamespace, UID: types.UID(fmt.Sprintf("%036d", i)), Annotations: bulk(4000),
		Labels: map[string]string{v1.LabelFramework: jobName(i % largeJobs), v1.LabelTaskRole: "worker", v1.LabelTaskIndex: strconv.Itoa(i / largeJobs)}},
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: claim.Ref, ResourceClaimName: &expected}}, Containers: []corev1.Container{{Name: "app", Image: "image"}}}}
	if i < largeNodes*largeGPUs {
		p.Spec.NodeName, p.Status.Phase = nodeName(i/largeGPUs), corev1.PodRunning
	}
	return p
}

func largeJob(i int) *v1.Framework {
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: jobName(i), Namespace: kube.JobNamespace, UID: types.UID(fmt.Sprintf("%036d", i)), CreationTimestamp: metav1.Unix(int64(1_700_000_000+i), 0),
		Labels: map[string]string{v1.LabelUser: "user", v1.LabelVC: "default"}, Annotations: map[string]string{v1.AnnotationJobName: strconv.Itoa(i), v1.AnnotationGPUs: "1", v1.AnnotationConfig: strings.Repeat("text ", 800)}}}
	f.Spec.TaskRoles = []v1.TaskRole{{Name: "worker", TaskNumber: 1}}
	f.Status = &v1.FrameworkStatus{State: v1.AttemptPreparing}
	if i < largeNodes*largeGPUs {
		f.Status.State = v1.AttemptRunning
		f.Status.AttemptStatus.TaskRoleStatuses = []*v1.TaskRoleStatus{{Name: "worker", Counts: v1.TaskCounts{Total: 1, Running: 1}}}
	}
	return f
}

// most is the maximum memory of a follower in a large cluster, including the time when it reads all objects.
const most = 150 << 20

func TestALargeClusterTakesLittleMemory(t *testing.T) {
	tier.More(t, "it reads 60,000 objects")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	// Garbage isn't counted, because the collector runs late on a busy machine.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(most * 9 / 10))
	srv := httptest.NewServer(http.HandlerFunc(crowd))
	defer srv.Close()
	runtime.GC()
	var peak atomic.Uint64
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapInuse+m.StackInuse))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	f := followed(t, through(t, strings.TrimPrefix(srv.URL, "http://"), ""))
	c := until(t, f, "all of it", func(c *Cluster) bool {
		return len(c.Machines) == largeNodes && len(c.Jobs) == largeJobs && c.Counts.GPUsUsed == largeNodes*largeGPUs && c.Counts.Running == largeNodes*largeGPUs && len(c.Events) == MaxEvents
	})
	assert.Equal(t, "user/0", c.Machines[0].GPUs[0].Owner.Job)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d MiB are kept, %d MiB at most while all was read", m.HeapAlloc>>20, peak.Load()>>20)
	assert.Less(t, m.HeapAlloc, uint64(most))
	assert.Less(t, peak.Load(), uint64(most))
}

// large returns a follower with the tables of a large cluster. It watches nothing.
func large(tb testing.TB) *Follower {
	tb.Helper()
	c, err := kube.Open(kube.Options{Kubeconfig: emptyKubeconfig(tb)})
	require.NoError(tb, err)
	f, err := New(c, options(tb, c))
	require.NoError(tb, err)
	for _, k := range f.kinds {
		path := map[string]string{"nodes": "nodes", "pods": "pods", "resourceslices": "resourceslices", "resourceclaims": "resourceclaims", "frameworks": "frameworks"}[k.name]
		if path == "" {
			continue
		}
		_, n := kindOf(path)
		var all []any
		for i := range n {
			switch path {
			case "nodes":
				all = append(all, largeNode(i))
			case "pods":
				all = append(all, largePod(i))
			case "resourceslices":
				all = append(all, largeSlice(i))
			case "frameworks":
				all = append(all, largeJob(i))
			}
		}
		require.NoError(tb, k.store.(cache.ReflectorStore).Replace(all, "1"))
	}
	f.publish()
	return f
}

func emptyKubeconfig(tb testing.TB) string {
	tb.Helper()
	srv := httptest.NewServer(http.NotFoundHandler())
	tb.Cleanup(srv.Close)
	file := tb.TempDir() + "/kubeconfig"
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: t, clusters: [{name: t, cluster: {server: %q}}], users: [{name: t, user: {}}], contexts: [{name: t, context: {cluster: t, user: t}}]}\n", srv.URL)
	require.NoError(tb, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// BenchmarkAChangeOfOneJob measures the cost of one event in a large cluster: the row, the lists, the counts and the verdict.
func BenchmarkAChangeOfOneJob(b *testing.B) {
	f := large(b)
	i := 0
	for b.Loop() {
		i++
		fw := largeJob(5000)
		fw.Status.RetryPolicyStatus.TotalRetriedCount = int32(i)
		for _, k := range f.kinds {
			if k.name == "frameworks" {
				fw.ResourceVersion = strconv.Itoa(i + 1)
				require.NoError(b, k.store.(cache.ReflectorStore).Update(fw))
			}
		}
		was := f.Current()
		f.publish()
		if is := f.Current(); is.Jobs[0] != was.Jobs[0] || is == was {
			b.Fatal("another row was made again")
		}
	}
}

func TestOneChangeInALargeClusterMakesOneRow(t *testing.T) {
	f := large(t)
	was := f.Current()
	require.Len(t, was.Jobs, largeJobs)
	for _, k := range f.kinds {
		if k.name == "frameworks" {
			fw := largeJob(5000)
			fw.Status.RetryPolicyStatus.TotalRetriedCount = 9
			fw.ResourceVersion = "2"
			require.NoError(t, k.store.(cache.ReflectorStore).Update(fw))
		}
	}
	f.publish()
	is := f.Current()
	fresh := 0
	for i := range is.Jobs {
		if is.Jobs[i] != was.Jobs[i] {
			fresh++
			assert.Equal(t, int32(9), is.Jobs[i].Retries)
		}
	}
	assert.Equal(t, 1, fresh)
	assert.Same(t, &was.Machines[0], &is.Machines[0], "no machine changed")
}
