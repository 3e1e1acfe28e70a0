package scale

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// ofPerson is the number of streams that each person has open, which is the limit of one token.
const ofPerson = 20

// BenchmarkServer measures a process of pai-server. People have PAICTL_SCALE_STREAMS streams of events open, each over a separate connection, and
// request PAICTL_SCALE_RATE lists of 100 jobs per second, for PAICTL_SCALE_SECONDS. There are PAICTL_SCALE_FRAMEWORKS live jobs,
// PAICTL_SCALE_ARCHIVED jobs in the archive, and PAICTL_SCALE_CHANGES changes per second. The clients run on the same machine.
func BenchmarkServer(b *testing.B) {
	live, ended := number(b, "PAICTL_SCALE_FRAMEWORKS", 200), number(b, "PAICTL_SCALE_ARCHIVED", 1000)
	streams, rate, seconds := number(b, "PAICTL_SCALE_STREAMS", 40), number(b, "PAICTL_SCALE_RATE", 20), number(b, "PAICTL_SCALE_SECONDS", 5)
	w := newJobs(b)
	w.start()
	require.NoError(b, w.submit("model", 1))
	w.waitEnded(1, 1)
	w.kill()
	w.fill(ended)
	w.copies("model", 0, live-1)
	w.start()
	s := w.serve((streams + ofPerson - 1) / ofPerson)

	s.measure(b, "page-of-100", 20, "/api/v3/jobs?limit=100")
	s.measure(b, "page-of-5000", 5, "/api/v3/jobs?limit=5000")
	s.measure(b, "page-of-archive", 20, "/api/v3/jobs?limit=100&cursor="+s.deep(b))

	quiet := s.memory(b)
	told := s.watch(b, streams)
	begin := s.memory(b)
	before := usage()["pai-server"]
	changes := w.changing(b, number(b, "PAICTL_SCALE_CHANGES", 2))
	times, late, half := s.load(b, rate, time.Duration(seconds)*time.Second)
	changed := changes()
	end := s.memory(b)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(times, 50), "p50-ms")
	b.ReportMetric(ms(times, 99), "p99-ms")
	b.ReportMetric(ms(times, 100), "max-ms")
	b.ReportMetric(float64(late), "late")
	b.ReportMetric(float64(quiet), "quiet-MB")
	b.ReportMetric(float64(begin), "begin-MB")
	b.ReportMetric(float64(half), "half-MB")
	b.ReportMetric(float64(end), "end-MB")
	b.ReportMetric((usage()["pai-server"]-before)/float64(seconds), "cores")
	b.ReportMetric(float64(changed), "changes")
	b.ReportMetric(float64(told.Load()), "events")
	require.GreaterOrEqual(b, told.Load(), int64(changed*streams*9/10), "each stream is told")
}

// served is a process of pai-server, with the tokens of people who may see all jobs.
type served struct {
	*servertest.Program
	tokens []string
}

// serve starts the server, and adds n people.
func (w *jobsWorld) serve(n int) *served {
	w.t.Helper()
	d, err := people.Open(w.c.Config, people.Options{})
	require.NoError(w.t, err)
	require.NoError(w.t, d.Prepare(w.t.Context()))
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	require.NoError(w.t, clientcmd.WriteToFile(w.c.Raw, kubeconfig))
	s := &served{Program: servertest.Run(w.t, w.c, kubeconfig, map[string]any{"limits": map[string]any{"perTokenMinute": 100_000}}, "--job-controller", w.controller.url, "--scheduler", "http://127.0.0.1:1")}
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	go func() { _ = d.Run(ctx) }()
	require.NoError(w.t, d.Load(ctx))
	tokens, err := token.Open(w.c.Config, d, token.Options{})
	require.NoError(w.t, err)
	require.NoError(w.t, tokens.Load(ctx))
	_, err = d.PutGroup(ctx, &v1.Group{Spec: v1.GroupSpec{Name: "lab", VirtualClusters: []v1.VCGrant{{Name: "default", SeeJobs: true}}}})
	require.NoError(w.t, err)
	for i := range max(n, 1) {
		_, err := d.Add(ctx, people.NewUser{Name: fmt.Sprint("person", i), Groups: []string{"lab"}})
		require.NoError(w.t, err)
		var p *people.Person
		require.NoError(w.t, w.wait(time.After(time.Minute), func() (err error) { p, err = d.Person(fmt.Sprint("person", i)); return err }))
		made, err := tokens.Application(ctx, p, token.New{})
		require.NoError(w.t, err)
		s.tokens = append(s.tokens, made.Token.Reveal())
	}
	return s
}

// deep returns a cursor in the middle of the archive.
func (s *served) deep(b *testing.B) string {
	b.Helper()
	cursor := ""
	for range 3 {
		a := s.Do("GET", "/api/v3/jobs?limit=5000&cursor="+cursor, s.tokens[0], "")
		require.Equal(b, http.StatusOK, a.Status, a.Body)
		page := struct{ Next string }{}
		a.Into(&page)
		if page.Next == "" {
			break
		}
		cursor = page.Next
	}
	return cursor
}

