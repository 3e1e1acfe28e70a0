package scale

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
)

// way is one of the ways to run the same tasks.
type way struct {
	name   string
	submit func(w *jobsWorld, name string, tasks int) error
	ended  func(w *jobsWorld) (int, error) // how many jobs have
	remove func(w *jobsWorld) error
}

func ways() []way {
	return []way{
		{"paictl", (*jobsWorld).submit, (*jobsWorld).endedFrameworks, (*jobsWorld).removeFrameworks},
		{"indexed-jobs", (*jobsWorld).submitIndexed, (*jobsWorld).endedIndexed, (*jobsWorld).removeIndexed},
		{"bare-pods", (*jobsWorld).submitPods, (*jobsWorld).endedPods, (*jobsWorld).removePods},
	}
}

// BenchmarkJobs measures the cost of a task, as processor time of each program and as memory of the API server. It runs jobs with 1 to 8 tasks with
// paictl, as Indexed Jobs of Kubernetes, and as pods without a controller. The ways run one after the other, each with a separate control plane. The
// processor time of idle programs is subtracted. PAICTL_SCALE_JOBS is the number of jobs, and PAICTL_SCALE_WAY limits the run to one way.
// PAICTL_SCALE_CONTROLLER_QPS lets kube-controller-manager create the pods of Indexed Jobs faster than with its usual 20 requests per second.
func BenchmarkJobs(b *testing.B) {
	n := number(b, "PAICTL_SCALE_JOBS", 100)
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = tasksOf(i)
	}
	eachWay(b, sizes)
}

// BenchmarkOneJob makes the same measurements for one job with PAICTL_SCALE_TASKS tasks. The cost of a task should depend little on the number of
// tasks.
func BenchmarkOneJob(b *testing.B) {
	eachWay(b, []int{number(b, "PAICTL_SCALE_TASKS", 120)})
}

func eachWay(b *testing.B, sizes []int) {
	for _, way := range ways() {
		if only := os.Getenv("PAICTL_SCALE_WAY"); only != "" && only != way.name {
			continue
		}
		b.Run(way.name, func(b *testing.B) {
			for range b.N {
				newJobs(b).measure(b, way, sizes)
			}
		})
	}
}

// BenchmarkSubmissions measures how fast PAICTL_SCALE_JOBS jobs with 1 to 8 tasks are accepted, with eight concurrent submissions, and the processor
// time of a submission. No controller runs, because it would run the jobs on the same processors.
func BenchmarkSubmissions(b *testing.B) {
	n := number(b, "PAICTL_SCALE_JOBS", 100)
	for range b.N {
		w := newJobs(b)
		time.Sleep(5 * time.Second) // until the work of their start is done
		idle := idle(15 * time.Second)
		before, start := usage(), time.Now()
		require.NoError(b, w.submitAll(n))
		took, used := time.Since(start).Seconds(), usage()
		b.ReportMetric(float64(n)/took, "submissions/s")
		for name, s := range used {
			if ms := 1000 * (s - before[name] - took*idle[name]) / float64(n); ms >= 0.1 {
				b.ReportMetric(ms, strings.ReplaceAll(name, " ", "-")+"-ms/submission")
			}
		}
	}
}

// BenchmarkLiveJobs measures the memory of the controller while PAICTL_SCALE_JOBS jobs with 1 to 8 tasks run at the same time. It measures the
// memory again after another controller has read the jobs.
func BenchmarkLiveJobs(b *testing.B) {
	n := number(b, "PAICTL_SCALE_JOBS", 100)
	for range b.N {
		w := newJobs(b)
		w.runs = "24h"
		w.start()
		none := w.memory()
		tasks := 0
		for i := range n {
			tasks += tasksOf(i)
		}
		start := time.Now()
		require.NoError(b, w.submitAll(n))
		b.ReportMetric(float64(n)/time.Since(start).Seconds(), "submissions/s")
		require.NoError(b, w.waitRunning(tasks, time.After(limit(tasks))), "%s", w.controller.text())
		time.Sleep(5 * time.Second) // until the work of the last one is done
		b.ReportMetric(float64(w.memory()), "peak-MiB")
		b.ReportMetric(float64(none), "empty-MiB")
		w.kill()
		w.peak = 0
		w.start()
		time.Sleep(5 * time.Second)
		b.ReportMetric(float64(w.memory()), "again-MiB")
		b.Logf("%d tasks of %d jobs run", tasks, n)
	}
}

// ofTasks maps the programs that are measured to their names in the report. The other programs belong to this test.
var ofTasks = map[string]string{
	"kube-apiserver": "apiserver", "etcd": "etcd", "pai-controller": "controller", "kube-controller-manager": "kube-controllers", "kwok": "kwok",
}

