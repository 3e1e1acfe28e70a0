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

// query is a named query. Its result is a chart.
type query struct {
	name, title, unit string
	// most is the maximum number of series in the chart. More series are folded.
	most int
	// rare means that a chart with only zeros is omitted.
	rare bool
	// expr returns the query in PromQL. The field by lists the labels that identify its series.
	expr func(w where) string
	by   []string
	// limit returns a query for the limits of the series, with the same labels. It is nil if the series have no limits.
	limit func(w where) string
}

// Maximum numbers of series in a chart: the GPUs of a usual machine, and a smaller number of tasks. A test checks that a report contains at most
// MaxSeries series.
const (
	mostGPUs  = 8
	mostTasks = 5
)

// where holds the parts of a query that differ between requests.
type where struct {
	// match selects the series of the subject. It consists of label matchers with quoted values.
	match string
	step  time.Duration
}

// sel returns a selector for a metric of the subject, with additional matchers.
func (w where) sel(metric string, more ...string) string {
	return metric + "{" + strings.Join(append([]string{w.match}, more...), ", ") + "}"
}

// mean returns a query for the mean of a measurement since the previous value. peak returns a query for the highest measurement. If the step is at
// most two scrape intervals of Prometheus, the queries return the measurement itself.
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

// rate returns a query for the growth of a counter per second. A rate needs two values. The range is long enough
// even if one value is missing.
func (w where) rate(metric string, more ...string) string {
	return fmt.Sprintf("rate(%s[%s])", w.sel(metric, more...), seconds(max(4*minStep, w.step+minStep)))
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) + "s" }

// is and like return matchers of a label. The syntax of a string that Go quotes is also valid in PromQL.
func is(label, value string) string { return label + "=" + strconv.Quote(value) }

func like(label, expression string) string { return label + "=~" + strconv.Quote(expression) }

// slowed lists the bits of NVML's clock event reasons that mean a fault. These are hardware slowdown, heat according to the driver, heat according
// to the hardware, and power brake. The card's power limit isn't included, because it usually limits the clock.
var slowed = []int{8, 32, 64, 128}

// gpus returns the queries about GPUs. The labels by identify a GPU. pkg/node/agent/gpu defines the names of the measurements.
func gpus(by ...string) []query {
	labels := strings.Join(by, ", ")
	maxBy := func(e string) string { return "max by (" + labels + ") (" + e + ")" }
	sumBy := func(e string) string { return "sum by (" + labels + ") (" + e + ")" }
	return []query{
		{name: "gpu-use", title: "GPU use", unit: UnitPercent, most: mostGPUs, by: by, expr: func(w where) string { return maxBy(w.mean("DCGM_FI_DEV_GPU_UTIL")) }},
		// Each part of a split GPU has its own series.
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

// ofTasks returns the queries about the tasks of a job, by pod. The kubelets provide the measurements. The chart of the service prometheus must
// keep the measurements that these queries use.
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

// disks and network match devices that aren't based on other devices, so that no byte counts twice.
const (
	disks   = `device!~"(dm-|md|loop|ram|zram|sr).*"`
	network = `device!~"lo|(bond|flannel|cni|vxlan|tunl|kube).*|.*[.].*"`
)

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

// ofVC returns the queries about a virtual cluster. The leader among the schedulers and the job controller provide the measurements. Only the job
// controller's measurements contain the owners of tasks.
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
		// The series of GPU use contain the pods of jobs. Another metric contains the virtual cluster as a label.
		{name: "held-use", title: "Use of the GPUs that its tasks hold", unit: UnitPercent, most: 1, expr: func(w where) string {
			holds := `label_join(` + w.sel("pai_task_gpus") + ` > 0, "pod", "", "task_pod")`
			return "avg(max by (pod, node, gpu) (" + where{is("namespace", kube.JobNamespace), w.step}.mean("DCGM_FI_DEV_GPU_UTIL") + ") and on (pod) " + holds + ")"
		}},
		{name: "cpu-cells", title: "CPU cells", most: 4, rare: true, by: []string{"kind"}, expr: func(w where) string { return "max by (kind) (" + w.mean("pai_scheduler_vc_cpu_cells") + ")" }},
		{name: "waiting", title: "Waiting", most: 2, by: []string{labelPart}, expr: waiting},
		{name: "oldest", title: "The oldest has waited", unit: UnitSeconds, most: 1, rare: true, expr: func(w where) string { return "max(" + w.peak("pai_scheduler_oldest_waiting_seconds") + ")" }},
	}
}

// labelPart is the label that identifies the parts of a query with several expressions.
const labelPart = "part"

func part(name, expr string) string {
	return "label_replace(" + expr + `, "` + labelPart + `", ` + strconv.Quote(name) + `, "", "")`
}

// Subject is the subject of a report: a job, a task, a machine or a virtual cluster.
type Subject struct {
	match   string
	queries []query
	// task returns the name of a pod's task, such as worker[0].
	task func(pod string) string
	// begin is the creation time of the subject. It is set if an earlier subject may have had the same name.
	begin time.Time
	// nothing is the note of the report if Prometheus has no data.
	nothing string
}

// Role is a task role of a job. Object is the part of the pods' names that identifies the role.
type Role struct{ Name, Object string }

// maxPattern is the maximum length of the pattern with the names of a job's roles. The query contains the pattern several times, and the URL
// contains the query.
const maxPattern = 1000

// hashed matches the names of Frameworks from paictl and OpenPAI, which are MD5 hashes.
var hashed = regexp.MustCompile(`^[0-9a-f]{32}$`)

// OfJob returns the subject for a job's tasks. framework is the name of the job's Framework. If index isn't -1, the subject is one task of the only
// role.
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

// Since sets the creation time of the subject and returns the subject. The report then omits values from before that time, because the pods of an
// earlier job may have had the same names.
func (s *Subject) Since(begin time.Time) *Subject {
	s.begin = begin
	return s
}

// OfMachine returns the subject for a machine. If whole is set, the report also contains the names of file systems. Only administrators may see
// these names.
func OfMachine(name string, whole bool) *Subject {
	return &Subject{match: is("node", name), queries: ofMachine(whole), nothing: "Prometheus has no figures of this machine and this time: it was down, or the services agent and node-exporter didn't run on it."}
}

// OfVC returns the subject for a virtual cluster.
func OfVC(name string) *Subject {
	return &Subject{match: is("vc", name), queries: ofVC(), nothing: "Prometheus has no figures of this virtual cluster and this time: the scheduler didn't run, or didn't have it."}
}
