package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/runtime/barrier"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/test/tier"
)

// simulatedRun is the annotation with the time that a simulated pod runs before it succeeds.
const simulatedRun = "paictl.openpai.org/simulated-run"

// number returns the number in an environment variable, or few if the variable isn't set.
func number(t testing.TB, variable string, few int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// TestJobsSubmittedAsFastAsAcceptedAllFinish submits PAICTL_SCALE_JOBS jobs with 1 to 8 tasks while the controller is killed ten times. Every task
// must run once, and the archive must contain all tasks.
func TestJobsSubmittedAsFastAsAcceptedAllFinish(t *testing.T) {
	tier.More(t, "etcd, an API server and controllers")
	n := number(t, "PAICTL_SCALE_JOBS", 30)
	t.Run("undisturbed", func(t *testing.T) { newJobs(t).run(n, 0) })
	t.Run("killed ten times", func(t *testing.T) { newJobs(t).run(n, 10) })
}

// run submits n jobs, kills the controller the given number of times, and waits for the end of the last job.
func (w *jobsWorld) run(n, kills int) {
	w.t.Helper()
	w.start()
	before, start := w.calls(), time.Now()
	tasks := 0
	for i := range n {
		tasks += tasksOf(i)
	}
	type result struct {
		took time.Duration
		err  error
	}
	all := make(chan result, 1)
	go func() { err := w.submitAll(n); all <- result{time.Since(start), err} }()
	w.killed(kills, tasks)
	submitted := <-all
	require.NoError(w.t, submitted.err)
	w.waitEnded(n, tasks)
	took := time.Since(start)
	calls := w.calls().since(before)
	w.t.Logf("%d jobs, %d tasks, controller killed %d times: submitted in %.1f s (%.0f/s), all ended %.1f s after the first (%.0f jobs/s, %.0f tasks/s); controller's memory at most %d MiB",
		n, tasks, kills, submitted.took.Seconds(), float64(n)/submitted.took.Seconds(), took.Seconds(), float64(n)/took.Seconds(), float64(tasks)/took.Seconds(), w.memory())
	w.t.Logf("calls of the API per task: %.1f: %s", float64(calls.total())/float64(tasks), calls)
	w.eachTaskOnce(tasks)
	w.archived(n, tasks)
}

// TestOneJobOfManyTasks runs one Framework with PAICTL_SCALE_TASKS tasks. It kills the controller during the run.
func TestOneJobOfManyTasks(t *testing.T) {
	tier.More(t, "etcd, an API server and controllers")
	tasks := number(t, "PAICTL_SCALE_TASKS", 120)
	w := newJobs(t)
	w.start()
	before, start := w.calls(), time.Now()
	require.NoError(t, w.submit("large", tasks))
	w.killed(10, tasks)
	w.waitEnded(1, tasks)
	calls := w.calls().since(before)
	t.Logf("one job of %d tasks: ended %.1f s after its submission, controller's memory at most %d MiB, %.1f calls of the API per task: %s",
		tasks, time.Since(start).Seconds(), w.memory(), float64(calls.total())/float64(tasks), calls)
	w.eachTaskOnce(tasks)
	w.archived(1, tasks)
}

// TestJobsThatHaveEndedCostNothing keeps PAICTL_SCALE_FRAMEWORKS completed jobs until their retention time ends. During that time, another job
// arrives and the controller is restarted.
func TestJobsThatHaveEndedCostNothing(t *testing.T) {
	tier.More(t, "etcd, an API server and controllers")
	n := number(t, "PAICTL_SCALE_FRAMEWORKS", 100)
	w := newJobs(t)
	w.start()
	require.NoError(t, w.submit("model", 4))
	w.waitEnded(1, 4)
	w.kill()
	w.copies("model", 0, n)
	start := time.Now()
	w.start()
	ready := time.Since(start)
	start, before := time.Now(), w.calls()
	require.NoError(t, w.submit("next", 4))
	require.NoError(t, w.waitRan(8, time.After(limit(n))), "%s", w.controller.text())
	t.Logf("%d jobs that have ended: the controller is ready after %.1f s, a job of 4 tasks has run %.1f s after its submission; memory %d MiB; calls since: %s",
		n, ready.Seconds(), time.Since(start).Seconds(), w.memory(), w.calls().since(before))
	calls := w.calls().since(before)
	assert.Less(t, calls.total(), 40, "those that have ended are left alone")
}

// copies creates completed Frameworks as copies of one of ann's jobs. Their names contain the numbers from first to end-1.
func (w *jobsWorld) copies(name string, first, end int) {
	w.t.Helper()
	model, err := w.client.Frameworks.Get(w.t.Context(), v1.ObjectName("ann", name))
	require.NoError(w.t, err)
	require.NotNil(w.t, model.Status.ArchivedTime)
	g := errgroup.Group{}
	g.SetLimit(8)
	for i := first; i < end; i++ {
		g.Go(func() error {
			f := model.DeepCopy()
			f.ObjectMeta = metav1.ObjectMeta{Name: v1.ObjectName("ann", fmt.Sprintf("%s-%d", name, i)), Namespace: model.Namespace, Labels: model.Labels, Annotations: model.Annotations}
			made, err := w.client.Frameworks.Create(w.t.Context(), f, false)
			if err != nil {
				return err
			}
			f.ObjectMeta = made.ObjectMeta
			body, err := json.Marshal(f)
			if err != nil {
				return err
			}
			return w.c.Client.Discovery().RESTClient().Put().AbsPath("/apis", v1.GroupVersion.String(), "namespaces", f.Namespace, "frameworks", f.Name, "status").
				Body(body).Do(w.t.Context()).Error()
		})
	}
	require.NoError(w.t, g.Wait())
}

// TestTasksLearnTheirPeersWhenAllHaveAnAddress watches the addresses of pods, and checks that all of them are published after that.
func TestTasksLearnTheirPeersWhenAllHaveAnAddress(t *testing.T) {
	tier.More(t, "etcd, an API server and controllers")
	w := newJobs(t)
	w.start()
	t.Logf("a barrier of 100 tasks opens %s after the last address", w.barrier("gang", 100))
	w.waitEnded(1, 100)
}

// BenchmarkBarrier measures the time from the last address of 200 tasks until a task can get all addresses, with the same watch.
func BenchmarkBarrier(b *testing.B) {
	const tasks = 200
	w := newJobs(b)
	w.start()
	var all []time.Duration
	for b.Loop() {
		all = append(all, w.barrier(fmt.Sprintf("gang-%d", len(all)), tasks))
	}
	w.waitEnded(len(all), len(all)*tasks)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Milliseconds()), "ms/barrier")
	b.ReportMetric(float64(all[len(all)-1].Milliseconds()), "ms-most")
}

