package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// field is a measurement that both programs report. Because the programs measure at different times, the values may differ by a tolerance.
type field struct {
	smi, value string // names in --query-gpu and in a report of pai-nvml
	unit       string
	tolerance  float64
}

func fields() []field {
	return []field{
		{"memory.total", "", "MiB", 0},
		{"memory.used", gpu.MemoryUsed, "MiB", 64},
		{"memory.free", gpu.MemoryFree, "MiB", 64},
		{"utilization.gpu", gpu.Utilization, "%", 20},
		{"utilization.memory", gpu.MemoryUtilization, "%", 20},
		{"temperature.gpu", gpu.Temperature, "°C", 3},
		{"power.draw", gpu.Power, "W", 25},
		{"clocks.sm", gpu.SMClock, "MHz", 300},
		{"clocks.mem", gpu.MemoryClock, "MHz", 1},
		{"ecc.errors.corrected.volatile.total", gpu.SingleBitVolatile, "", 0},
		{"ecc.errors.uncorrected.volatile.total", gpu.DoubleBitVolatile, "", 0},
		{"ecc.errors.corrected.aggregate.total", gpu.SingleBitAggregate, "", 0},
		{"ecc.errors.uncorrected.aggregate.total", gpu.DoubleBitAggregate, "", 0},
		{"remapped_rows.correctable", gpu.RowsRemapped, "", 0},
		{"remapped_rows.uncorrectable", gpu.RowsRemappedUncorr, "", 0},
		{"remapped_rows.pending", gpu.RowRemapPending, "", 0},
		{"remapped_rows.failure", gpu.RowRemapFailed, "", 0},
	}
}

