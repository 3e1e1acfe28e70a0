package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
	"github.com/openpai/paictl/pkg/node/agent/repair"
)

// uses sets the used memory of GPU 3 in MiB, and the number of processes that use GPU 3.
func (o *ordered) uses(mib float64, processes *int) {
	o.sees(3, func(g *gpu.GPU) { g.Values[gpu.MemoryUsed], g.Processes = mib, processes })
}

func (o *ordered) passes(d time.Duration) {
	now := o.gpus.now().Add(d)
	o.gpus.now = func() time.Time { return now }
	o.gpus.tick()
}

func TestMemoryThatNoOneHasMakesAGPUSick(t *testing.T) {
	none := 0
	o := newOrdered(t)
	metric := func() string {
		registry := prometheus.NewRegistry()
		registry.MustRegister(newMetrics(o.Driver))
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "pai_gpu_memory_leaked" {
				require.Len(t, f.GetMetric(), 1, "of others it isn't known who uses them")
				return fmt.Sprint(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return ""
	}
	assert.Empty(t, metric())
	o.uses(20_000, &none)
	o.passes(4 * time.Minute)
	o.uses(20_000, &none)
	assert.Empty(t, o.reason(3), "a process that ends may take its time")
	assert.Equal(t, "0", metric())
	o.passes(2 * time.Minute)
	assert.Contains(t, o.reason(3), "no process and no job uses it; paictl node gpu reset")
	assert.Equal(t, "1", metric())
	o.after = eight
	assert.True(t, o.give(3, repair.Reset).Done)
	assert.Empty(t, o.reason(3))
	o.uses(20_000, &none)
	o.passes(6 * time.Minute)
	require.NotEmpty(t, o.reason(3), "the reset was of no use")
	o.uses(500, &none)
	assert.Empty(t, o.reason(3), "it was given back")
}

func TestMemoryThatSomeoneHasIsNotLeaked(t *testing.T) {
	none, one := 0, 1
	for name, use := range map[string]func(*ordered){
		"a process has it":            func(o *ordered) { o.uses(20_000, &one) },
		"it isn't known who has it":   func(o *ordered) { o.uses(20_000, nil) },
		"it is what the driver takes": func(o *ordered) { o.uses(4000, &none) },
		"a process had it for a while": func(o *ordered) {
			o.uses(20_000, &none)
			o.passes(4 * time.Minute)
			o.uses(20_000, &one)
			o.uses(20_000, &none)
		},
		"a claim has it": func(o *ordered) {
			require.NoError(t, o.Driver.records.add(&record{UID: "u", Namespace: "default", Name: "job", Devices: []assigned{{"gpus", "gpu-3"}}}))
			o.uses(20_000, &none)
		},
	} {
		o := newOrdered(t)
		use(o)
		o.passes(4 * time.Minute)
		use(o)
		o.passes(2 * time.Minute)
		assert.Empty(t, o.reason(3), name)
	}
}
