package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

func newMonitor(t *testing.T) *monitor {
	t.Helper()
	m, err := openMonitor(filepath.Join(t.TempDir(), "gpus.json"), "boot-1", slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	return m
}

// again returns the monitor of the next agent in the given boot.
func (m *monitor) again(t *testing.T, boot string) *monitor {
	t.Helper()
	out, err := openMonitor(m.file, boot, m.log, m.now)
	require.NoError(t, err)
	return out
}

// sick returns the faults of sick GPUs by GPU number.
func (m *monitor) sick() map[int32]string {
	out := map[int32]string{}
	gpus, _ := m.devices()
	for _, g := range gpus {
		if g.reason != "" {
			out[g.Index] = g.reason
		}
	}
	return out
}

// report returns a report of four working GPUs, modified by change.
func report(change func(*gpu.Report)) *gpu.Report {
	r := reportOf(4)
	change(r)
	return r
}

func TestWhatMakesAGPUSick(t *testing.T) {
	t.Parallel()
	event := func(xid int) func(*gpu.Report) {
		return func(r *gpu.Report) { r.Events = []gpu.Event{{Bus: busOf(1), At: time.Now(), XID: xid}} }
	}
	value := func(name string) func(*gpu.Report) {
		return func(r *gpu.Report) { r.GPUs[1].Values[name] = 1 }
	}
	const fabric = "its NVLink fabric isn't initialised: start nvidia-fabricmanager"
	for name, tt := range map[string]struct {
		change func(*gpu.Report)
		want   string // "" for a GPU that works
		stays  bool   // a report without it changes nothing
		told   bool   // though it makes no GPU sick
	}{
		"off the bus":                       {event(79), "XID 79: it has fallen off the bus; restart the machine", true, false},
		"memory":                            {event(48), "XID 48: its memory has an uncorrectable error; reset it, or restart the machine", true, false},
		"a program's mistake":               {event(31), "", false, true},
		"an unknown error":                  {event(999), "", false, true},
		"lost":                              {func(r *gpu.Report) { r.GPUs[1].Lost = true }, "it is lost: it doesn't answer; restart the machine", false, false},
		"missing":                           {func(r *gpu.Report) { r.GPUs = append(r.GPUs[:1], r.GPUs[2:]...) }, "it is lost: it doesn't answer; restart the machine", false, false},
		"unusable":                          {func(r *gpu.Report) { r.GPUs[1].Unusable = fabric }, fabric, false, false},
		"errors of its memory":              {value(gpu.DoubleBitVolatile), "its memory has uncorrectable errors; reset it, or restart the machine", false, false},
		"errors of its memory in its life":  {value(gpu.DoubleBitAggregate), "", false, false},
		"memory that was replaced":          {value(gpu.RowsRemapped), "", false, false},
		"memory that can't be replaced":     {value(gpu.RowRemapFailed), "it can no longer replace damaged memory; replace the GPU", false, false},
		"an error of a GPU that isn't here": {func(r *gpu.Report) { r.Events = []gpu.Event{{Bus: "ffff:00:00.0", XID: 79}} }, "", false, false},
		"heat":                              {func(r *gpu.Report) { r.GPUs[1].Values[gpu.Temperature] = 96 }, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMonitor(t)
			m.see(reportOf(4))
			_, changed := m.devices()
			m.see(report(tt.change))
			want := map[int32]string{}
			if tt.want != "" {
				want[1] = tt.want
			}
			assert.Equal(t, want, m.sick())
			select {
			case <-changed:
				assert.True(t, tt.want != "" || tt.told)
			default:
				assert.False(t, tt.want != "" || tt.told)
			}
			m.see(reportOf(4))
			if !tt.stays {
				want = map[int32]string{}
			}
			assert.Equal(t, want, m.sick())
		})
	}
}

