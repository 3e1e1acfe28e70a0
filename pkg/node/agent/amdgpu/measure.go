package amdgpu

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// measure reads the GPU's measurements. measure leaves out measurements that the GPU doesn't support.
func (d device) measure() map[string]float64 {
	out := map[string]float64{}
	set := func(name, file string, unit float64) bool {
		v, ok := d.number(file)
		if ok {
			out[name] = v / unit
		}
		return ok
	}
	set(gpu.Utilization, "gpu_busy_percent", 1)
	set(gpu.MemoryUtilization, "mem_busy_percent", 1)
	set(gpu.PCIeReplays, "pcie_replay_count", 1)
	set(gpu.PCIeWidth, "current_link_width", 1)
	if g := generation(d.read("current_link_speed")); g > 0 {
		out[gpu.PCIeGeneration] = g
	}
	total, ok := d.number("mem_info_vram_total")
	if used, read := d.number("mem_info_vram_used"); ok && read {
		const mib = 1 << 20
		out[gpu.MemoryUsed], out[gpu.MemoryFree] = used/mib, (total-used)/mib
	}
	for _, monitor := range d.monitors() {
		// The hottest point of an MI300 is the junction (temp2). An MI300 has no edge sensor (temp1).
		for _, file := range []string{"temp1_input", "temp2_input"} {
			if set(gpu.Temperature, filepath.Join(monitor, file), 1e3) {
				break
			}
		}
		// Some models report an average, and other models report the current value.
		for _, file := range []string{"power1_average", "power1_input"} {
			if set(gpu.Power, filepath.Join(monitor, file), 1e6) {
				break
			}
		}
		for _, clock := range []string{"freq1", "freq2"} {
			switch d.read(filepath.Join(monitor, clock+"_label")) {
			case "sclk":
				set(gpu.SMClock, filepath.Join(monitor, clock+"_input"), 1e6)
			case "mclk":
				set(gpu.MemoryClock, filepath.Join(monitor, clock+"_input"), 1e6)
			}
		}
	}
	return out
}

// monitors returns the folders of the GPU's hardware monitors. A GPU usually has one hardware monitor.
func (d device) monitors() (out []string) {
	found, err := filepath.Glob(filepath.Join(string(d), "hwmon", "hwmon*"))
	if err != nil {
		return nil
	}
	for _, f := range found {
		if text(filepath.Join(f, "name")) == "amdgpu" {
			out = append(out, filepath.Join("hwmon", filepath.Base(f)))
		}
	}
	return out
}

// generation converts a speed such as "16.0 GT/s PCIe" to the PCIe generation. generation returns 0 for an unknown speed.
func generation(speed string) float64 {
	gts, _, _ := strings.Cut(speed, " ")
	return map[string]float64{"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}[gts]
}

// countEvery is the interval between readings of the error counts. The interval is long because the driver reads the hardware for each reading.
const countEvery = 10 * time.Second

// errorCounts maps the blocks of a GPU to the errors since the driver was loaded. The block umc is the memory.
type errorCounts map[string]blockErrors

type blockErrors struct{ uncorrectable, corrected float64 }

// countErrors reads the error counts of all blocks. If a block can't be read, countErrors uses the counts in before.
func (d device) countErrors(before errorCounts) errorCounts {
	out := errorCounts{}
	files, err := filepath.Glob(filepath.Join(string(d), "ras", "*"+errorSuffix))
	if err != nil {
		return before
	}
	for _, f := range files {
		block := strings.TrimSuffix(filepath.Base(f), errorSuffix)
		if e, ok := parseErrors(text(f)); ok {
			out[block] = e
		} else if was, ok := before[block]; ok {
			out[block] = was
		}
	}
	return out
}

const errorSuffix = "_err_count"

// parseErrors parses lines such as "ue: 0" and "ce: 1". Newer drivers add the line "de: 0" for deferred errors. A deferred error affects only a
// process that reads the memory again. During a reset, the file contains a sentence instead of counts.
func parseErrors(text string) (out blockErrors, ok bool) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, isNumber := parseNumber(value)
		if !isNumber {
			continue
		}
		switch name {
		case "ue":
			out.uncorrectable, ok = n, true
		case "ce":
			out.corrected = n
		}
	}
	return out, ok
}

func (e errorCounts) write(values map[string]float64) {
	for block, n := range e {
		if block == "umc" {
			values[gpu.DoubleBitVolatile], values[gpu.SingleBitVolatile] = n.uncorrectable, n.corrected
		} else {
			values[gpu.OtherUncorrectable] += n.uncorrectable
		}
	}
}
