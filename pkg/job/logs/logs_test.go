package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	"github.com/openpai/paictl/pkg/node/logstoretest"
)

const object = "0123456789abcdef0123456789abcdef"

// fake is an API server with one job, whose pods and logs the tests set.
type fake struct {
	t *testing.T

	mu        sync.Mutex
	changed   *sync.Cond
	framework *v1.Framework
	pods      []*corev1.Pod
	logs      map[types.UID]string // with stamps
	open      map[types.UID]bool   // its log continues
	archive   map[string]string    // by role/task/attempt/taskAttempt
	history   *api.JobDetail
	tails     []string // queries of logs
	kept      map[types.UID]*keptLog
	pages     int                 // that were asked for
	cut       int                 // pages that break off in the middle
	away      func(page int) bool // whether the agent is being renewed when a page is asked for; the first is 1
	dropped   func(page int, k *keptLog)
	agent     *logstoretest.Machine // n1, for questions by position; nil: its agent has an earlier release
}

// keptLog is a log that an agent keeps.
type keptLog struct {
	text        string
	start, gaps int
}

func newFake(t *testing.T, roles map[string]int32) (*fake, *job.Client) {
	t.Helper()
	f := &fake{t: t, logs: map[types.UID]string{}, open: map[types.UID]bool{}, archive: map[string]string{}, kept: map[types.UID]*keptLog{}, framework: &v1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: object, UID: "f", Labels: map[string]string{v1.LabelUser: "ann"}, Annotations: map[string]string{v1.AnnotationJobName: "train"}},
		Spec:       v1.FrameworkSpec{ExecutionType: v1.ExecutionStart}, Status: &v1.FrameworkStatus{State: v1.AttemptRunning}}}
	f.changed = sync.NewCond(&f.mu)
	for _, name := range []string{"master", "worker"} {
		if n := roles[name]; n > 0 {
			f.framework.Spec.TaskRoles = append(f.framework.Spec.TaskRoles, v1.TaskRole{Name: name, TaskNumber: n})
		}
	}
	s := httptest.NewServer(f)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	config := &rest.Config{Host: s.URL, QPS: -1}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	c, err := job.New(&kube.Cluster{Config: config, Client: client})
	require.NoError(t, err)
	return f, c
}

// pod adds or changes a pod. In the state waiting, its program hasn't begun.
func (f *fake) pod(role string, index, attempt int, state string, lines ...string) types.UID {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := v1.PodName(object, role, int32(index))
	uid := types.UID(fmt.Sprintf("%s-%d", name, attempt))
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: kube.JobNamespace, UID: uid,
		Labels:      map[string]string{v1.LabelFramework: object, v1.LabelTaskRole: role, v1.LabelTaskIndex: strconv.Itoa(index)},
		Annotations: map[string]string{v1.AnnotationFrameworkAttempt: strconv.Itoa(attempt), v1.AnnotationTaskAttempt: "0"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	status := corev1.ContainerStatus{Name: "app"}
	switch state {
	case "running":
		status.State.Running = &corev1.ContainerStateRunning{}
	case "ended":
		status.State.Terminated = &corev1.ContainerStateTerminated{}
	default:
		status.State.Waiting = &corev1.ContainerStateWaiting{}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	f.pods = append(without(f.pods, name), p)
	f.logs[uid] += strings.Join(lines, "")
	f.open[uid] = state == "running"
	f.changed.Broadcast()
	return uid
}

func without(pods []*corev1.Pod, name string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		if p.Name != name {
			out = append(out, p)
		}
	}
	return out
}

func (f *fake) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	f.changed.Broadcast()
}