// barrier submits a gang, and waits until the addresses of its tasks are published. It returns the time since the last address.
func (w *jobsWorld) barrier(name string, tasks int) time.Duration {
	w.t.Helper()
	published := w.watchPeers(v1.ObjectName("ann", name), tasks)
	require.NoError(w.t, w.submit(name, tasks))
	select {
	case d := <-published:
		return d
	case <-time.After(limit(tasks)):
		w.t.Fatal("no peers")
		return 0
	}
}

// jobsWorld is a control plane with simulated nodes, and a process of the job controller.
type jobsWorld struct {
	t          testing.TB
	c          *kube.Cluster
	client     *job.Client
	archive    string // the controller's database
	host       string // the address that it listens on; empty means the loopback address
	runs       string // how long tasks run
	controller *controller
	peak       int64 // MiB of ended controllers

	mu      sync.Mutex
	running map[string]bool            // names of pods that run, or did
	ran     map[string]map[string]bool // UIDs of pods that ended with success, by the pods' names
}

// newJobs starts a jobsWorld without the controller.
func newJobs(t testing.TB) *jobsWorld {
	t.Helper()
	w := &jobsWorld{t: t, c: serve(t, 16), archive: t.TempDir() + "/archive.db", runs: "1s", running: map[string]bool{}, ran: map[string]map[string]bool{}}
	w.c.Config.QPS = -1
	installJobs(t, w.c)
	var err error
	w.client, err = job.New(w.c)
	require.NoError(t, err)
	w.watch()
	return w
}