// measure requests a page n times, and prints how long the requests take.
func (s *served) measure(b *testing.B, name string, n int, path string) {
	b.Helper()
	var times []time.Duration
	rows := 0
	for range n {
		start := time.Now()
		a := s.Do("GET", path, s.tokens[0], "")
		times = append(times, time.Since(start))
		require.Equal(b, http.StatusOK, a.Status, a.Body)
		page := struct{ Items []json.RawMessage }{}
		a.Into(&page)
		rows = len(page.Items)
	}
	b.ReportMetric(ms(times, 50), name+"-ms")
	b.Logf("%s: %d rows, p50 %.1f ms, most %.1f ms", name, rows, ms(times, 50), ms(times, 100))
}

// ms returns a percentile of times in milliseconds, or 0 if there are no times.
func ms(times []time.Duration, percent int) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[min(len(sorted)-1, len(sorted)*percent/100)].Microseconds()) / 1000
}

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// memory returns the resident memory of the process, in MB.
func (s *served) memory(b *testing.B) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
	require.NoError(b, err)
	found := resident.FindSubmatch(text)
	require.NotNil(b, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(b, err)
	return n / 1000
}

// watch opens n streams. It counts the jobs that the streams send after their lists.
func (s *served) watch(b *testing.B, n int) *atomic.Int64 {
	b.Helper()
	told := &atomic.Int64{}
	var open sync.WaitGroup
	slots := make(chan struct{}, 20) // the limit of streams that begin at a time
	for i := range n {
		open.Add(1)
		go func() {
			slots <- struct{}{}
			begun := sync.OnceFunc(func() { open.Done(); <-slots })
			defer begun()
			if err := s.stream(b.Context(), s.tokens[i/ofPerson], told, begun); err != nil && b.Context().Err() == nil {
				b.Errorf("a stream has ended: %v", err)
			}
		}()
	}
	open.Wait()
	require.False(b, b.Failed(), "all streams are open")
	return told
}

// single returns a client that uses a new HTTP/1.1 connection for each request.
func (s *served) single() *http.Client {
	own := s.Client.Transport.(*http.Transport).Clone()
	own.ForceAttemptHTTP2, own.DisableKeepAlives = false, true
	own.TLSClientConfig.NextProtos = []string{"http/1.1"}
	own.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	return &http.Client{Transport: own}
}

func (s *served) stream(ctx context.Context, token string, told *atomic.Int64, ready func()) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v3/jobs/watch?limit=100", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.single().Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	complete := false
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == "event: ready" && !complete:
			complete = true
			ready()
		case line == "event: job" && complete:
			told.Add(1)
		case line == "event: end":
			return errors.New("the server has ended it")
		}
	}
	return lines.Err()
}

// changing changes jobs at a constant rate until stop is called. stop returns the number of changes.
func (w *jobsWorld) changing(b *testing.B, perSecond int) (stop func() int) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan int, 1)
	go func() {
		n := 0
		tick := time.NewTicker(time.Second / time.Duration(max(perSecond, 1)))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- n
				return
			case <-tick.C:
			}
			tags := map[string]any{"metadata": map[string]any{"annotations": map[string]string{fv1.AnnotationTags: fmt.Sprintf("load-%d", n)}}}
			if _, err := w.client.Frameworks.Patch(ctx, fv1.ObjectName("ann", fmt.Sprintf("model-%d", n%100)), types.MergePatchType, tags); err == nil {
				n++
			} else if ctx.Err() == nil {
				b.Errorf("change a job: %v", err)
			}
		}
	}()
	return func() int {
		cancel()
		n := <-ended
		time.Sleep(2 * time.Second) // until the last changes have arrived
		return n
	}
}

// load requests lists at a constant rate, whether or not earlier responses have arrived. It returns the response times, measured from the time when
// each request was due. late is the number of requests that this process sent more than a tenth of a second too late. half is the memory of the
// server in the middle of the measurement.
func (s *served) load(b *testing.B, rate int, d time.Duration) (times []time.Duration, late, half int) {
	b.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	begin, n := time.Now(), int(d.Seconds())*rate
	for i := range n {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		if time.Since(due) > 100*time.Millisecond {
			late++
		}
		if i == n/2 {
			half = s.memory(b)
		}
		all.Go(func() {
			err := s.list(b.Context(), s.tokens[i%len(s.tokens)])
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			if times = append(times, took); err != nil {
				b.Errorf("a list: %v", err)
			}
		})
	}
	all.Wait()
	return times, late, half
}

func (s *served) list(ctx context.Context, token string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v3/jobs?limit=100", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.Client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || strings.Count(string(body), `"framework":`) != 100 {
		return fmt.Errorf("%s, %d rows", resp.Status, strings.Count(string(body), `"framework":`))
	}
	return nil
}
