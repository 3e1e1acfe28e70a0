package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// logStore is an archive that only accepts logs, and reports each saved log on a channel.
type logStore struct {
	noLogs
	saved chan api.LogKey
}

// SaveLog implements archive.Store.
func (s logStore) SaveLog(_ context.Context, key api.LogKey, data []byte, _ bool) error {
	if string(data) == "fake logs" { // the fake kubelet's log
		s.saved <- key
	}
	return nil
}

// worker1 returns the pod for an attempt of a task.
func worker1() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "f-worker-1", Namespace: "jobs", UID: "u",
			Labels:      map[string]string{v1.LabelFramework: "f", v1.LabelTaskRole: "worker", v1.LabelTaskIndex: "1"},
			Annotations: map[string]string{v1.AnnotationFrameworkAttempt: "2", v1.AnnotationTaskAttempt: "3"}},
	}
}

func TestALogIsKeptBeforeItsPodGoes(t *testing.T) {
	m, err := newMetrics(nil)
	require.NoError(t, err)
	pod := worker1()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.Now()}}}}
	cache, err := newCaches(clientfake.NewClientBuilder().Build(), "jobs")
	require.NoError(t, err)
	require.NoError(t, cache.pods.GetIndexer().Add(packed(t, pod)))
	store := logStore{saved: make(chan api.LogKey, 1)}
	now := time.Now()
	r := &reconciler{o: Options{Namespace: "jobs", Store: store, LogBytes: 1 << 20, Log: logr.Discard()}, cache: cache, metrics: m,
		pods: fake.NewClientset(pod).CoreV1(), now: func() time.Time { return now }}
	r.logs = newLogSaver(r)
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "fuid"}}
	log := logOf(pod)
	require.NotNil(t, log)
	d := machine.Deletion{Name: pod.Name, UID: pod.UID, Log: log}
	assert.False(t, r.logs.saved(f, d), "it has to be read first")

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.logs.run(ctx) }()
	assert.Equal(t, api.LogKey{Framework: "f", UID: "fuid", Role: "worker", Task: 1, Attempt: 2, TaskAttempt: 3}, <-store.saved)
	assert.Equal(t, "f", (<-r.logs.done).Object.GetName(), "the job is looked at again")
	assert.True(t, r.logs.saved(f, d))
	cancel()
	require.NoError(t, <-ended)

	other := machine.Deletion{Name: "f-worker-2", UID: "v", Log: log}
	assert.False(t, r.logs.saved(f, other))
	now = now.Add(time.Minute)
	assert.True(t, r.logs.saved(f, other), "a kubelet that doesn't answer delays a pod's end and no more")
	r.o.LogBytes = -1
	assert.True(t, r.logs.saved(f, machine.Deletion{UID: "w", Log: log}))
}

// finished returns a pod whose program has ended.
func finished(i int) *corev1.Pod {
	p := worker1()
	p.Name, p.UID = fmt.Sprintf("f-worker-%d", i), types.UID(fmt.Sprintf("u-%d", i))
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.Now()}}}}
	return p
}

// saverOf returns a reconciler whose cache contains a number of ended pods of the job f.
func saverOf(tb testing.TB, pods int, store archive.Store) *reconciler {
	tb.Helper()
	m, err := newMetrics(nil)
	require.NoError(tb, err)
	cache, err := newCaches(clientfake.NewClientBuilder().Build(), "jobs")
	require.NoError(tb, err)
	for i := range pods {
		p, err := packPod(finished(i))
		require.NoError(tb, err)
		require.NoError(tb, cache.pods.GetIndexer().Add(p))
	}
	r := &reconciler{o: Options{Namespace: "jobs", Store: store, LogBytes: 1 << 20, Log: logr.Discard()}, cache: cache, metrics: m,
		pods: fake.NewClientset().CoreV1(), now: time.Now}
	r.logs = newLogSaver(r)
	return r
}

func TestLogsThatFindNoRoomAreKeptLater(t *testing.T) {
	store := logStore{saved: make(chan api.LogKey, 4)}
	r := saverOf(t, 4, store)
	r.logs.work = make(chan logJob, 2)
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "fuid"}}
	require.False(t, r.keepLogs(f))
	assert.Len(t, r.logs.work, 2, "there is room for no more")

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.logs.run(ctx) }()
	for !r.keepLogs(f) {
		<-r.logs.done // at the latest when there is room again
	}
	cancel()
	require.NoError(t, <-ended)
	assert.Len(t, store.saved, 4, "no log is lost")
}