// watch starts to record which pods run, and which pods succeed.
func (w *jobsWorld) watch() {
	factory := informers.NewSharedInformerFactoryWithOptions(w.c.Client, 0, informers.WithNamespace(kube.JobNamespace))
	pods := factory.Core().V1().Pods().Informer()
	note := func(obj any) {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		switch p.Status.Phase {
		case corev1.PodRunning:
			w.running[p.Name] = true
		case corev1.PodSucceeded:
			if w.ran[p.Name] == nil {
				w.ran[p.Name] = map[string]bool{}
			}
			w.ran[p.Name][string(p.UID)] = true
		default:
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) }})
	require.NoError(w.t, err)
	go pods.RunWithContext(w.t.Context())
	require.True(w.t, cache.WaitForCacheSync(w.t.Context().Done(), pods.HasSynced))
}

// waitRunning waits until the pods of n tasks run or have run.
func (w *jobsWorld) waitRunning(n int, end <-chan time.Time) error {
	return w.waitCount(n, end, "run", func() int { return len(w.running) })
}

// waitRan waits until n tasks have succeeded.
func (w *jobsWorld) waitRan(n int, end <-chan time.Time) error {
	return w.waitCount(n, end, "have run", func() int { return len(w.ran) })
}

// waitCount waits until a recorded count is at least n.
func (w *jobsWorld) waitCount(n int, end <-chan time.Time, what string, count func() int) error {
	return w.wait(end, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if have := count(); have < n {
			return fmt.Errorf("%d of %d tasks %s", have, n, what)
		}
		return nil
	})
}

// waitEnded waits until all jobs have completed, with any result. It doesn't read Frameworks before all tasks have run, because repeated reads of
// thousands of Frameworks would slow down the measured programs.
func (w *jobsWorld) waitEnded(jobs, tasks int) {
	w.t.Helper()
	end := time.After(limit(tasks))
	err := w.waitRan(tasks, end)
	if err == nil {
		err = w.wait(end, func() error {
			list, err := w.client.Frameworks.List(w.t.Context(), "")
			have := 0
			for i := range list {
				if s := list[i].Status; s != nil && s.State == v1.Completed {
					have++
				}
			}
			if err != nil || have < jobs {
				return fmt.Errorf("%d of %d jobs have ended: %w", have, jobs, err)
			}
			return nil
		})
	}
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.controller.text())
	}
}

// wait repeats a check until the check returns no error, or until end.
func (w *jobsWorld) wait(end <-chan time.Time, ask func() error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-end:
			return err
		}
	}
}

// tasksOf returns the number of tasks of the i-th job.
func tasksOf(i int) int { return 1 + i%8 }

// submitAll submits n jobs, with eight concurrent submissions.
func (w *jobsWorld) submitAll(n int) error {
	g := errgroup.Group{}
	g.SetLimit(8)
	for i := range n {
		g.Go(func() error { return w.submit(fmt.Sprintf("job-%d", i), tasksOf(i)) })
	}
	return g.Wait()
}

// submit creates a job as "paictl job submit" does. The job's pods are already assigned to a node, because the scheduler would dominate the
// measurements. Other tests cover the scheduler.
func (w *jobsWorld) submit(name string, tasks int) error {
	text := fmt.Sprintf(`{protocolVersion: 2, type: job, name: %s, prerequisites: [{type: dockerimage, name: i, uri: none}],
taskRoles: {worker: {instances: %d, dockerImage: i, commands: ["true"], resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}}}}`, name, tasks)
	j, findings := protocol.Parse(name+".yaml", []byte(text))
	if len(findings) > 0 {
		return fmt.Errorf("read the job: %w", findings.Err())
	}
	objects, findings := render.Render(j, render.Options{User: "ann", Namespace: kube.JobNamespace, Cluster: render.Cluster{RuntimeImage: "none", PeersURL: "http://none/v1/peers"}, Now: time.Now()})
	if objects == nil {
		return fmt.Errorf("render the job: %w", findings.Err())
	}
	for i := range objects.Framework.Spec.TaskRoles {
		pod := &objects.Framework.Spec.TaskRoles[i].Task.Pod
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, simulatedRun, w.runs)
		pod.Spec.NodeName = w.node(name, tasks)
	}
	_, err := w.client.Submit(w.t.Context(), objects, job.SubmitOptions{})
	return err
}