// ask runs pai-nvml as the agent does, and returns its first report.
func (o *options) ask(ctx context.Context) (*gpu.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reports, failed := make(chan *gpu.Report, 1), make(chan error, 1)
	p := gpu.Probe{Path: o.probe, Args: []string{"--root", o.root}, Silence: patience, Pause: time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Watch(ctx, func(r *gpu.Report) {
			select {
			case reports <- r:
			default:
			}
		}, func(err error) {
			select {
			case failed <- err:
			default:
			}
		})
	}()
	defer func() { cancel(); <-ended }()
	select {
	case r := <-reports:
		return r, nil
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// compare compares the GPUs in a report of pai-nvml with nvidia-smi's GPUs at the same addresses. before and after are the reports from before and
// after the run of nvidia-smi.
func (r *report) compare(m *machine, before, after *gpu.Report, s *smi) {
	r.equal("driver", "version", after.Driver, s.driver)
	r.equal("GPUs", "number", strconv.Itoa(len(after.GPUs)), strconv.Itoa(len(s.cards)))
	for _, c := range s.cards {
		if !slices.ContainsFunc(after.GPUs, func(g gpu.GPU) bool { return g.Bus == c.bus }) {
			r.add(fmt.Sprintf("GPU %d", c.index), "address", verdictDiffers, "missing", "present")
		}
	}
	for _, g := range after.GPUs {
		subject := fmt.Sprintf("GPU %d", g.Index)
		c := s.of(g.Bus)
		if c == nil {
			r.add(subject, "address", verdictDiffers, "present", "missing")
			continue
		}
		r.equal(subject, "index", strconv.Itoa(int(g.Index)), strconv.Itoa(c.index))
		r.secret(subject, "UUID", g.UUID, c.uuid)
		r.equal(subject, "name", g.Model, strings.Join(strings.Fields(c.name), "-"))
		r.numa(subject, &g, m)
		for _, f := range fields() {
			r.measurement(subject, f, earlier(before, g.Bus), &g, c)
		}
		r.mig(subject, &g, c)
		r.links(subject, &g, c)
		if g.Lost || g.Unusable != "" {
			r.add(subject, "state", verdictDiffers, strings.TrimSpace(fmt.Sprintf("lost: %t %s", g.Lost, g.Unusable)), "present")
		}
	}
	r.xids(m, before, after)
}

// earlier returns the GPU with an address from the first report, or an empty GPU if the report doesn't contain that address.
func earlier(before *gpu.Report, at string) *gpu.GPU {
	for i := range before.GPUs {
		if before.GPUs[i].Bus == at {
			return &before.GPUs[i]
		}
	}
	return &gpu.GPU{}
}

// numa compares the NUMA node of a GPU with the node of its PCI slot according to the kernel.
func (r *report) numa(subject string, g *gpu.GPU, m *machine) {
	node, ok := m.Devices[g.Bus]
	slot := "none"
	if ok && node >= 0 {
		slot = strconv.FormatInt(node, 10)
	}
	if g.NUMA == nil {
		r.add(subject, "NUMA node (kernel's PCI list)", verdictMissing, "missing", slot)
		return
	}
	r.equal(subject, "NUMA node (kernel's PCI list)", strconv.FormatInt(*g.NUMA, 10), slot)
}

// measurement compares a value of nvidia-smi with the values in both reports. The value must be within the tolerance.
func (r *report) measurement(subject string, f field, before, after *gpu.GPU, c *card) {
	theirs, have := c.values[f.smi]
	first, known := before.Values[f.value]
	last, still := after.Values[f.value]
	if f.value == "" { // memory isn't among the values
		first, last, known, still = float64(before.Memory>>20), float64(after.Memory>>20), before.Memory > 0, after.Memory > 0
	}
	name := strings.TrimSpace(f.smi + " " + f.unit)
	if !known {
		first = last
	}
	switch {
	case !have && !still:
		return // the GPU doesn't measure it
	case !have || !still:
		r.add(subject, name, verdictMissing, shown(last, still), shown(theirs, have))
	case theirs < min(first, last)-f.tolerance || theirs > max(first, last)+f.tolerance:
		r.add(subject, name, verdictDiffers, shown(last, true), shown(theirs, true))
	default:
		r.add(subject, name, verdictEqual, shown(last, true), shown(theirs, true))
	}
}

func shown(v float64, have bool) string {
	if !have {
		return "missing"
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// mig compares the MIG mode and the instances of a GPU.
func (r *report) mig(subject string, g *gpu.GPU, c *card) {
	mode := func(on bool) string {
		if on {
			return "Enabled"
		}
		return "Disabled"
	}
	ours := ""
	if g.MIG != nil {
		ours = mode(g.MIG.Enabled)
	}
	r.equal(subject, "MIG mode", orNone(ours), orNone(c.mig))
	if g.MIG == nil && len(c.instances) == 0 {
		return
	}
	var have, want []string
	if g.MIG != nil {
		for _, i := range g.MIG.Instances {
			have = append(have, fmt.Sprintf("%d/%d %s", i.GI, i.CI, i.UUID))
			r.Instances = append(r.Instances, fmt.Sprintf("%s: %s, GPU instance %d, compute instance %d", subject, i.Profile, i.GI, i.CI))
		}
	}
	for _, i := range c.instances {
		want = append(want, fmt.Sprintf("%d/%d %s", i.gi, i.ci, i.uuid))
	}
	slices.Sort(have)
	slices.Sort(want)
	r.equal(subject, "MIG instances", strconv.Itoa(len(have)), strconv.Itoa(len(want)))
	if len(want) > 0 {
		r.secret(subject, "numbers and UUIDs of instances", strings.Join(have, ", "), strings.Join(want, ", "))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// links compares the NVLinks of a GPU. pai-nvml counts the errors of active links. If no link is active, it reports no counters.
func (r *report) links(subject string, g *gpu.GPU, c *card) {
	_, counted := g.Values[gpu.NVLinkReplays]
	switch {
	case !c.linksRead:
		r.add(subject, "NVLink", verdictMissing, fmt.Sprintf("counters: %t", counted), "nvidia-smi nvlink failed")
		return
	case c.links == 0 && !counted:
		r.add(subject, "NVLink", verdictEqual, "none", "none")
		return
	case (c.links > 0) != counted:
		// Newer drivers count errors with other functions of the library.
		r.add(subject, "NVLink", verdictMissing, fmt.Sprintf("counters: %t", counted), fmt.Sprintf("%d active links", c.links))
	default:
		r.add(subject, "NVLink", verdictEqual, "counters", fmt.Sprintf("%d active links", c.links))
	}
	if !counted || !c.errors {
		return
	}
	for _, kind := range []struct{ name, value string }{{replays, gpu.NVLinkReplays}, {recoveries, gpu.NVLinkRecoveries}, {flits, gpu.NVLinkCRC}} {
		r.equal(subject, "NVLink "+strings.ToLower(kind.name), shown(g.Values[kind.value], true), shown(c.linkErrors[kind.name], true))
	}
}

// xids lists the errors in the kernel's log, and the errors that pai-nvml has reported. NVIDIA's library reports only errors that happen while it is
// open.
func (r *report) xids(m *machine, reports ...*gpu.Report) {
	var seen []string
	for _, report := range reports {
		for _, e := range report.Events {
			seen = append(seen, fmt.Sprintf("%s %d", e.Bus, e.XID))
		}
	}
	switch {
	case !m.LogRead:
		r.add("XIDs", "kernel's log", verdictNotRun, "", "the log can't be read without root")
	default:
		r.add("XIDs", "kernel's log", verdictSeen, orNone(strings.Join(seen, ", ")), orNone(strings.Join(m.XIDs, ", ")))
	}
}

// indented returns a value as indented JSON, with a newline at the end.
func indented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}
