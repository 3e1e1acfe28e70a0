package main

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/version"
)

// newRegistry returns a registry with the metrics of the process.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pai_controller_build_info", Help: "The version of the controller, as a label.", ConstLabels: prometheus.Labels{"version": version.Version},
	})
	build.Set(1)
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// tellLeader adds a metric that shows whether this replica is the leader.
func tellLeader(r prometheus.Registerer, leads func() bool) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pai_controller_leader", Help: "Whether this replica leads."}, func() float64 {
		if leads() {
			return 1
		}
		return 0
	}))
}

// tellBroken adds a metric with the number of damaged archives. It doesn't count the current archive.
func tellBroken(r prometheus.Registerer, place archive.Options) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pai_archive_broken_files", Help: "Archives that were damaged and put aside, and that are still there.",
	}, func() float64 { return float64(len(place.Broken())) }))
}

// tellUsage adds metrics about the holders of GPUs and about GPU time. The values come from the archive, so a restart
// doesn't reset them. All replicas share the archive, so only the leading replica exports these metrics.
func tellUsage(r prometheus.Registerer, store archive.Store, leads func() bool, log *slog.Logger) {
	r.MustRegister(&usage{store: store, leads: leads, log: log, now: time.Now})
}

const (
	// usageFresh is how long a result of a query to the archive is cached.
	usageFresh = 20 * time.Second
	usageTime  = 5 * time.Second
)

var (
	// The label isn't named pod, because Prometheus sets that label to the name of the controller's pod.
	descTaskGPUs = prometheus.NewDesc("pai_task_gpus", "GPUs that a task holds.", []string{"task_pod", "job_name", "user", "vc", "type", "opportunistic"}, nil)
	descGPUTime  = prometheus.NewDesc("pai_gpu_seconds_total", "GPU time since midnight, UTC: eight GPUs held for a minute are 480 seconds.", []string{"user", "vc", "type", "opportunistic"}, nil)
)

// usage collects the metrics that tellUsage adds.
type usage struct {
	store archive.Store
	leads func() bool
	log   *slog.Logger
	now   func() time.Time

	mu    sync.Mutex
	at    time.Time
	holds []api.Hold
	today *api.Usage
}

// Describe implements prometheus.Collector.
func (u *usage) Describe(out chan<- *prometheus.Desc) { out <- descTaskGPUs; out <- descGPUTime }

// Collect implements prometheus.Collector. If the archive doesn't respond, it returns no metrics, because another
// metric reports that failure.
func (u *usage) Collect(out chan<- prometheus.Metric) {
	if !u.leads() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.read(); err != nil {
		u.log.Warn("GPU time can't be reported", "error", err.Error())
		return
	}
	pods := map[string]bool{}
	for i := range u.holds {
		h := &u.holds[i]
		if pods[h.Pod] {
			continue // one that was deleted by force; another pod has its name now
		}
		pods[h.Pod] = true
		out <- prometheus.MustNewConstMetric(descTaskGPUs, prometheus.GaugeValue, float64(h.GPUs), h.Pod, h.Job, h.User, h.VirtualCluster, h.Type, strconv.FormatBool(h.Opportunistic))
	}
	for i := range u.today.Items {
		t := &u.today.Items[i]
		for kind, n := range map[string]int64{"false": t.Guaranteed, "true": t.Opportunistic} {
			if n > 0 {
				out <- prometheus.MustNewConstMetric(descGPUTime, prometheus.CounterValue, float64(n), t.User, t.VirtualCluster, t.Type, kind)
			}
		}
	}
}

func (u *usage) read() error {
	now := u.now()
	if age := now.Sub(u.at); u.today != nil && age >= 0 && age < usageFresh {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), usageTime)
	defer cancel()
	holds, err := u.store.Holds(ctx)
	if err != nil {
		return err
	}
	today, err := u.store.Usage(ctx, api.UsageQuery{Since: now.UTC().Truncate(24 * time.Hour), Until: now.Add(time.Second), By: []string{api.ByUser, api.ByVC, api.ByType}})
	if err != nil {
		return err
	}
	u.holds, u.today, u.at = holds, today, now
	return nil
}