// killed kills and restarts the controller the given number of times while tasks complete.
func (w *jobsWorld) killed(times, tasks int) {
	w.t.Helper()
	end := time.After(limit(tasks))
	for i := range times {
		require.NoError(w.t, w.waitRan((i+1)*tasks/(times+2), end), "%s", w.controller.text())
		w.kill()
		w.start()
	}
}

// eachTaskOnce fails the test unless exactly the given number of tasks has run, each task in only one pod.
func (w *jobsWorld) eachTaskOnce(tasks int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Len(w.t, w.ran, tasks)
	for name, uids := range w.ran {
		assert.Len(w.t, uids, 1, "%s has run in several pods", name)
	}
}

// archived fails the test unless the history contains all jobs, and all jobs and their tasks have succeeded.
func (w *jobsWorld) archived(jobs, tasks int) {
	w.t.Helper()
	var have, haveTasks int
	for cursor := ""; ; {
		var page api.JobPage
		w.get("/v1/jobs?limit=1000&cursor="+url.QueryEscape(cursor), &page)
		for i := range page.Items {
			one := &page.Items[i]
			assert.Equal(w.t, "succeeded", one.State, one.Name)
			have++
			haveTasks += one.Tasks
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	assert.Equal(w.t, jobs, have)
	assert.Equal(w.t, tasks, haveTasks)
	for _, name := range []string{"job-0", "job-7", "large"} {
		var d api.JobDetail
		if w.get("/v1/jobs/"+v1.ObjectName("ann", name), &d) != http.StatusOK {
			continue // it belongs to the other test
		}
		require.Len(w.t, d.Attempts, 1, name)
		assert.Len(w.t, d.Attempts[0].Tasks, d.Tasks, name)
		for i := range d.Attempts[0].Tasks {
			assert.Equal(w.t, v1.Completed, d.Attempts[0].Tasks[i].State, name)
		}
	}
}

// get sends a request to the controller's API, and decodes the response.
func (w *jobsWorld) get(path string, into any) (status int) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.controller.url+path, nil)
	require.NoError(w.t, err)
	secret, err := w.c.Client.CoreV1().Secrets(kube.SystemNamespace).Get(w.t.Context(), api.TokenSecret, metav1.GetOptions{})
	require.NoError(w.t, err)
	req.Header.Set(api.TokenHeader, string(secret.Data[api.TokenKey]))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		require.NoError(w.t, json.NewDecoder(resp.Body).Decode(into))
	}
	return resp.StatusCode
}

// watchPeers returns a channel that receives a duration. The duration begins when the last task gets its address, and ends when a task of the job
// gets all addresses.
func (w *jobsWorld) watchPeers(framework string, tasks int) <-chan time.Duration {
	w.t.Helper()
	out := make(chan time.Duration, 1)
	ctx, cancel := context.WithCancel(w.t.Context())
	factory := informers.NewSharedInformerFactoryWithOptions(w.c.Client, 0, informers.WithNamespace(kube.JobNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = v1.LabelFramework + "=" + framework }))
	var mu sync.Mutex
	var last time.Time
	var asks sync.Once
	addresses := map[string]bool{}
	ask := func(token string) {
		defer cancel()
		task := &barrier.Wait{
			Source: &barrier.Controller{URL: w.controller.tasks + "/v1/peers/" + framework, Token: token},
			Role:   "worker", Timeout: limit(tasks), Log: w.t.Logf,
		}
		p, err := task.For(ctx)
		now := time.Now()
		if !assert.NoError(w.t, err) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		assert.Len(w.t, addresses, tasks, "told before all have an address")
		assert.Len(w.t, p.Role("worker").PodIPs, tasks)
		out <- now.Sub(last)
	}
	w.handle(ctx, factory.Core().V1().Pods().Informer(), func(obj any) {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if p.Status.PodIP != "" && !addresses[p.Name] {
			addresses[p.Name], last = true, time.Now()
		}
		for _, e := range p.Spec.Containers[0].Env {
			if e.Name == spec.PeersTokenVariable {
				asks.Do(func() { go ask(e.Value) })
			}
		}
	})
	return out
}

