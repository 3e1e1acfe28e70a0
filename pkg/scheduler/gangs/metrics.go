package gangs

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/version"
)

// counters count events since the program started.
type counters struct {
	decisions  *prometheus.CounterVec
	decided    prometheus.Histogram
	pass       prometheus.Histogram
	bindings   *prometheus.CounterVec
	binding    prometheus.Histogram
	preempted  *prometheus.CounterVec
	downgraded *prometheus.CounterVec
	lost       prometheus.Counter
	bugs       prometheus.Counter
}

func newCounters() *counters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pai_scheduler_" + name, Help: help}, labels)
	}
	short := prometheus.ExponentialBucketsRange(10e-6, 1, 16)
	long := prometheus.ExponentialBucketsRange(100e-6, 5, 16)
	c := &counters{
		decisions: counter("decisions_total", "Decisions about pods, by result: bind, wait, preempt or badRequest.", "result"),
		decided: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pai_scheduler_decision_duration_seconds",
			Help: "How long a decision takes, without overhead.", Buckets: short}),
		pass: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pai_scheduler_pass_duration_seconds",
			Help: "How long it takes to check all waiting gangs once.", Buckets: long}),
		bindings: counter("bindings_total", "Bindings sent to the API server, by result: ok or error.", "result"),
		binding: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pai_scheduler_binding_duration_seconds",
			Help: "How long the API server takes for a binding.", Buckets: long}),
		preempted: counter("preempted_gangs_total", "Gangs that were preempted for others, by their virtual cluster.", "vc"),
		lost: prometheus.NewCounter(prometheus.CounterOpts{Name: "pai_scheduler_lost_claims_total",
			Help: "Claims that were lost while their pods ran, and written again."}),
		bugs: prometheus.NewCounter(prometheus.CounterOpts{Name: "pai_scheduler_bugs_total",
			Help: "Decisions that hit a bug, after which the state was rebuilt."}),
		downgraded: counter("guarantee_changes_total", "Gangs that lost their guarantee (lost) or got it back (restored) and kept running.", "vc", "change"),
	}
	for _, result := range []cell.Result{cell.Bind, cell.Wait, cell.Preempt, cell.Refuse} {
		c.decisions.WithLabelValues(string(result))
	}
	return c
}

func (c *counters) bound(err error, took time.Duration) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	c.bindings.WithLabelValues(result).Inc()
	c.binding.Observe(took.Seconds())
}

// preempt counts the preemption of a gang. It counts only the gang's first evicted pod.
func (c *counters) preempt(g *gang) {
	if g != nil && !g.preempted {
		g.preempted = true
		c.preempted.WithLabelValues(g.vc).Inc()
	}
}

func (c *counters) downgrade(d *cell.Downgrade) {
	change := "lost"
	if d.Restored {
		change = "restored"
	}
	c.downgraded.WithLabelValues(d.VC, change).Inc()
}

func (b *Store) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	c := b.count
	r.MustRegister(c.decisions, c.decided, c.pass, c.bindings, c.binding, c.preempted, c.downgraded, c.lost, c.bugs, &gauges{b},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// gauges collects figures from the state when the metrics are read.
type gauges struct{ b *Store }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pai_scheduler_"+name, help, labels, nil)
}