// BenchmarkLogsOfOneJob measures the controller's cost of saving the log of a pod, without reading the log.
func BenchmarkLogsOfOneJob(b *testing.B) {
	for _, pods := range []int{100, 1000, 4000} {
		b.Run(strconv.Itoa(pods), func(b *testing.B) {
			r := saverOf(b, pods, nil)
			f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "fuid"}}
			for b.Loop() {
				r.keepLogs(f)
				for range pods {
					j := <-r.logs.work
					r.logs.forget(j.d.UID)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods), "ns/log")
		})
	}
}

// slowStore is an archive that saves a log only when the test allows it.
type slowStore struct {
	noLogs
	asked chan api.LogKey
	may   chan struct{}
}

func (s slowStore) SaveLog(_ context.Context, key api.LogKey, _ []byte, _ bool) error {
	s.asked <- key
	<-s.may
	return nil
}

func TestTheEndOfAJobWaitsForTheRestOfItsLogs(t *testing.T) {
	m, err := newMetrics(nil)
	require.NoError(t, err)
	// The pod's machine has not reported yet that the pod runs.
	pod := worker1()
	pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodPending
	cache, err := newCaches(clientfake.NewClientBuilder().Build(), "jobs")
	require.NoError(t, err)
	require.NoError(t, cache.pods.GetIndexer().Add(packed(t, pod)))
	store := slowStore{asked: make(chan api.LogKey, 1), may: make(chan struct{})}
	var now atomic.Pointer[time.Time]
	begin := time.Now()
	now.Store(&begin)
	r := &reconciler{o: Options{Namespace: "jobs", Store: store, LogBytes: 1 << 20, Log: logr.Discard()}, cache: cache, metrics: m,
		pods: fake.NewClientset(pod).CoreV1(), now: func() time.Time { return *now.Load() }}
	r.logs = newLogSaver(r)
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "fuid"}}
	assert.Zero(t, r.logs.rest("f"))
	d := machine.Deletion{Name: pod.Name, UID: pod.UID, Log: logOf(pod)}
	assert.False(t, r.logs.saved(f, d))

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.logs.run(ctx) }()
	assert.Equal(t, int32(1), (<-store.asked).Task)
	assert.Equal(t, "f", (<-r.logs.done).Object.GetName())
	assert.True(t, r.logs.saved(f, d), "the pod may go while its log is read")
	assert.Equal(t, logRest, r.logs.rest("f"))
	later := begin.Add(2 * time.Second)
	now.Store(&later)
	assert.Equal(t, logRest-2*time.Second, r.logs.rest("f"))
	later2 := begin.Add(logRest)
	now.Store(&later2)
	assert.Zero(t, r.logs.rest("f"), "but not for ever")
	assert.Zero(t, r.logs.rest("other"))
	close(store.may)
	assert.Equal(t, "f", (<-r.logs.done).Object.GetName(), "the job is looked at again")
	assert.Zero(t, r.logs.rest("f"))
	cancel()
	require.NoError(t, <-ended)
}

func TestTheLogOfAPodThatOthersTakeAwayIsKept(t *testing.T) {
	agent := agentOf(func(_, _, _, _ string) (string, http.Header, error) { return "told to give way\n", http.Header{}, nil })
	for name, there := range map[string]bool{"while it is being ended": true, "when it is gone": false} {
		t.Run(name, func(t *testing.T) {
			m, err := newMetrics(nil)
			require.NoError(t, err)
			pod := worker1()
			pod.Spec.NodeName, pod.Status.Phase, pod.DeletionTimestamp, pod.Finalizers = "n", corev1.PodRunning, &metav1.Time{Time: time.Now()}, []string{"x"}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
			other := worker1()
			other.Name, other.UID = "f-worker-2", "v" // it isn't being removed
			cache, err := newCaches(clientfake.NewClientBuilder().Build(), "jobs")
			require.NoError(t, err)
			require.NoError(t, cache.pods.GetIndexer().Add(packed(t, pod)))
			store := bytesStore{Store: noLogs{}, saved: make(chan string, 2)}
			r := &reconciler{o: Options{Namespace: "jobs", Store: store, LogBytes: 1 << 20, Log: logr.Discard(), Logs: agent}, cache: cache, metrics: m, pods: fake.NewClientset(pod).CoreV1(), now: time.Now}
			r.logs = newLogSaver(r)
			r.logs.taken(&v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "fuid"}}, []*corev1.Pod{pod, other})
			if !there {
				require.NoError(t, cache.pods.GetIndexer().Delete(packed(t, pod)))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.logs.run(ctx) }()
			assert.Equal(t, "told to give way\nfalse", <-store.saved)
			cancel()
			require.NoError(t, <-ended)
			assert.Empty(t, store.saved, "of one that nobody takes away nothing is read")
		})
	}
}