func (w *jobsWorld) handle(ctx context.Context, i cache.SharedIndexInformer, note func(any)) {
	w.t.Helper()
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) }})
	require.NoError(w.t, err)
	go i.RunWithContext(ctx)
	require.True(w.t, cache.WaitForCacheSync(ctx.Done(), i.HasSynced))
}

// calls holds the numbers of requests that the API server has handled, by verb and resource.
type calls map[string]int

// calls counts the requests of the controller. It relies on the fact that only the controller creates and deletes pods. It leaves out the requests
// of submissions, of simulated kubelets, and of the control plane itself.
func (w *jobsWorld) calls() calls { return w.callsThat(ofController) }

// callsThat counts the requests for which a function returns true.
func (w *jobsWorld) callsThat(counts func(verb, resource, sub string) bool) calls {
	w.t.Helper()
	text, err := w.c.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(w.t.Context())
	require.NoError(w.t, err)
	out := calls{}
	for line := range strings.Lines(string(text)) {
		labels, ok := strings.CutPrefix(line, "apiserver_request_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			continue
		}
		verb, resource, sub := label(labels, "verb"), label(labels, "resource"), label(labels, "subresource")
		if counts(verb, resource, sub) {
			out[strings.Trim(verb+" "+resource+"/"+sub, "/")] += int(n)
		}
	}
	return out
}

func label(labels, name string) string {
	_, rest, _ := strings.Cut(","+labels, ","+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// ofController reports whether only the controller sends requests of this kind.
func ofController(verb, resource, sub string) bool {
	switch resource {
	case "pods":
		return verb == "POST" && sub == "" || verb == "DELETE" || verb == "DELETECOLLECTION" || sub == "log"
	case "frameworks":
		return verb != "POST" && verb != "LIST" && verb != "WATCH" && (sub == "status" || verb == "PUT" || verb == "PATCH")
	case "configmaps", "services", "serviceaccounts", "roles", "rolebindings":
		return verb != "LIST" && verb != "WATCH" && verb != "GET"
	case "events":
		return verb == "POST" || verb == "PATCH"
	}
	return false
}

func (c calls) since(before calls) calls {
	out := calls{}
	for k, n := range c {
		if d := n - before[k]; d > 0 {
			out[k] = d
		}
	}
	return out
}

func (c calls) total() (n int) {
	for _, v := range c {
		n += v
	}
	return n
}

// String lists the counts, the largest first.
func (c calls) String() string {
	keys := slices.SortedFunc(maps.Keys(c), func(a, b string) int { return c[b] - c[a] })
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%s %d", k, c[k]))
	}
	return strings.Join(parts, ", ")
}

// installJobs creates the objects that the chart job-controller contains, such as the namespaces and the custom resource.
func installJobs(t testing.TB, c *kube.Cluster) {
	t.Helper()
	kubetest.PriorityClasses(t, c)
	for _, name := range []string{kube.JobNamespace, kube.SystemNamespace} {
		_, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	body, err := os.Open("../../templates/charts/job-controller/files/crd.yaml")
	require.NoError(t, err)
	defer body.Close()
	data, err := io.ReadAll(body)
	require.NoError(t, err)
	err = c.Client.Discovery().RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		SetHeader("Content-Type", "application/yaml").Body(data).Do(t.Context()).Error()
	require.NoError(t, err)
	// The API server serves the custom resource only a moment later.
	path := "/apis/" + v1.GroupVersion.String() + "/namespaces/" + kube.JobNamespace + "/frameworks"
	require.Eventually(t, func() bool {
		return c.Client.Discovery().RESTClient().Get().AbsPath(path).Param("limit", "1").Do(t.Context()).Error() == nil
	}, time.Minute, 50*time.Millisecond)
}
