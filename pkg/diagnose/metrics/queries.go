package metrics

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/kube"
)

// query is a named query, whose result is a chart.
type query struct {
	name, title, unit string
	// most is the maximum number of series in a chart; more are folded.
	most int
	// rare charts are left out if all values are 0.
	rare bool
	// expr is the query in PromQL. by are the labels that its series have.
	expr func(w where) string
	by   []string
	// limit is a query for the limits of its series, by the same labels; nil if its series have no limits.
	limit func(w where) string
}

// Numbers of series in a chart: the GPUs of a usual machine, and fewer tasks. A test checks that a report has at most MaxSeries series.
const (
	mostGPUs  = 8
	mostTasks = 5
)

// where holds the parts of a query that differ between requests.
type where struct {
	// match selects the series of the subject: matchers of labels with quoted values.
	match string
	step  time.Duration
}

// sel returns a selector for a metric of the subject, with further matchers.
func (w where) sel(metric string, more ...string) string {
	return metric + "{" + strings.Join(append([]string{w.match}, more...), ", ") + "}"
}

// mean returns a query for the mean of a measurement since the previous point, and peak for the highest value. If the step is at most two intervals
// of Prometheus, it is the series itself.
func (w where) mean(metric string) string {
	return w.over("avg", w.sel(metric))
}

func (w where) peak(metric string, more ...string) string {
	return w.over("max", w.sel(metric, more...))
}

func (w where) over(how, series string) string {
	if w.step <= 2*minStep {
		return series
	}
	return fmt.Sprintf("%s_over_time(%s[%s])", how, series, seconds(w.step))
}

// rate returns a query for the growth of a counter per second. A rate needs two values; the range is long enough that one value may be missing.
func (w where) rate(metric string, more ...string) string {
	return fmt.Sprintf("rate(%s[%s])", w.sel(metric, more...), seconds(max(4*minStep, w.step+minStep)))
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) + "s" }

// is and like return matchers of a label. A quoted string in Go is also one in PromQL.
func is(label, value string) string { return label + "=" + strconv.Quote(value) }

func like(label, expression string) string { return label + "=~" + strconv.Quote(expression) }

// slowed are the bits of NVML's reasons for a slower clock that are a fault: hardware slowdown, heat as the driver and as the hardware sees it, power brake.
// A clock that stays below the power limit of the card is usual.
var slowed = []int{8, 32, 64, 128}

// gpus returns the queries about GPUs, by the labels that identify one. The measurements have their names in
// pkg/node/agent/gpu.
func gpus(by ...string) []query {
	labels := strings.Join(by, ", ")
	maxBy := func(e string) string { return "max by (" + labels + ") (" + e + ")" }
	sumBy := func(e string) string { return "sum by (" + labels + ") (" + e + ")" }
	return []query{
		{name: "gpu-use", title: "GPU use", unit: UnitPercent, most: mostGPUs, by: by, expr: func(w where) string { return maxBy(w.mean("DCGM_FI_DEV_GPU_UTIL")) }},
		// The parts of a split GPU have one series each.
		{name: "gpu-memory", title: "GPU memory", unit: UnitPercent, most: mostGPUs, by: by, expr: func(w where) string {
			return "100 * " + sumBy(w.peak("DCGM_FI_DEV_FB_USED")) + " / (" + sumBy(w.mean("DCGM_FI_DEV_FB_USED")) + " + " + sumBy(w.mean("DCGM_FI_DEV_FB_FREE")) + ")"
		}},
		{name: "gpu-power", title: "GPU power", unit: UnitWatt, most: mostGPUs, by: by, expr: func(w where) string { return maxBy(w.mean("DCGM_FI_DEV_POWER_USAGE")) }},
		{name: "gpu-slowed", title: "GPU slowed down by heat or its power supply (0 or 1)", most: mostGPUs, rare: true, by: by, expr: func(w where) string {
			var bits []string
			for _, b := range slowed {
				bits = append(bits, fmt.Sprintf("floor(%s / %d) %% 2 == 1", w.sel("DCGM_FI_DEV_CLOCKS_EVENT_REASONS"), b))
			}
			return maxBy("(" + strings.Join(bits, " or ") + ") or 0 * " + w.sel("DCGM_FI_DEV_CLOCKS_EVENT_REASONS"))
		}},
	}
}