// noLogs is an archive that contains no logs.
type noLogs struct{ archive.Store }

// Log implements archive.Store.
func (noLogs) Log(context.Context, api.LogKey) ([]byte, bool, error) {
	return nil, false, archive.ErrNotFound
}

// withEndedPod returns a reconciler and a pod. The pod's program has printed "done" and ended.
func withEndedPod(t *testing.T, store archive.Store) (*reconciler, *corev1.Pod) {
	t.Helper()
	agent := agentOf(func(_, _, _, _ string) (string, http.Header, error) { return "done\n", http.Header{}, nil })
	m, err := newMetrics(nil)
	require.NoError(t, err)
	pod := worker1()
	pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.Now()}}}}
	cache, err := newCaches(clientfake.NewClientBuilder().Build(), "jobs")
	require.NoError(t, err)
	require.NoError(t, cache.pods.GetIndexer().Add(packed(t, pod)))
	r := &reconciler{o: Options{Namespace: "jobs", Store: store, LogBytes: 1 << 20, Log: logr.Discard(), Logs: agent}, cache: cache, metrics: m, pods: fake.NewClientset(pod).CoreV1(), now: time.Now}
	r.logs = newLogSaver(r)
	return r, pod
}

func TestTheLogOfAProgramThatHasEndedIsKeptBeforeAnyoneTakesItsPod(t *testing.T) {
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "fuid"}}
	for name, before := range map[string]archive.Store{"first": noLogs{}, "the controller begins again": hasLogs{}} {
		t.Run(name, func(t *testing.T) {
			store := bytesStore{Store: before, saved: make(chan string, 2)}
			r, pod := withEndedPod(t, store)
			r.logs.taken(f, []*corev1.Pod{pod})
			r.logs.taken(f, []*corev1.Pod{pod})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.logs.run(ctx) }()
			require.Eventually(t, func() bool {
				r.logs.mu.Lock()
				defer r.logs.mu.Unlock()
				return r.logs.state[pod.UID].done
			}, 10*time.Second, time.Millisecond)
			assert.True(t, r.logs.saved(f, machine.Deletion{Name: pod.Name, UID: pod.UID, Log: logOf(pod)}), "the pod may go at once")
			cancel()
			require.NoError(t, <-ended)
			if name == "first" {
				assert.Equal(t, "done\nfalse", <-store.saved)
			}
			assert.Empty(t, store.saved, "once")
		})
	}
}

func TestALogThatCouldNotBeSavedAtTheEndIsAskedForAgainBeforeItsPodGoes(t *testing.T) {
	store := &failingStore{bytesStore: bytesStore{Store: noLogs{}, saved: make(chan string, 2)}}
	store.fails.Store(true)
	r, pod := withEndedPod(t, store)
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "fuid"}}
	d := machine.Deletion{Name: pod.Name, UID: pod.UID, Log: logOf(pod)}
	r.logs.taken(f, []*corev1.Pod{pod})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.logs.run(ctx) }()
	require.Eventually(t, func() bool {
		r.logs.mu.Lock()
		defer r.logs.mu.Unlock()
		s := r.logs.state[pod.UID]
		return s.done && s.failed
	}, 10*time.Second, time.Millisecond)
	r.logs.taken(f, []*corev1.Pod{pod})
	assert.Empty(t, r.logs.early, "it isn't tried again and again")
	store.fails.Store(false)
	assert.False(t, r.logs.saved(f, d), "the pod waits for its log")
	assert.Equal(t, "f", (<-r.logs.done).Object.GetName())
	assert.True(t, r.logs.saved(f, d))
	assert.NotEmpty(t, <-store.saved)
	cancel()
	require.NoError(t, <-ended)
}

// failingStore is an archive that fails if the test sets this.
type failingStore struct {
	bytesStore
	fails atomic.Bool
}

