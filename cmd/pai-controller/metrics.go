package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/openpai/paictl/pkg/framework/archive"
	"github.com/openpai/paictl/pkg/version"
)

// newRegistry has the metrics of the program itself; its parts add their own.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "pai_controller_build_info", Help: "The version of the controller, as a label.", ConstLabels: prometheus.Labels{"version": version.Version},
	})
	build.Set(1)
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// tellLeader adds whether this replica leads.
func tellLeader(r prometheus.Registerer, leads func() bool) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pai_controller_leader", Help: "Whether this replica leads."}, func() float64 {
		if leads() {
			return 1
		}
		return 0
	}))
}

// tellBroken adds how many damaged archives lie beside the one in use.
func tellBroken(r prometheus.Registerer, place archive.Options) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pai_archive_broken_files", Help: "Archives that were damaged and put aside, and that are still there.",
	}, func() float64 { return float64(len(place.Broken())) }))
}