// ofTasks returns the queries about the tasks of a job, by their pods. The measurements come from the kubelets; the chart prometheus keeps the
// measurements that these queries use.
func ofTasks() []query {
	by := []string{"pod"}
	const container = `container!=""` // without it, they would be counted twice
	sum := func(e string) string { return "sum by (pod) (" + e + ")" }
	one := func(name, title, unit, metric string, more ...string) query {
		return query{name: name, title: title, unit: unit, most: mostTasks, by: by, expr: func(w where) string { return sum(w.rate(metric, more...)) }}
	}
	cpu := one("cpu", "Processors", UnitCores, "container_cpu_usage_seconds_total", container)
	cpu.limit = func(w where) string {
		return "max by (pod) (" + w.sel("container_spec_cpu_quota", container) + " / " + w.sel("container_spec_cpu_period", container) + ")"
	}
	return append(gpus("pod", "node", "gpu"), cpu,
		query{name: "memory", title: "Memory", unit: UnitBytes, most: mostTasks, by: by, expr: func(w where) string { return sum(w.peak("container_memory_working_set_bytes", container)) },
			limit: func(w where) string {
				return "max by (pod) (" + w.sel("container_spec_memory_limit_bytes", container) + ") > 0"
			}},
		one("network-in", "Network, received", UnitRate, "container_network_receive_bytes_total"),
		one("network-out", "Network, sent", UnitRate, "container_network_transmit_bytes_total"),
		one("disk-read", "Disks, read", UnitRate, "container_fs_reads_bytes_total", container),
		one("disk-write", "Disks, written", UnitRate, "container_fs_writes_bytes_total", container),
	)
}

// disks and network match the block devices and the network devices without others below them, so that no byte counts twice.
const (
	disks   = `device!~"(dm-|md|loop|ram|zram|sr).*"`
	network = `device!~"lo|(bond|flannel|cni|vxlan|tunl|kube).*|.*[.].*"`
)

// ofMachine returns the queries about a machine. The measurements come from the agent and from node-exporter.
func ofMachine(whole bool) []query {
	temperature := query{name: "gpu-temperature", title: "GPU temperature", unit: UnitCelsius, most: mostGPUs, by: []string{"gpu"},
		expr: func(w where) string { return "max by (gpu) (" + w.peak("DCGM_FI_DEV_GPU_TEMP") + ")" }}
	sum := func(name, title, metric, devices string) query {
		return query{name: name, title: title, unit: UnitRate, most: 1, expr: func(w where) string { return "sum(" + w.rate(metric, devices) + ")" }}
	}
	idle := func(w where) string { return w.rate("node_cpu_seconds_total", is("mode", "idle")) }
	out := append(gpus("gpu"), temperature,
		query{name: "cpu", title: "Processors", unit: UnitPercent, most: 2, by: []string{labelPart}, expr: func(w where) string {
			return part("all", "100 * (1 - avg("+idle(w)+"))") + " or " + part("the busiest", "100 * (1 - min("+idle(w)+"))")
		}},
		query{name: "memory", title: "Memory", unit: UnitBytes, most: 1,
			expr: func(w where) string {
				return "max(" + w.sel("node_memory_MemTotal_bytes") + " - " + w.sel("node_memory_MemAvailable_bytes") + ")"
			},
			limit: func(w where) string { return "max(" + w.sel("node_memory_MemTotal_bytes") + ")" }},
		query{name: "disk-busy", title: "Busiest disk", unit: UnitPercent, most: 1, expr: func(w where) string { return "100 * max(" + w.rate("node_disk_io_time_seconds_total", disks) + ")" }},
		sum("disk-read", "Disks, read", "node_disk_read_bytes_total", disks),
		sum("disk-write", "Disks, written", "node_disk_written_bytes_total", disks),
		sum("network-in", "Network, received", "node_network_receive_bytes_total", network),
		sum("network-out", "Network, sent", "node_network_transmit_bytes_total", network),
	)
	if whole {
		out = append(out, query{name: "filesystems", title: "File systems", unit: UnitPercent, most: mostGPUs, by: []string{"mountpoint"}, expr: func(w where) string {
			const stored = `fstype!~"tmpfs|overlay|squashfs"`
			return "max by (mountpoint) (100 - 100 * " + w.sel("node_filesystem_avail_bytes", stored) + " / " + w.sel("node_filesystem_size_bytes", stored) + ")"
		}})
	}
	return out
}

