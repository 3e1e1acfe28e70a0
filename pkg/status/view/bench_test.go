package view

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
	"github.com/openpai/paictl/pkg/ui/tui"
	"github.com/openpai/paictl/test/tier"
)

// changesOf returns two models as watches create them. One job differs, and all other jobs are shared.
func changesOf(c *status.Cluster) [2]*status.Cluster {
	other := *c
	other.Jobs = append([]*status.Job(nil), c.Jobs...)
	j := *other.Jobs[7]
	j.Row = job.Row{Job: api.Job{User: j.User, Name: j.Name, UID: j.UID, State: string(job.Failed)}}
	other.Jobs[7] = &j
	return [2]*status.Cluster{c, &other}
}

// BenchmarkEventToFrame measures the time from a change to the drawn frame, with 1,000 machines, 8,000 GPUs and 10,000 jobs.
// The limit is 50 ms. At 20 changes per second, 2.5 ms for each change are 5 % of a core.
func BenchmarkEventToFrame(b *testing.B) {
	c := statustest.Cluster(statustest.Large())
	models := changesOf(c)
	for _, f := range []struct {
		name string
		keys []string
	}{
		{"overview", nil}, {"machines", []string{"2"}}, {"heat map", []string{"3"}}, {"jobs", []string{"6"}}, {"job", []string{"6", "enter"}}, {"events", []string{"8"}},
		{"jobs filtered", []string{"6", "/", "running !alice", "enter"}}, {"jobs sorted", []string{"6", "o", "o", "o"}}, {"machines sorted", []string{"2", "o", "o", "o"}},
	} {
		b.Run(f.name, func(b *testing.B) {
			m := New(b.Context(), Options{Source: &fixed{}, Actions: &actions{}, Palette: tui.NewPalette(tui.TrueColour, false), Now: func() time.Time { return statustest.Now }})
			m.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
			m.Update(changedMsg{c})
			for _, k := range f.keys {
				if _, ok := named[k]; ok {
					m.Update(keyOf(k))
					continue
				}
				for _, r := range k {
					m.Update(keyOf(string(r)))
				}
			}
			_ = m.View()
			n := 0
			for b.Loop() {
				n++
				m.Update(changedMsg{models[n%2]})
				_ = m.View()
			}
			each := b.Elapsed() / time.Duration(n)
			b.ReportMetric(float64(each)/1e6, "ms/frame")
			b.ReportMetric(float64(each)*20/1e9*100, "%core@20/s")
		})
	}
}

// TestMemoryOfALargeCluster checks the memory limit for the model and the view together.
func TestMemoryOfALargeCluster(t *testing.T) {
	tier.More(t, "large")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := statustest.Cluster(statustest.Large())
	m := New(t.Context(), Options{Source: &fixed{}, Actions: &actions{}, Palette: tui.NewPalette(tui.TrueColour, false), Now: func() time.Time { return statustest.Now }})
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
	models := changesOf(c)
	for i := range 200 {
		m.Update(changedMsg{models[i%2]})
		m.Update(keyOf(fmt.Sprint(i%8 + 1)))
		_ = m.View()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	mib := float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20)
	t.Logf("%.1f MiB are held by the model and the view", mib)
	if mib > 100 {
		t.Errorf("%.1f MiB are held, 100 leave room for the program in 150", mib)
	}
	runtime.KeepAlive(m)
}