// at returns a line of a log in the kubelet's format, written at the given second.
func at(second int, text string) string {
	return fmt.Sprintf("2026-01-02T03:04:%02d.000000001Z %s\n", second, text)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "/log"):
		f.serveLog(w, r)
	case strings.Contains(path, "/proxy/v1/machines/n1/logs/"):
		f.servePage(w, r)
	case strings.Contains(path, "/proxy/v1/machines/"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"NotFound","message":"no agent keeps the logs of this machine"}`)
	case strings.HasSuffix(path, "/frameworks/"+object):
		f.mu.Lock()
		defer f.mu.Unlock()
		f.answer(w, f.framework, f.framework != nil)
	case strings.HasSuffix(path, "/frameworks") && r.URL.Query().Get("watch") != "":
		f.wait(r, func() bool { return false })
	case strings.HasSuffix(path, "/pods") && r.URL.Query().Get("watch") != "":
		f.watchPods(w, r)
	case strings.HasSuffix(path, "/pods"):
		f.mu.Lock()
		defer f.mu.Unlock()
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, p := range f.pods {
			list.Items = append(list.Items, *p)
		}
		f.answer(w, list, true)
	case strings.Contains(path, "/pods/"):
		f.mu.Lock()
		defer f.mu.Unlock()
		p := f.find(path[strings.LastIndex(path, "/")+1:])
		f.answer(w, p, p != nil)
	case strings.HasSuffix(path, "/logs"):
		q := r.URL.Query()
		text, ok := f.archive[strings.Join([]string{q.Get("role"), q.Get("task"), q.Get("attempt"), q.Get("taskAttempt")}, "/")]
		if !ok {
			f.notFound(w)
			return
		}
		w.Header().Set("X-Pai-Truncated", "true")
		_, _ = io.WriteString(w, text)
	case strings.HasSuffix(path, "/proxy/v1/jobs/"+object), strings.HasSuffix(path, "/proxy/v1/jobs/f"):
		f.answer(w, f.history, f.history != nil)
	default:
		f.notFound(w)
	}
}

func (f *fake) answer(w http.ResponseWriter, v any, ok bool) {
	if !ok {
		f.notFound(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (f *fake) notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`)
}