// ofVC returns the queries about a virtual cluster. The measurements come from the scheduler's leader, and from the job controller, which knows the owners of
// tasks.
func ofVC() []query {
	parts := func(prefix string, names ...string) func(w where) string {
		return func(w where) string {
			var out []string
			for _, name := range names {
				out = append(out, part(name, "max("+w.mean(prefix+name+"_gpus")+")"))
			}
			return strings.Join(out, " or ")
		}
	}
	waiting := func(w where) string {
		return part("jobs", "max("+w.mean("pai_scheduler_waiting_gangs")+")") + " or " + part("tasks", "max("+w.mean("pai_scheduler_waiting_pods")+")")
	}
	return []query{
		{name: "gpus", title: "GPUs", most: 4, by: []string{labelPart}, expr: parts("pai_scheduler_vc_", "guaranteed", "used", "opportunistic", "bad")},
		// These series belong to the pods of jobs, and the virtual cluster is a label of another metric.
		{name: "held-use", title: "Use of the GPUs that its tasks hold", unit: UnitPercent, most: 1, expr: func(w where) string {
			holds := `label_join(` + w.sel("pai_task_gpus") + ` > 0, "pod", "", "task_pod")`
			return "avg(max by (pod, node, gpu) (" + where{is("namespace", kube.JobNamespace), w.step}.mean("DCGM_FI_DEV_GPU_UTIL") + ") and on (pod) " + holds + ")"
		}},
		{name: "cpu-cells", title: "CPU cells", most: 4, rare: true, by: []string{"kind"}, expr: func(w where) string { return "max by (kind) (" + w.mean("pai_scheduler_vc_cpu_cells") + ")" }},
		{name: "waiting", title: "Waiting", most: 2, by: []string{labelPart}, expr: waiting},
		{name: "oldest", title: "The oldest has waited", unit: UnitSeconds, most: 1, rare: true, expr: func(w where) string { return "max(" + w.peak("pai_scheduler_oldest_waiting_seconds") + ")" }},
	}
}

// labelPart names the parts of a query that is made of several.
const labelPart = "part"

func part(name, expr string) string {
	return "label_replace(" + expr + `, "` + labelPart + `", ` + strconv.Quote(name) + `, "", "")`
}

// Subject is a job, a task, a machine or a virtual cluster.
type Subject struct {
	match   string
	queries []query
	// task returns the name of a pod's task as people know it.
	task func(pod string) string
	// begin is when the subject began to exist, if an earlier subject may have had the same name.
	begin time.Time
	// nothing is the note if Prometheus has no data.
	nothing string
}

// Role is a task role of a job: its name for people, and the part of its pods' names.
type Role struct{ Name, Object string }

// maxPattern is the maximum length of the names of a job's roles in a query, which contains them several times and becomes part of a
// URL.
const maxPattern = 1000

// hashed matches the names of Frameworks that paictl and OpenPAI submit, which are MD5 hashes.
var hashed = regexp.MustCompile(`^[0-9a-f]{32}$`)

// OfJob returns the subject of a job's tasks, by the name of its Framework. index selects one task of the only role; -1
// means all.
func OfJob(framework string, roles []Role, index int32) *Subject {
	names, number := map[string]string{}, "[0-9]+"
	var objects []string
	for _, r := range roles {
		names[r.Object] = r.Name
		objects = append(objects, regexp.QuoteMeta(r.Object))
	}
	slices.Sort(objects)
	pattern := strings.Join(objects, "|")
	if len(pattern) > maxPattern && hashed.MatchString(framework) {
		pattern = ".+" // only pods of this Framework have names that begin with its hash
	}
	if index >= 0 {
		number = strconv.Itoa(int(index))
	}
	return &Subject{
		match:   is("namespace", kube.JobNamespace) + ", " + like("pod", regexp.QuoteMeta(framework)+"-("+pattern+")-"+number),
		queries: ofTasks(),
		task: func(pod string) string {
			role, index := pod, ""
			if at := strings.LastIndexByte(pod, '-'); at >= 0 {
				role, index = pod[:at], pod[at+1:]
			}
			role = strings.TrimPrefix(role, framework+"-")
			return cmp.Or(names[role], role) + "[" + index + "]"
		},
		nothing: "Prometheus has no figures of this time: the tasks ran too short, or not at all, or longer ago than it keeps figures.",
	}
}

// Since returns the subject with the time when it began. An earlier job's pods may have had the same names, so values that look back to before
// that time are omitted.
func (s *Subject) Since(begin time.Time) *Subject {
	s.begin = begin
	return s
}

// OfMachine returns the subject of a machine. whole adds figures that only administrators may see: figures with the names of its file systems.
func OfMachine(name string, whole bool) *Subject {
	return &Subject{match: is("node", name), queries: ofMachine(whole), nothing: "Prometheus has no figures of this machine and this time: it was down, or the services agent and node-exporter didn't run on it."}
}

// OfVC returns the subject of a virtual cluster.
func OfVC(name string) *Subject {
	return &Subject{match: is("vc", name), queries: ofVC(), nothing: "Prometheus has no figures of this virtual cluster and this time: the scheduler didn't run, or didn't have it."}
}