// SaveLog implements archive.Store.
func (s *failingStore) SaveLog(ctx context.Context, key api.LogKey, data []byte, truncated bool) error {
	if s.fails.Load() {
		return errors.New("the archive is unavailable")
	}
	return s.bytesStore.SaveLog(ctx, key, data, truncated)
}

// hasLogs is an archive that already contains every log.
type hasLogs struct{ archive.Store }

// Log implements archive.Store.
func (hasLogs) Log(context.Context, api.LogKey) ([]byte, bool, error) {
	return []byte("done\n"), false, nil
}

// bytesStore is an archive that passes each saved log to the test.
type bytesStore struct {
	archive.Store
	saved chan string
}

// SaveLog implements archive.Store.
func (s bytesStore) SaveLog(_ context.Context, _ api.LogKey, data []byte, truncated bool) error {
	s.saved <- fmt.Sprint(string(data), truncated)
	return nil
}

// agentOf is a function that responds like the agent of a machine.
type agentOf func(node, uid, container, query string) (string, http.Header, error)

// Get implements LogReader.
func (a agentOf) Get(_ context.Context, node, uid, container string, query url.Values) (*http.Response, error) {
	text, header, err := a(node, uid, container, query.Encode())
	var body io.Reader = strings.NewReader(text)
	if text == cutOff {
		body = io.MultiReader(body, iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	return &http.Response{Body: io.NopCloser(body), Header: header}, err
}

// cutOff is a log whose response ends with an error.
const cutOff = "one\ntwo\n"

func TestTheEndOfALogIsTheAgentsWhereTheKubeletHasRotatedIt(t *testing.T) {
	for name, c := range map[string]struct {
		agent LogReader
		want  string
	}{
		"an agent that has it": {agentOf(func(node, uid, container, query string) (string, http.Header, error) {
			return strings.Join([]string{node, uid, container, query}, " "), http.Header{}, nil
		}), "n u app tail=20000&times=falsefalse"},
		"more lines than were asked for": {agentOf(func(string, string, string, string) (string, http.Header, error) {
			return strings.Repeat("\n", logLines), http.Header{}, nil
		}), strings.Repeat("\n", logLines) + "true"},
		"an agent that knows that nothing was printed": {agentOf(func(string, string, string, string) (string, http.Header, error) {
			return "", http.Header{"X-Pai-Log-End": {"0"}, "X-Pai-Log-Gaps": {"0"}}, nil
		}), "false"},
		"an agent that is unavailable": {agentOf(func(string, string, string, string) (string, http.Header, error) {
			return "", nil, fmt.Errorf("%w: connection refused", logapi.ErrAway)
		}), "fake logstrue"},
		"an agent that has none": {agentOf(func(string, string, string, string) (string, http.Header, error) {
			return "", nil, logapi.ErrNoLog
		}), "fake logsfalse"},
		"an agent whose answer breaks off": {agentOf(func(string, string, string, string) (string, http.Header, error) {
			return cutOff, http.Header{}, nil
		}), "fake logstrue"},
		"no agent": {nil, "fake logsfalse"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := worker1()
			pod.Spec.NodeName = "n"
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.Now()}}}}
			cache, err := newCaches(clientfake.NewClientBuilder().Build(), "jobs")
			require.NoError(t, err)
			require.NoError(t, cache.pods.GetIndexer().Add(packed(t, pod)))
			store := bytesStore{Store: noLogs{}, saved: make(chan string, 1)}
			r := &reconciler{o: Options{Namespace: "jobs", Store: store, LogBytes: 1 << 20, Log: logr.Discard(), Logs: c.agent}, cache: cache, pods: fake.NewClientset(pod).CoreV1(), now: time.Now}
			require.NoError(t, newLogSaver(r).copy(t.Context(), logJob{"f", "fuid", machine.Deletion{Name: pod.Name, UID: pod.UID, Log: logOf(pod)}, pod, false}))
			assert.Equal(t, c.want, <-store.saved)
		})
	}
}

func TestALogOfWhichTheKubeletHasNothingIsNotKeptAsAWholeOne(t *testing.T) {
	l := newLogSaver(&reconciler{o: Options{LogBytes: 1 << 20}})
	for _, c := range []struct {
		data string
		want bool
	}{{"", true}, {"a\n", false}} {
		_, truncated := l.best(t.Context(), worker1(), "app", []byte(c.data), false)
		assert.Equal(t, c.want, truncated, "%q", c.data)
	}
}