func TestWhatEndsAnErrorThatTheDriverToldOnce(t *testing.T) {
	t.Parallel()
	broken := func(t *testing.T) *monitor {
		m := newMonitor(t)
		m.see(reportOf(4))
		m.see(report(func(r *gpu.Report) { r.Events = []gpu.Event{{Bus: busOf(1), At: time.Now(), XID: 79}} }))
		require.Len(t, m.sick(), 1)
		return m
	}
	t.Run("not the agent's start", func(t *testing.T) {
		t.Parallel()
		m := broken(t).again(t, "boot-1")
		m.see(reportOf(4))
		assert.Contains(t, m.sick()[1], "XID 79")
	})
	t.Run("the machine's start", func(t *testing.T) {
		t.Parallel()
		m := broken(t).again(t, "boot-2")
		m.see(reportOf(4))
		assert.Empty(t, m.sick())
	})
	t.Run("a reset", func(t *testing.T) {
		t.Parallel()
		m := broken(t)
		m.see(report(func(r *gpu.Report) { r.Events = []gpu.Event{{Bus: busOf(1)}} }))
		assert.Empty(t, m.sick())
		m = m.again(t, "boot-1")
		m.see(reportOf(4))
		assert.Empty(t, m.sick())
	})
	t.Run("another card", func(t *testing.T) {
		t.Parallel()
		m := broken(t)
		m.see(report(func(r *gpu.Report) { r.GPUs[1].UUID = "new" }))
		assert.Empty(t, m.sick())
	})
}

// If a GPU is missing, NVML numbers the remaining GPUs from 0.
func TestGPUsKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	m := newMonitor(t)
	m.see(reportOf(4))
	m = m.again(t, "boot-2")
	m.see(report(func(r *gpu.Report) {
		r.GPUs = append(r.GPUs[:1], r.GPUs[2:]...)
		for i := range r.GPUs {
			r.GPUs[i].Index = int32(i)
		}
	}))
	gpus, _ := m.devices()
	require.Len(t, gpus, 4)
	for i, g := range gpus {
		assert.Equal(t, int32(i), g.Index)
		assert.Equal(t, reportOf(4).GPUs[i].UUID, g.UUID)
		assert.Equal(t, i == 1, g.Lost)
	}
	// One new GPU uses the free slot. Another new GPU uses a new slot before all other slots.
	m.see(report(func(r *gpu.Report) {
		r.GPUs[1].UUID = "new"
		r.GPUs = append([]gpu.GPU{{Index: 0, Bus: "0000:00:00.0", UUID: "first"}}, r.GPUs...)
	}))
	gpus, _ = m.devices()
	require.Len(t, gpus, 5)
	assert.Equal(t, []string{"SIM-n1-0", "new", "first"}, []string{gpus[0].UUID, gpus[1].UUID, gpus[4].UUID})
	assert.Empty(t, m.sick())
}