// measure runs jobs with the given numbers of tasks in one way, and then removes them.
func (w *jobsWorld) measure(b *testing.B, way way, sizes []int) {
	b.Helper()
	w.start()
	n, tasks := len(sizes), 0
	for _, size := range sizes {
		tasks += size
	}
	time.Sleep(5 * time.Second) // until the work of their start is done
	idle := idle(15 * time.Second)
	report := func(what string, before times, start time.Time) {
		took, used, total := time.Since(start).Seconds(), usage(), 0.0
		for name, short := range ofTasks {
			ms := 1000 * (used[name] - before[name] - took*idle[name]) / float64(tasks)
			total += ms
			b.ReportMetric(ms, what+"-"+short+"-ms/task")
		}
		b.ReportMetric(total, what+"-ms/task")
		b.ReportMetric(float64(tasks)/took, what+"-tasks/s")
	}
	requests := w.requests()
	before, start := usage(), time.Now()
	g := errgroup.Group{}
	g.SetLimit(8)
	for i, size := range sizes {
		g.Go(func() error { return way.submit(w, fmt.Sprintf("job-%d", i), size) })
	}
	require.NoError(b, g.Wait())
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "submissions/s")
	end := time.After(limit(tasks))
	require.NoError(b, w.waitRan(tasks, end), "%s", w.controller.text())
	for have := 0; have < n; time.Sleep(200 * time.Millisecond) {
		var err error
		have, err = way.ended(w)
		require.NoError(b, err)
	}
	report("run", before, start)
	b.ReportMetric(float64(most("kube-apiserver")), "apiserver-MiB")
	b.ReportMetric(float64(w.memory()), "controller-MiB")
	made := w.requests().since(requests)
	b.ReportMetric(float64(made.total())/float64(tasks), "calls/task")
	b.Logf("%d tasks of %d jobs: calls of the API: %s", tasks, n, made)
	requests, before, start = w.requests(), usage(), time.Now()
	require.NoError(b, way.remove(w))
	for left := 1; left > 0; time.Sleep(2 * time.Second) { // also waits for the work that follows the last one
		pods, err := w.c.Client.CoreV1().Pods(kube.JobNamespace).List(b.Context(), metav1.ListOptions{Limit: 1})
		require.NoError(b, err)
		left = len(pods.Items)
	}
	report("remove", before, start)
	b.Logf("and to remove them: %s", w.requests().since(requests))
}

// requests returns the numbers of the requests that the API server has handled. It leaves out watches, and requests for leases and nodes.
func (w *jobsWorld) requests() calls {
	return w.callsThat(func(verb, resource, _ string) bool {
		return resource != "" && verb != "WATCH" && resource != "leases" && resource != "nodes"
	})
}

func (w *jobsWorld) endedFrameworks() (n int, err error) {
	list, err := w.client.Frameworks.List(w.t.Context(), "")
	for i := range list {
		if s := list[i].Status; s != nil && s.CompletionTime != nil {
			n++
		}
	}
	return n, err
}

func (w *jobsWorld) removeFrameworks() error {
	list, err := w.client.Frameworks.List(w.t.Context(), "")
	for i := range list {
		err = errors.Join(err, w.client.Frameworks.Delete(w.t.Context(), list[i].Name, list[i].UID))
	}
	return err
}

// indexedPod returns the pod that a user of Kubernetes would write for the same task. It contains only the program, without the runtime.
func indexedPod(node string) corev1.PodTemplateSpec {
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{simulatedRun: "1s"}},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "app", Image: "none", Command: []string{"true"}, Resources: corev1.ResourceRequirements{Limits: limits}}},
		},
	}
}

// submitIndexed creates a Job of Kubernetes. If the Job has several tasks, it also creates the Service through which the tasks find each other.
func (w *jobsWorld) submitIndexed(name string, tasks int) error {
	ctx := w.t.Context()
	n, mode := int32(tasks), batchv1.IndexedCompletion
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{Completions: &n, Parallelism: &n, CompletionMode: &mode, Template: indexedPod(w.node(name, tasks))},
	}
	if tasks > 1 {
		j.Spec.Template.Spec.Subdomain = name
		if _, err := w.c.Client.CoreV1().Services(kube.JobNamespace).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{batchv1.JobNameLabel: name}},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	_, err := w.c.Client.BatchV1().Jobs(kube.JobNamespace).Create(ctx, j, metav1.CreateOptions{})
	return err
}

func (w *jobsWorld) endedIndexed() (n int, err error) {
	list, err := w.c.Client.BatchV1().Jobs(kube.JobNamespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range list.Items {
		if list.Items[i].Status.CompletionTime != nil {
			n++
		}
	}
	return n, nil
}

func (w *jobsWorld) removeIndexed() error {
	ctx, background := w.t.Context(), metav1.DeletePropagationBackground
	list, err := w.c.Client.BatchV1().Jobs(kube.JobNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		name := list.Items[i].Name
		err = errors.Join(err, w.c.Client.BatchV1().Jobs(kube.JobNamespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background}))
		if *list.Items[i].Spec.Completions > 1 {
			err = errors.Join(err, w.c.Client.CoreV1().Services(kube.JobNamespace).Delete(ctx, name, metav1.DeleteOptions{}))
		}
	}
	return err
}

func (w *jobsWorld) submitPods(name string, tasks int) error {
	for i := range tasks {
		p := indexedPod(w.node(name, tasks))
		p.Name = fmt.Sprintf("%s-%d", name, i)
		if _, err := w.c.Client.CoreV1().Pods(kube.JobNamespace).Create(w.t.Context(), &corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: p.Spec}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// endedPods returns a large number, because it is only called when all pods have ended.
func (*jobsWorld) endedPods() (int, error) { return 1 << 30, nil }

func (w *jobsWorld) removePods() error {
	ctx := w.t.Context()
	list, err := w.c.Client.CoreV1().Pods(kube.JobNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		err = errors.Join(err, w.c.Client.CoreV1().Pods(kube.JobNamespace).Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}))
	}
	return err
}

// node returns the node of a job. It distributes the jobs over the nodes.
func (*jobsWorld) node(name string, tasks int) string {
	return fmt.Sprintf("n-%d", 1+len(name)*tasks%16)
}

// most returns the maximum memory that any process of a program has used, in MiB.
func most(name string) int64 {
	var out int64
	for _, p := range programs() {
		if p.name == name {
			out = max(out, peak(p.pid))
		}
	}
	return out
}

// peak returns the maximum memory that a process has used, in MiB. It returns 0 if the memory can't be read.
func peak(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64) // 0 if it isn't a number
			return kib >> 10
		}
	}
	return 0
}
