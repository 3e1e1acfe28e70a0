package barrier

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/node/podapi"
	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/process"
)

const token = "the-token"

// api implements the part of an API server that a watch of one ConfigMap needs. It rejects all other requests.
type api struct {
	*httptest.Server
	folder string

	mu      sync.Mutex
	object  []byte // the current event, or nil
	changed chan struct{}

	requests, messages, bytes atomic.Int64
	fail                      atomic.Int32 // status to answer with
	cut                       atomic.Bool  // end each watch right after it was opened
}

func newAPI(tb testing.TB) *api {
	tb.Helper()
	a := &api{changed: make(chan struct{}), folder: tb.TempDir()}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.Config.ErrorLog = nil
	a.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	a.StartTLS()
	tb.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	require.NoError(tb, os.WriteFile(filepath.Join(a.folder, "ca.crt"), ca, 0o600))
	require.NoError(tb, os.WriteFile(filepath.Join(a.folder, "token"), []byte(token+"\n"), 0o600))
	return a
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	status, cut := int(a.fail.Load()), a.cut.Load() // before the request counts: a test changes them then
	a.requests.Add(1)
	q := r.URL.Query()
	switch {
	case status != 0:
	case r.Header.Get("Authorization") != "Bearer "+token:
		status = http.StatusUnauthorized
	case r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces/pai-jobs/configmaps" ||
		q.Get("watch") != "true" || q.Get("fieldSelector") != "metadata.name=job-attempt":
		status = http.StatusForbidden
	}
	if status != 0 {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"kind":"Status","message":"told to say %d"}`, status)
		return
	}
	w.WriteHeader(http.StatusOK)
	flusher := http.NewResponseController(w)
	_ = flusher.Flush()
	if cut {
		return
	}
	var sent []byte
	for {
		a.mu.Lock()
		object, changed := a.object, a.changed
		a.mu.Unlock()
		if object != nil && string(object) != string(sent) {
			a.messages.Add(1) // first: a task that has read the message may check the count
			n, _ := w.Write(object)
			_ = flusher.Flush()
			a.bytes.Add(int64(n))
			sent = object
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (a *api) publish(tb testing.TB, p *peers.Peers) {
	tb.Helper()
	data, err := peers.Encode(p)
	require.NoError(tb, err)
	a.set(tb, map[string]any{"peers": data})
}

func (a *api) set(tb testing.TB, data map[string]any) {
	tb.Helper()
	e, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": map[string]any{
		"kind": "ConfigMap", "metadata": map[string]any{"name": "job-attempt", "resourceVersion": "7"}, "binaryData": data,
	}})
	require.NoError(tb, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.object = slices.Concat(e, []byte{'\n'})
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *api) wait(tb testing.TB, index int) *Wait {
	tb.Helper()
	return &Wait{
		Source:  &Client{API: &podapi.API{URL: a.URL, Folder: a.folder}, Namespace: "pai-jobs", Name: "job-attempt"},
		Attempt: 2, Role: "worker", Index: index, PodIP: address(index), Timeout: 2 * time.Minute,
		Log: func(format string, args ...any) { tb.Logf(format, args...) },
	}
}

func address(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }

func workers(attempt int32, n int) *peers.Peers {
	r := peers.Role{Name: "worker"}
	for i := range n {
		r.PodIPs = append(r.PodIPs, address(i))
		r.HostIPs = append(r.HostIPs, "192.168.0.1")
	}
	return &peers.Peers{Attempt: attempt, Roles: []peers.Role{r}}
}

// begin starts to wait in the background. It returns when the watch is open.
func begin(t *testing.T, a *api, w *Wait) <-chan error {
	t.Helper()
	before := a.requests.Load()
	done := make(chan error, 1)
	go func() {
		p, err := w.For(t.Context())
		if err == nil && p == nil {
			err = fmt.Errorf("no peers")
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return a.requests.Load() > before }, time.Minute, time.Millisecond)
	return done
}

func TestPeersThatAreThereAlreadyComeAtOnce(t *testing.T) {
	a := newAPI(t)
	a.publish(t, workers(2, 3))
	p, err := a.wait(t, 1).For(t.Context())
	require.NoError(t, err)
	assert.Equal(t, workers(2, 3), p)
	assert.EqualValues(t, 1, a.requests.Load())
}

func TestPeersArePushedWhenTheyArePublished(t *testing.T) {
	a := newAPI(t)
	a.set(t, map[string]any{}) // the attempt's ConfigMap, without peers
	done := begin(t, a, a.wait(t, 1))
	a.publish(t, workers(2, 3))
	require.NoError(t, <-done)
	assert.EqualValues(t, 1, a.requests.Load(), "one watch, nothing is asked for again")
}

func TestPeersOfAnotherAttemptOrWithAnotherAddressAreNotOurs(t *testing.T) {
	a := newAPI(t)
	type result struct {
		p   *peers.Peers
		err error
	}
	done := make(chan result, 1)
	w := a.wait(t, 1)
	go func() {
		p, err := w.For(t.Context())
		done <- result{p, err}
	}()
	moved := workers(2, 3)
	moved.Roles[0].PodIPs[1] = "10.9.9.9"
	for i, set := range []func(){
		func() { a.publish(t, workers(1, 3)) }, // the one before
		func() { a.publish(t, moved) },
		func() { a.set(t, map[string]any{"peers": base64.StdEncoding.EncodeToString([]byte("garbage"))}) },
		func() { a.publish(t, &peers.Peers{Attempt: 2}) },
	} {
		set()
		// Otherwise the next version could replace this version before it is sent.
		require.Eventually(t, func() bool { return a.messages.Load() > int64(i) }, time.Minute, time.Millisecond)
	}
	a.publish(t, workers(2, 3))
	assert.Equal(t, result{workers(2, 3), nil}, <-done)
}

func TestATaskThatWasAddedLaterDoesNotWait(t *testing.T) {
	a := newAPI(t)
	a.publish(t, workers(2, 3))
	_, err := a.wait(t, 7).For(t.Context())
	require.NoError(t, err)
}

func TestTheWatchIsOpenedAgainAfterItsConnectionIsLost(t *testing.T) {
	a := newAPI(t)
	a.cut.Store(true)
	done := begin(t, a, a.wait(t, 0))
	require.Eventually(t, func() bool { return a.requests.Load() >= 2 }, time.Minute, time.Millisecond)
	a.cut.Store(false)
	require.Eventually(t, func() bool { return a.requests.Load() >= 3 }, time.Minute, time.Millisecond)
	a.CloseClientConnections()
	a.publish(t, workers(2, 3))
	require.NoError(t, <-done)
}

func TestAnAPIServerInTroubleIsAskedAgain(t *testing.T) {
	a := newAPI(t)
	a.fail.Store(http.StatusServiceUnavailable)
	done := begin(t, a, a.wait(t, 0))
	a.publish(t, workers(2, 3))
	a.fail.Store(0)
	require.NoError(t, <-done)
}

func TestTheCodeTellsWhyThereAreNoPeers(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*testing.T, *api, *Wait)
		code    int
		want    string
	}{
		"others have no place":    {func(*testing.T, *api, *Wait) {}, 251, "not all tasks of the job have a machine"},
		"watches that end":        {func(_ *testing.T, a *api, _ *Wait) { a.cut.Store(true) }, 251, "not all tasks"},
		"no API server":           {func(_ *testing.T, _ *api, w *Wait) { w.Source.(*Client).API.URL = "https://127.0.0.1:1" }, 250, "can't be reached"},
		"an API server's error":   {func(_ *testing.T, a *api, _ *Wait) { a.fail.Store(500) }, 250, "told to say 500"},
		"a refusal":               {func(_ *testing.T, a *api, w *Wait) { a.fail.Store(403); w.refusedFor = time.Millisecond }, 252, "told to say 403"},
		"a refusal until the end": {func(_ *testing.T, a *api, _ *Wait) { a.fail.Store(403) }, 252, "told to say 403"},
		"no token": {func(t *testing.T, a *api, w *Wait) {
			require.NoError(t, os.Remove(filepath.Join(a.folder, "token")))
			w.refusedFor = time.Millisecond
		}, 252, "no such file"},
		"another authority": {func(t *testing.T, a *api, _ *Wait) {
			other := newOther(t)
			require.NoError(t, os.WriteFile(filepath.Join(a.folder, "ca.crt"), other, 0o600))
		}, 250, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			w := a.wait(t, 0)
			w.Timeout = 700 * time.Millisecond
			c.prepare(t, a, w)
			_, err := w.For(t.Context())
			for errors.Is(err, context.DeadlineExceeded) && w.Timeout < time.Minute {
				w.Timeout *= 4 // on a busy machine not one try came to its end
				_, err = w.For(t.Context())
			}
			require.ErrorContains(t, err, c.want)
			assert.Equal(t, c.code, exit.Code(err))
			assert.True(t, exit.IsRuntimeCode(err))
			assert.NotContains(t, err.Error(), token)
		})
	}
}

// newOther returns an unrelated certificate, which didn't sign the server's certificate.
func newOther(t *testing.T) []byte {
	t.Helper()
	dir, err := os.ReadFile(filepath.Join("testdata", "other-ca.crt"))
	require.NoError(t, err)
	return dir
}

func TestAStoppedTaskWaitsNoLonger(t *testing.T) {
	a := newAPI(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := a.wait(t, 0)
	done := make(chan error, 1)
	go func() { _, err := w.For(ctx); done <- err }()
	require.Eventually(t, func() bool { return a.requests.Load() > 0 }, time.Minute, time.Millisecond)
	cancel()
	err := <-done
	require.ErrorIs(t, err, process.ErrStopped)
	assert.Equal(t, 143, exit.Code(err))
}

// crowd opens n watches and then publishes the peers. It returns the time until the last task received the peers, and the
// processor time of all tasks and the server.
func crowd(tb testing.TB, a *api, n int) (took, cpu time.Duration) {
	tb.Helper()
	a.set(tb, map[string]any{})
	a.messages.Store(0)
	a.bytes.Store(0)
	start := a.requests.Load()
	var wg sync.WaitGroup
	var failed atomic.Value
	for i := range n {
		w := a.wait(tb, i)
		w.Timeout = 5 * time.Minute
		wg.Go(func() {
			if _, err := w.For(tb.Context()); err != nil {
				failed.Store(err.Error())
			}
		})
	}
	require.Eventually(tb, func() bool { return a.requests.Load() >= start+int64(n) && a.messages.Load() >= int64(n) },
		5*time.Minute, 10*time.Millisecond, "all have seen the ConfigMap without peers")
	began, used := time.Now(), cpuTime(tb)
	a.publish(tb, workers(2, n))
	wg.Wait()
	took, cpu = time.Since(began), cpuTime(tb)-used
	require.Nil(tb, failed.Load())
	return took, cpu
}

// cpuTime returns the CPU time of this process, which doesn't depend on the load of the machine.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u unix.Rusage
	require.NoError(tb, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestMessagesGrowWithTheNumberOfTasksAndNoFaster(t *testing.T) {
	for _, n := range []int{10, 100} {
		a := newAPI(t)
		crowd(t, a, n)
		assert.EqualValues(t, n, a.requests.Load(), "one request per task")
		assert.EqualValues(t, 2*n, a.messages.Load(), "the object at first and the peers")
	}
}

// BenchmarkBarrier measures how long a thousand tasks need to receive all addresses after the last address is known. The tasks
// and the API server run in this process.
func BenchmarkBarrier(b *testing.B) {
	for _, n := range []int{200, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var total, totalCPU time.Duration
			var messages, bytes int64
			for b.Loop() {
				a := newAPI(b)
				took, cpu := crowd(b, a, n)
				total, totalCPU = total+took, totalCPU+cpu
				messages, bytes = a.messages.Load(), a.bytes.Load()
			}
			b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/barrier")
			b.ReportMetric(float64(totalCPU.Microseconds())/float64(b.N*n), "cpu-us/task")
			b.ReportMetric(float64(messages)/float64(n), "messages/task")
			b.ReportMetric(float64(bytes)/float64(n), "B/task")
		})
	}
}

// BenchmarkDelivery measures the delivery of the message to a thousand tasks without decoding. In a cluster, each task decodes
// the message on a different machine (see BenchmarkDecode in pkg/runtime/peers).
func BenchmarkDelivery(b *testing.B) {
	const n = 1000
	var total, totalCPU time.Duration
	for b.Loop() {
		a := newAPI(b)
		a.set(b, map[string]any{})
		var wg sync.WaitGroup
		for range n {
			c := a.wait(b, 0).Source.(*Client)
			wg.Go(func() {
				defer c.API.Close()
				for done := false; !done && b.Context().Err() == nil; {
					done, _ = c.watch(b.Context(), 5*time.Minute, func() {}, func([]byte) bool { return true }) // again where a handshake took too long
				}
			})
		}
		require.Eventually(b, func() bool { return a.messages.Load() >= n }, 5*time.Minute, 10*time.Millisecond)
		began, used := time.Now(), cpuTime(b)
		a.publish(b, workers(2, n))
		wg.Wait()
		total, totalCPU = total+time.Since(began), totalCPU+cpuTime(b)-used
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/delivery")
	b.ReportMetric(float64(totalCPU.Microseconds())/float64(b.N*n), "cpu-us/task")
}

func TestErrorsOfAWatchAreErrors(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}`)
	}))
	defer s.Close()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "token"), []byte(token), 0o600))
	c := &Client{API: &podapi.API{URL: s.URL, Folder: folder}, Namespace: "n", Name: "x"}
	_, err := c.watch(t.Context(), time.Minute, func() {}, func([]byte) bool { return true })
	require.ErrorContains(t, err, "too old")
	assert.Contains(t, err.Error(), "410")
}