func (f *fake) find(name string) *corev1.Pod {
	for _, p := range f.pods {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// wait waits until so returns true or the client disconnects. It holds the lock whenever it calls so, and releases the lock while it waits.
func (f *fake) wait(r *http.Request, so func() bool) {
	done := false
	go func() {
		<-r.Context().Done()
		f.change(func() { done = true })
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	for !done && !so() {
		f.changed.Wait()
	}
}

func (f *fake) serveLog(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	f.mu.Lock()
	p := f.find(parts[len(parts)-2])
	f.tails = append(f.tails, r.URL.Query().Get("tailLines"))
	f.mu.Unlock()
	if p == nil {
		f.notFound(w)
		return
	}
	if p.Status.ContainerStatuses[0].State.Waiting != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":"container \"app\" in pod is waiting to start: ContainerCreating"}`)
		return
	}
	sent := 0
	for {
		more := false
		f.wait(r, func() bool { more = f.open[p.UID]; return len(f.logs[p.UID]) > sent || !more })
		f.mu.Lock()
		text := f.logs[p.UID][sent:]
		f.mu.Unlock()
		sent += len(text)
		if _, err := io.WriteString(w, text); err != nil || r.Context().Err() != nil {
			return
		}
		w.(http.Flusher).Flush()
		if !more || r.URL.Query().Get("follow") == "" {
			return
		}
	}
}

// pageLines is how many lines a page of the fake agent has.
const pageLines = 3

// servePage responds like pai-logs behind the job controller.
func (f *fake) servePage(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	q := r.URL.Query()
	f.mu.Lock()
	f.pages++
	k := f.kept[types.UID(parts[len(parts)-2])]
	away := f.away != nil && f.away(f.pages)
	if f.dropped != nil {
		f.dropped(f.pages, k)
	}
	f.mu.Unlock()
	if away {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"code":"Unavailable","message":"the agent doesn't answer now"}`)
		return
	}
	if k == nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"NotFound","message":"the machine keeps no log of it"}`)
		return
	}
	if q.Get("view") != "" {
		f.serveView(w, r, parts[len(parts)-2])
		return
	}
	offset, _ := strconv.Atoi(q.Get("offset"))
	if q.Get("wait") != "" {
		f.wait(r, func() bool { return len(k.text) > offset })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	offset = max(offset, k.start)
	all := strings.SplitAfter(k.text[offset:], "\n")
	all = all[:len(all)-1]
	page := all[:min(pageLines, len(all))]
	next := offset + len(strings.Join(page, ""))
	if n, err := strconv.Atoi(q.Get("tail")); err == nil {
		page, next = all[max(len(all)-n, 0):], len(k.text)
	}
	for name, v := range map[string]int{logapi.HeaderStart: k.start, logapi.HeaderNext: next, logapi.HeaderEnd: len(k.text), logapi.HeaderGaps: k.gaps, logapi.HeaderLimit: 1 << 30} {
		w.Header().Set(name, strconv.Itoa(v))
	}
	for i, text := range page {
		if f.cut > 0 && i == len(page)-1 {
			f.cut--
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		if want := q.Get("stream"); want != "" && strings.Contains(text, "to stderr") != (want == "stderr") {
			continue // lines say of which they are
		}
		_, said, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
		if m := q.Get("match"); m == "" || regexp.MustCompile(m).MatchString(said) {
			_, _ = io.WriteString(w, text)
		}
	}
}

func (f *fake) watchPods(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	seen := map[*corev1.Pod]bool{}
	for r.Context().Err() == nil {
		var fresh []*corev1.Pod
		f.wait(r, func() bool {
			for _, p := range f.pods {
				if !seen[p] {
					fresh = append(fresh, p)
					seen[p] = true
				}
			}
			return len(fresh) > 0
		})
		for _, p := range fresh {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": p})
		}
		w.(http.Flusher).Flush()
	}
}

// result records the output, problems and notes of a test.
type result struct {
	mu       sync.Mutex
	out      bytes.Buffer
	problems []string
	notes    []string
}

func (r *result) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *result) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

func options(s Selection) (Options, *result) {
	r := &result{}
	return Options{Selection: s, Tail: -1, Out: r, Prefix: func(task string) string { return task + "| " },
		Problem: func(err error) { r.mu.Lock(); r.problems = append(r.problems, err.Error()); r.mu.Unlock() },
		Note:    func(text string) { r.mu.Lock(); r.notes = append(r.notes, text); r.mu.Unlock() }}, r
}

func resolve(t *testing.T, c *job.Client) *job.Job {
	t.Helper()
	j, err := c.Resolve(t.Context(), "ann", object)
	require.NoError(t, err)
	return j
}

var all = Selection{Task: All, Attempt: All}

func TestLogsOfSeveralTasksAreMergedByTime(t *testing.T) {
	f, c := newFake(t, map[string]int32{"master": 1, "worker": 2})
	f.pod("worker", 1, 0, "ended", at(2, "two"), at(5, "five"))
	f.pod("worker", 0, 0, "ended", at(3, "three"))
	f.pod("master", 0, 0, "ended", at(1, "one"), at(4, ""))
	o, r := options(all)
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, "master[0]| one\nworker[1]| two\nworker[0]| three\nmaster[0]| \nworker[1]| five\n", r.String())
	assert.Empty(t, r.problems)
}

func TestOneTaskIsWrittenAsItIs(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 2})
	f.pod("worker", 0, 0, "ended", at(1, "zero"))
	f.pod("worker", 1, 0, "ended", at(1, "one"), "no stamp\n", at(2, "end"))
	o, r := options(Selection{Role: "worker", Task: 1, Attempt: All})
	o.Tail = 7
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, "one\nno stamp\nend\n", r.String())
	assert.Equal(t, []string{"7"}, f.tails)
}

func TestWhatNoPodHasComesFromTheArchive(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.pod("worker", 0, 1, "ended", at(1, "second"))
	f.archive["worker/0/0/0"] = "a\nb\nc\n"
	f.history = &api.JobDetail{Job: api.Job{UID: "f"}, Attempts: []api.Attempt{{ID: 1, Tasks: []api.TaskAttempt{{Role: "worker", RoleObject: "worker", HasLog: true}}},
		{ID: 0, Tasks: []api.TaskAttempt{{Role: "worker", RoleObject: "worker", HasLog: true}}}}}
	for name, s := range map[string]Selection{"previous": {Task: All, Attempt: All, Previous: true}, "attempt": {Task: All, Attempt: 0}} {
		t.Run(name, func(t *testing.T) {
			o, r := options(s)
			o.Tail = 2
			require.NoError(t, write(t.Context(), c, resolve(t, c), o))
			assert.Equal(t, "b\nc\n", r.String())
			assert.Equal(t, []string{"worker[0]: its machine no longer has its log: this is the last part, from the archive"}, r.problems)
		})
	}
	o, _ := options(Selection{Task: All, Attempt: 7})
	err := write(t.Context(), c, resolve(t, c), o)
	require.EqualError(t, err, "ann/train has no attempt 7")
	assert.Equal(t, "see the attempts with: paictl job get ann/train", hint.Of(err), "another user may ask")
	f.change(func() { f.framework, f.pods = nil, nil })
	f.history.User, f.history.Name = "ann", "train"
	f.archive["worker/0/1/0"] = "kept\n"
	o, r := options(all)
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Contains(t, r.String(), "kept\n")
}

func TestWhatIsNotThereIsExplained(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 2})
	for name, x := range map[string]struct {
		s    Selection
		want string
	}{
		"no pods":     {all, "no task of ann/train has started yet"},
		"no role":     {Selection{Role: "boss", Task: All, Attempt: All}, `ann/train has no task role "boss"`},
		"no index":    {Selection{Task: 2, Attempt: All}, "ann/train has no task 2"},
		"no previous": {Selection{Task: All, Attempt: All, Previous: true}, "look for logs of earlier attempts: the job controller doesn't answer: it isn't installed"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := options(x.s)
			err := write(t.Context(), c, resolve(t, c), o)
			if name == "no pods" || name == "no previous" { // the job controller doesn't answer
				require.Error(t, err)
				return
			}
			require.EqualError(t, err, x.want)
			assert.NotEmpty(t, hint.Of(err))
		})
	}
	f.pod("worker", 0, 0, "waiting")
	f.pod("worker", 1, 0, "ended", at(1, "x"))
	o, r := options(all)
	require.NoError(t, write(t.Context(), c, resolve(t, c), o))
	assert.Equal(t, "worker[1]| x\n", r.String())
	assert.Equal(t, []string{"worker[0]: it hasn't started"}, r.problems)
}

func TestFollowingGoesOnOverRetriesUntilTheJobHasEnded(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 2})
	f.pod("worker", 0, 0, "running", at(1, "a"))
	o, r := options(all)
	o.Follow = true
	done := make(chan error, 1)
	j := resolve(t, c)
	go func() { done <- write(t.Context(), c, j, o) }()
	until := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(r.String(), text) }, time.Minute, 5*time.Millisecond, "%q", text)
	}
	until("worker[0]| a\n")
	f.pod("worker", 1, 0, "waiting")
	f.pod("worker", 1, 0, "running", at(2, "b"))
	until("worker[1]| b\n")
	f.pod("worker", 0, 0, "ended", at(3, "c"))
	until("worker[0]| c\n")
	f.pod("worker", 1, 0, "ended")
	f.pod("worker", 0, 1, "ended", at(4, "again"))
	until("worker[0]| again\n")
	f.change(func() {
		f.framework.Status.State = v1.Completed
		f.framework.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{}}
	})
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(60 * time.Second):
		t.Fatal("following goes on after the job has ended")
	}
	assert.Equal(t, []string{"attempt 1 of ann/train"}, r.notes)
	assert.Equal(t, 1, strings.Count(r.String(), "| a\n"))
}

func TestAJobsEndDoesNotWaitForALogThatSaysNothing(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.pod("worker", 0, 0, "running", at(1, "a")) // and its machine goes away
	f.change(func() {
		f.framework.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{}}
	})
	o, r := options(all)
	o.Follow, o.Patience = true, 50*time.Millisecond
	j := resolve(t, c)
	f.change(func() { f.framework.Status.State = v1.Completed })
	require.EqualError(t, write(t.Context(), c, j, o), "the logs of ann/train are not complete: the rest of at least one is missing, as said above")
	assert.Equal(t, "worker[0]| a\n", r.String())
	assert.Equal(t, []string{"ann/train has finished, but the end of a log doesn't arrive; read it later with: paictl job logs ann/train"}, r.problems)
}

// Times of lines can be equal or go back, because programs print to stdout and stderr from several threads, and clocks are corrected.
func TestLinesWithEqualOrEarlierStampsAreKept(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.pod("worker", 0, 0, "running", at(5, "a"), at(5, "b"), at(4, "c"), at(6, "d"))
	o, r := options(all)
	o.Follow = true
	j := resolve(t, c)
	f.pod("worker", 0, 0, "ended")
	f.change(func() {
		f.framework.Status.State = v1.Completed
		f.framework.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{}}
	})
	require.NoError(t, write(t.Context(), c, j, o))
	assert.Equal(t, "worker[0]| a\nworker[0]| b\nworker[0]| c\nworker[0]| d\n", r.String())
}

// slowly is a slow terminal. For each line, it takes longer than a finished job waits for a log that sends no lines.
type slowly struct{ *result }

const patient = 20 * time.Millisecond

func (s slowly) Write(p []byte) (int, error) {
	time.Sleep(5 * patient)
	return s.result.Write(p)
}

func TestAllThatWasPrintedIsWrittenHoweverSlowTheTerminal(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.pod("worker", 0, 0, "running", at(1, "a"), at(2, "b"), at(3, "c"))
	o, r := options(all)
	o.Follow, o.Patience, o.Out = true, patient, slowly{r}
	j := resolve(t, c)
	f.pod("worker", 0, 0, "ended")
	f.change(func() {
		f.framework.Status.State = v1.Completed
		f.framework.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{}}
	})
	require.NoError(t, write(t.Context(), c, j, o))
	assert.Equal(t, "worker[0]| a\nworker[0]| b\nworker[0]| c\n", r.String())
	assert.Empty(t, r.problems)
}

// write writes the selected logs with Lines and the options' own Write.
func write(ctx context.Context, c *job.Client, j *job.Job, o Options) error {
	return Lines(ctx, c, j, o, o.Write)
}