// If a card is added, or replaced with another model, the addresses of all other cards may change.
func TestGPUsKeepTheirNumbersUnderOtherAddresses(t *testing.T) {
	t.Parallel()
	renamed := func(r *gpu.Report) {
		for i := range r.GPUs {
			r.GPUs[i].Bus = "0000:f" + r.GPUs[i].Bus[6:]
		}
	}
	numbers := func(m *monitor) (out []string) {
		gpus, _ := m.devices()
		for _, g := range gpus {
			out = append(out, fmt.Sprint(g.Index, " ", g.UUID))
		}
		return out
	}
	m := newMonitor(t)
	m.wanted = 4
	m.see(reportOf(4))
	before := numbers(m)
	m.see(report(func(r *gpu.Report) {
		renamed(r)
		r.GPUs[0], r.GPUs[3] = r.GPUs[3], r.GPUs[0]
		for i := range r.GPUs {
			r.GPUs[i].Index = int32(i)
		}
	}))
	assert.Equal(t, before, numbers(m))
	assert.Empty(t, m.sick())

	// The addresses shift as if a card was added before all other cards. Each card gets the address of the next card.
	for range 3 {
		m.see(report(func(r *gpu.Report) {
			for i := range r.GPUs {
				r.GPUs[i].Bus = busOf(int32(i + 1))
			}
		}))
		require.Equal(t, before, numbers(m))
		m.see(reportOf(4))
		require.Equal(t, before, numbers(m))
	}
	m.see(report(func(r *gpu.Report) { r.GPUs[0].UUID, r.GPUs[1].UUID = r.GPUs[1].UUID, r.GPUs[0].UUID }))
	assert.Equal(t, []string{"0 SIM-n1-1", "1 SIM-n1-0"}, numbers(m)[:2], "cards that change places take the places' numbers")
	m.see(reportOf(4))
	assert.Empty(t, m.sick())

	// One GPU is also replaced. Until the machine restarts, the old GPU may only be lost.
	exchanged := report(func(r *gpu.Report) {
		renamed(r)
		r.GPUs[1].UUID = "new"
	})
	m.see(exchanged)
	assert.Len(t, numbers(m), 5)
	assert.Len(t, m.sick(), 1)
	m = m.again(t, "boot-2")
	m.wanted = 4
	m.see(&gpu.Report{Driver: "550", GPUs: exchanged.GPUs[:3]})
	assert.Len(t, numbers(m), 5, "one is missing: it is the old one, as far as anyone knows")
	m.see(exchanged)
	assert.Len(t, numbers(m), 4)
	assert.Empty(t, m.sick())
}

// A user may try paictl with simulated GPUs first, and use the machine's own GPUs later.
func TestSimulatedGPUsAreForgottenWhereThereAreReal(t *testing.T) {
	t.Parallel()
	m := newMonitor(t)
	m.wanted = 2
	simulated := reportOf(8)
	for i := range simulated.GPUs {
		simulated.GPUs[i].Simulated = true
	}
	m.see(simulated)
	own := &gpu.Report{Driver: "535", GPUs: []gpu.GPU{{Index: 0, Bus: simulated.GPUs[6].Bus, UUID: "a"}, {Index: 1, Bus: "0000:0f:00.0", UUID: "b"}}}
	m.see(own)
	gpus, _ := m.devices()
	require.Len(t, gpus, 2)
	assert.Equal(t, []int32{0, 1}, []int32{gpus[0].Index, gpus[1].Index})
	assert.Equal(t, []string{"a", "b"}, []string{gpus[0].UUID, gpus[1].UUID})
	assert.Empty(t, m.sick())
	m.see(simulated)
	gpus, _ = m.devices()
	assert.Len(t, gpus, 8)
	assert.Empty(t, m.sick())
}

func TestReportsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	m := newMonitor(t)
	m.see(reportOf(4))
	m.see(report(func(r *gpu.Report) {
		r.GPUs[1] = gpu.GPU{Lost: true} // it no longer reports anything
		r.GPUs = append(r.GPUs, r.GPUs[0], gpu.GPU{Index: -7, Bus: "x", UUID: "x", Values: map[string]float64{"": 1, gpu.XIDErrors: 7, "pai_gpu_unhealthy": 1}})
		r.GPUs[4].UUID = "twice"
	}))
	gpus, _ := m.devices()
	require.Len(t, gpus, 5)
	assert.Equal(t, []string{"SIM-n1-0", "SIM-n1-1"}, []string{gpus[0].UUID, gpus[1].UUID})
	assert.Equal(t, int32(4), gpus[4].Index)
	assert.Equal(t, map[int32]string{1: "it is lost: it doesn't answer; restart the machine"}, m.sick())
	d := newMachine(t).Driver
	d.gpus = m
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(newMetrics(d)))
	_, err := registry.Gather()
	require.NoError(t, err)
	for i := range 32 { // others each time, twice as many as are kept
		var r gpu.Report
		for k := range mostGPUs / 16 {
			r.GPUs = append(r.GPUs, gpu.GPU{Bus: fmt.Sprint(i, k), UUID: fmt.Sprint(i, k)})
		}
		m.see(&r)
	}
	gpus, _ = m.devices()
	assert.Len(t, gpus, mostGPUs)
}

