package logstore

import (
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// BenchmarkLargeLog reads windows of a log, and searches the whole log. The log has 64 MiB, or PAICTL_BENCH_LOG_MIB MiB. The benchmark reports the
// peak heap size in MB.
func BenchmarkLargeLog(b *testing.B) {
	mib := 64
	if n, err := strconv.Atoi(os.Getenv("PAICTL_BENCH_LOG_MIB")); err == nil {
		mib = n
	}
	folder := b.TempDir()
	s, err := Open(Options{Pods: b.TempDir(), Folder: folder, Namespace: "pai-jobs", Limits: Limits{PerTask: 2 << 30, Total: 2 << 30}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	x := large(b, s, filepath.Join(folder, uid, "app"), mib)
	for _, c := range []struct {
		name string
		at   string
		back bool
	}{{"start", "start", false}, {"end", "end", true}, {"middle", strconv.Itoa(mib << 19), true}} {
		b.Run(c.name, func(b *testing.B) {
			q, err := readWindowQuery(url.Values{"at": {c.at}, "before": {strconv.FormatBool(c.back)}, "lines": {"500"}})
			if err != nil {
				b.Fatal(err)
			}
			peak := peakOf(b)
			for b.Loop() {
				if _, err := x.window(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(peak(), "peak-MB")
		})
	}
	b.Run("search", func(b *testing.B) {
		q, err := readMatchQuery(url.Values{"match": {"(?i)loss 0\\.1234 "}})
		if err != nil {
			b.Fatal(err)
		}
		peak, found, steps := peakOf(b), 0, 0
		b.SetBytes(int64(mib) << 20)
		for b.Loop() {
			q.at, found, steps = place{}, 0, 0
			for {
				m, err := x.matches(b.Context(), q, time.Now)
				if err != nil {
					b.Fatal(err)
				}
				found, steps = found+len(m.Items), steps+1
				if q.at = (place{offset: m.To}); m.To >= m.End {
					break
				}
			}
		}
		b.ReportMetric(peak(), "peak-MB")
		b.ReportMetric(float64(found), "matches")
		b.ReportMetric(float64(steps), "steps")
	})
}

// peakOf samples the heap size until the returned function is called. That function returns the difference between the largest and the first heap
// size in MB.
func peakOf(b *testing.B) func() float64 {
	b.Helper()
	m := runtime.MemStats{}
	runtime.GC()
	runtime.ReadMemStats(&m)
	begin, most, stop, done := m.HeapInuse, m.HeapInuse, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			m := runtime.MemStats{}
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}()
	return func() float64 {
		close(stop)
		<-done
		return float64(most-begin) / 1e6
	}
}