var (
	descLeader     = desc("leader", "Whether this replica leads; all metrics below, except those of the configuration, are only from the leader.")
	descBuild      = desc("build_info", "The version of the scheduler, as a label.", "version")
	descGeneration = desc("config_generation", "How many configurations this replica has loaded.")
	descValid      = desc("config_valid", "Whether the latest configuration is in use.")
	descWaitGangs  = desc("waiting_gangs", "Gangs with a pod that has no placement.", "vc")
	descWaitPods   = desc("waiting_pods", "Pods without a placement.", "vc")
	descOldest     = desc("oldest_waiting_seconds", "Age of the oldest waiting gang.", "vc")
	descGangs      = desc("gangs", "Gangs with cells, by state: allocated, preempting or downgraded.", "state")
	descPods       = desc("pods", "Pods that request GPUs, by state.", "state")
	descGPUs       = desc("gpus", "GPUs of the configuration.")
	descUsed       = desc("used_gpus", "GPUs that gangs hold.")
	descBad        = desc("bad_gpus", "GPUs that can't be used.")
	descCPU        = desc("cpu_cells", "CPU cells of the configuration.")
	descCPUUsed    = desc("used_cpu_cells", "CPU cells that gangs hold.")
	descCPUBad     = desc("bad_cpu_cells", "CPU cells that can't be used.")
	descVCCPU      = desc("vc_cpu_cells", "CPU cells of a virtual cluster: guaranteed, which it owns, used of these, opportunistic or bad.", "vc", "kind")
	descFree       = desc("free_cells", "Largest free and healthy cells, by type.", "cell_type")
	descVCOwned    = desc("vc_guaranteed_gpus", "GPUs that a virtual cluster owns.", "vc")
	descVCUsed     = desc("vc_used_gpus", "Owned GPUs that it uses.", "vc")
	descVCOpp      = desc("vc_opportunistic_gpus", "GPUs that its gangs use beyond that, while no other gang needs them.", "vc")
	descVCBad      = desc("vc_bad_gpus", "GPUs that it owns and that can't be used.", "vc")
	descVCFree     = desc("vc_free_cells", "Largest cells that it has free, by type.", "vc", "cell_type")
	descVCFrag     = desc("vc_fragmentation_ratio", "1 − its largest free cell's GPUs ÷ all its free GPUs.", "vc")
	descNode       = desc("node_gpus_different", "GPUs of a node that differ from the configuration, by how: missing, unhealthy or unexpected.", "node", "kind")
)

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descLeader, descBuild, descGeneration, descValid, descWaitGangs, descWaitPods, descOldest, descGangs, descPods, descGPUs,
		descUsed, descBad, descCPU, descCPUUsed, descCPUBad, descVCCPU, descFree, descVCOwned, descVCUsed, descVCOpp, descVCBad, descVCFree, descVCFrag, descNode,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It sends the figures without the lock, because the receiver may be slow.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	b := g.b
	var out []prometheus.Metric
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	var pods []*pod
	var gangs []*gang
	var config cell.Config
	b.mu.Lock()
	send(descBuild, 1, version.Version)
	send(descLeader, number(b.state != nil))
	send(descValid, number(b.active != nil && b.problem == ""))
	if b.active != nil {
		send(descGeneration, float64(b.active.generation))
		config = b.active.cells
	}
	s := b.state
	if s != nil {
		s.collect(send)
		pods, gangs = slices.Collect(maps.Values(s.pods)), slices.Collect(maps.Values(s.gangs))
	}
	b.mu.Unlock()
	if s != nil {
		b.collectPods(send, pods)
		b.collectQueue(send, gangs, config)
	}
	for _, m := range out {
		ch <- m
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s *state) collect(send func(*prometheus.Desc, float64, ...string)) {
	stats := s.core.Stats()
	send(descGPUs, float64(stats.GPUs))
	send(descUsed, float64(stats.UsedGPUs))
	send(descBad, float64(stats.BadGPUs))
	send(descCPU, float64(stats.CPUCells))
	send(descCPUUsed, float64(stats.UsedCPUCells))
	send(descCPUBad, float64(stats.BadCPUCells))
	send(descGangs, float64(stats.Gangs-stats.PreemptingGangs-stats.DowngradedGangs), "allocated")
	send(descGangs, float64(stats.PreemptingGangs), "preempting")
	send(descGangs, float64(stats.DowngradedGangs), "downgraded")
	for _, level := range byType(stats.FreeByLevel) {
		send(descFree, float64(level.Count), level.CellType)
	}
	for i := range stats.VirtualClusters {
		v := &stats.VirtualClusters[i]
		send(descVCOwned, float64(v.Guaranteed), v.Name)
		send(descVCUsed, float64(v.UsedGuaranteed), v.Name)
		send(descVCOpp, float64(v.Opportunistic), v.Name)
		send(descVCBad, float64(v.Bad), v.Name)
		if v.CPU != (cell.CPUStats{}) {
			for kind, n := range map[string]int{"guaranteed": v.CPU.Guaranteed, "used": v.CPU.Used, "opportunistic": v.CPU.Opportunistic, "bad": v.CPU.Bad} {
				send(descVCCPU, float64(n), v.Name, kind)
			}
		}
		send(descVCFrag, v.Fragmentation, v.Name)
		for _, level := range byType(v.FreeByLevel) {
			send(descVCFree, float64(level.Count), v.Name, level.CellType)
		}
	}
	for name, n := range s.nodes {
		different := func(kind string, indices []int32) {
			if len(indices) > 0 {
				send(descNode, float64(len(indices)), name, kind)
			}
		}
		different("missing", n.report.Missing)
		different("unhealthy", n.report.Unhealthy)
		different("unexpected", n.report.Unexpected)
	}
}

func (b *Store) collectQueue(send func(*prometheus.Desc, float64, ...string), all []*gang, config cell.Config) {
	gangs, pods, oldest := map[string]int{}, map[string]int{}, map[string]float64{}
	inParts(b, all, func(s *state, g *gang) {
		if n := g.waiting(); n > 0 && s.gangs[g.gangKey] == g {
			gangs[g.vc]++
			pods[g.vc] += n
			oldest[g.vc] = max(oldest[g.vc], s.now().Sub(g.since()).Seconds())
		}
	})
	for i := range config.VirtualClusters {
		vc := config.VirtualClusters[i].Name
		send(descWaitGangs, float64(gangs[vc]), vc)
		send(descWaitPods, float64(pods[vc]), vc)
		send(descOldest, oldest[vc], vc)
	}
}

func (b *Store) collectPods(send func(*prometheus.Desc, float64, ...string), pods []*pod) {
	states := map[string]int{api.Waiting: 0, api.Preempting: 0, api.Binding: 0, api.Bound: 0, api.Ignored: 0}
	inParts(b, pods, func(s *state, p *pod) {
		if s.pods[p.uid] == p {
			states[p.state]++
		}
	})
	for state, n := range states {
		send(descPods, float64(n), state)
	}
}

// byType adds up the counts of each type, because several chains may contain cells of the same type.
func byType(levels []cell.LevelCount) []cell.LevelCount {
	var out []cell.LevelCount
next:
	for _, level := range levels {
		for i := range out {
			if out[i].CellType == level.CellType {
				out[i].Count += level.Count
				continue next
			}
		}
		out = append(out, level)
	}
	return out
}