func TestWhatCouldNotBeReadHealsNothing(t *testing.T) {
	t.Parallel()
	m := newMonitor(t)
	m.see(report(func(r *gpu.Report) { r.GPUs[1].Values[gpu.DoubleBitVolatile] = 1 }))
	require.Len(t, m.sick(), 1)
	m.see(report(func(r *gpu.Report) { delete(r.GPUs[1].Values, gpu.DoubleBitVolatile) }))
	assert.Len(t, m.sick(), 1)
	m.see(reportOf(4))
	assert.Empty(t, m.sick())
}

func TestTheWorseOfTwoErrorsCounts(t *testing.T) {
	t.Parallel()
	m := newMonitor(t)
	m.see(report(func(r *gpu.Report) {
		for _, xid := range []int{48, 79, 48, 31} {
			r.Events = append(r.Events, gpu.Event{Bus: busOf(1), At: time.Now(), XID: xid})
		}
	}))
	assert.Contains(t, m.sick()[1], "XID 79")
	gpus, _ := m.devices()
	assert.Equal(t, 79, gpus[1].xid, "the one that broke it, which policies select")
}

func TestADriverThatDoesNotAnswerMakesAllSickAfterAWhile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := newMonitor(t)
	m.now = func() time.Time { return now }
	m.see(reportOf(4))
	m.unseen(errors.New("the driver hasn't answered for 30s"))
	assert.Empty(t, m.sick(), "the program that looks may have to start again")
	now = now.Add(silentFor)
	m.tick()
	assert.Len(t, m.sick(), 4)
	assert.Equal(t, "the driver hasn't answered for 30s", m.sick()[2])
	m.see(reportOf(4))
	assert.Empty(t, m.sick())
}

func TestTheFirstLook(t *testing.T) {
	t.Parallel()
	m := newMonitor(t)
	m.unseen(errors.New("the driver isn't loaded"))
	require.ErrorContains(t, m.first(t.Context(), time.Millisecond), "find the GPUs of the machine: the driver isn't loaded")
	m.see(reportOf(4))
	require.NoError(t, m.first(t.Context(), time.Minute))
	m = m.again(t, "boot-2")
	require.NoError(t, m.first(t.Context(), time.Millisecond), "pods that have some must be able to end")
	gpus, _ := m.devices()
	assert.Len(t, gpus, 4)
}

func TestAFileOfGPUsThatCantBeRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gpus.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"a":`), 0o600))
	_, err := openMonitor(file, "b", slog.New(slog.DiscardHandler), time.Now)
	require.ErrorContains(t, err, file)
	require.ErrorContains(t, err, "remove it")
	for _, text := range []string{`{"a":null}`, `null`} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		m, err := openMonitor(file, "b", slog.New(slog.DiscardHandler), time.Now)
		require.NoError(t, err)
		m.see(reportOf(1))
	}
}

func TestGPUsThatTheConfigurationNamesAndTheMachineLacksAreSick(t *testing.T) {
	t.Parallel()
	m := newMonitor(t)
	m.wanted = 6
	now := time.Now()
	m.now = func() time.Time { return now }
	_, changed := m.devices()
	m.unseen(errors.New("the driver isn't loaded"))
	assert.Empty(t, m.sick(), "it may just be starting")
	now = now.Add(silentFor)
	m.tick()
	<-changed
	for i := range int32(6) {
		assert.Equal(t, "the driver isn't loaded", m.sick()[i])
	}
	_, changed = m.devices()
	m.see(reportOf(4))
	<-changed
	const why = "the machine has 4 GPUs, but its SKU in layout.yaml says 6"
	assert.Equal(t, map[int32]string{4: why, 5: why}, m.sick())
	gpus, _ := m.devices()
	assert.Len(t, gpus, 6)
	m.see(reportOf(6))
	assert.Empty(t, m.sick())
}
