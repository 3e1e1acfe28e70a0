package agent

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// gpuLabels returns the labels that NVIDIA's dcgm-exporter uses. gpu is the number of the card. pod and namespace identify the pod that uses the GPU.
// pod and namespace are empty if no pod or several pods use the GPU.
func gpuLabels() []string {
	return []string{"gpu", "UUID", "pci_bus_id", "device", "modelName", "namespace", "pod"}
}

type metrics struct {
	d                         *Driver
	sick, leaked, state, next *prometheus.Desc
}

func newMetrics(d *Driver) *metrics {
	return &metrics{d,
		prometheus.NewDesc("pai_gpu_unhealthy", "1 for a GPU that gets no more jobs, 0 for one that works.", gpuLabels(), nil),
		prometheus.NewDesc("pai_gpu_memory_leaked", "1 for a GPU whose memory has been in use for minutes although no process and no job uses it, 0 for others, if this is known.", gpuLabels(), nil),
		prometheus.NewDesc("pai_agent_driver_answers", "1 if the agent knows the health of the machine's GPUs, 0 if the driver doesn't answer.", nil, nil),
		prometheus.NewDesc("pai_gpu_driver_next_boot", "1 if NVIDIA's driver has a module for the kernel that the machine starts next, 0 if it has no such module.", []string{"kernel"}, nil)}
}

// Describe implements prometheus.Collector. Describe sends no descriptions, because the measurements depend on the GPU models.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. Collect sends the current measurements of all GPUs.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	users := map[int32][]*record{}
	for _, r := range m.d.records.all() {
		for _, card := range r.cards() {
			users[card] = append(users[card], r)
		}
	}
	gpus, _ := m.d.gpus.cards()
	for _, g := range gpus {
		labels := []string{strconv.Itoa(int(g.Index)), g.UUID, g.Bus, deviceFile(&g), g.Model, "", ""}
		if len(users[g.card]) == 1 { // if several tasks share it, it has no single user
			r := users[g.card][0]
			labels[5] = r.Namespace
			if len(r.PodNames) > 0 {
				labels[6] = r.PodNames[0]
			}
		}
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
		}
		sick := 0.0
		if g.reason != "" {
			sick = 1
		}
		send(m.sick, prometheus.GaugeValue, sick)
		send(prometheus.NewDesc(gpu.XIDErrors, "The error that broke the GPU, otherwise the last one that the driver reported, 0 without one.", gpuLabels(), nil), prometheus.GaugeValue, float64(g.xid))
		if g.Processes != nil {
			is := 0.0
			if g.leaked {
				is = 1
			}
			send(m.leaked, prometheus.GaugeValue, is)
		}
		if g.Lost {
			continue // the card's measurements are outdated
		}
		instances := g.instances()
		m.collectInstances(out, &g, labels, users[g.card])
		for _, name := range slices.Sorted(maps.Keys(g.Values)) {
			if !measurement.MatchString(name) || name == gpu.XIDErrors {
				continue
			}
			if len(instances) > 0 && (name == gpu.MemoryUsed || name == gpu.MemoryFree) {
				continue // each instance has its own value, and their sum would count it twice
			}
			kind := prometheus.GaugeValue
			if counts(name) {
				kind = prometheus.CounterValue
			}
			send(prometheus.NewDesc(name, "The same as in NVIDIA's dcgm-exporter.", gpuLabels(), nil), kind, g.Values[name])
		}
	}
	_, silent := m.d.gpus.answered()
	answered := 1.0
	if silent != "" {
		answered = 0
	}
	out <- prometheus.MustNewConstMetric(m.state, prometheus.GaugeValue, answered)
	if kernel, ready := m.d.next.last(); ready {
		out <- prometheus.MustNewConstMetric(m.next, prometheus.GaugeValue, 1, kernel)
	} else if kernel != "" {
		out <- prometheus.MustNewConstMetric(m.next, prometheus.GaugeValue, 0, kernel)
	}
}

// collectInstances sends the memory measurements of a GPU's instances. The labels are the same as dcgm-exporter's labels for instances: the labels of
// the GPU, the profile, and the number of the instance.
func (m *metrics) collectInstances(out chan<- prometheus.Metric, g *device, labels []string, users []*record) {
	names := append(gpuLabels(), "GPU_I_PROFILE", "GPU_I_ID")
	for place, i := range g.instances() {
		values := append(slices.Clone(labels), i.Profile, strconv.Itoa(i.GI))
		values[5], values[6] = "", ""
		for _, r := range users {
			for _, a := range r.Devices {
				if r.MIG == i.Profile && r.card(a.Device) == g.card && r.place(a.Device) == place {
					values[5] = r.Namespace
					if len(r.PodNames) > 0 {
						values[6] = r.PodNames[0]
					}
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(i.Values)) {
			if measurement.MatchString(name) {
				out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, "The same as in NVIDIA's dcgm-exporter.", names, nil), prometheus.GaugeValue, i.Values[name], values...)
			}
		}
	}
}

// deviceFile returns the name of a GPU's device file, or "" for a GPU without device files. The number in the name may differ from the GPU's number.
func deviceFile(g *device) string {
	if len(g.Files) == 0 {
		return ""
	}
	return filepath.Base(g.Files[0].Container)
}

// measurement matches the names of pai-nvml's measurements. Other names may be invalid, or equal to names of the agent's own metrics.
var measurement = regexp.MustCompile(`^DCGM_FI_[A-Z0-9_]+$`)

func counts(name string) bool {
	return name == gpu.Energy || name == gpu.PCIeReplays || strings.HasSuffix(name, "_COUNT_TOTAL")
}
