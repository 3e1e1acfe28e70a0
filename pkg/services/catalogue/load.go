package catalogue

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
)

// Options defines the sources of charts.
type Options struct {
	// Charts is a file system whose folder charts contains a folder for each chart. The default is the file system with the charts of this paictl.
	Charts fs.FS
	// Fetcher fetches the charts of enabled upstream services. If Fetcher is nil, Service.Chart is nil for upstream services. Such services can be
	// listed, checked and stopped.
	Fetcher Fetcher
}

// Load builds the catalogue of a configuration. The findings are about the services' sections. Callers must not start services if a finding is an
// error. Load returns an error if an embedded chart is invalid, or if an upstream chart can't be fetched.
func Load(ctx context.Context, cfg *config.Cluster, o Options) (*Catalogue, config.Findings, error) {
	embedded, err := readCharts(o.Charts)
	if err != nil {
		return nil, nil, err
	}
	b := &builder{cfg: cfg, embedded: embedded, services: map[string]*Service{}}
	c := b.load()
	if o.Fetcher == nil {
		return c, b.findings, nil
	}
	enabled := slices.DeleteFunc(c.Services(), func(s *Service) bool { return !s.Enabled })
	found, err := c.FetchCharts(ctx, o.Fetcher, enabled)
	return c, append(b.findings, found...), err
}

// Check reports mistakes in the sections of services. Check doesn't fetch upstream charts.
func Check(cfg *config.Cluster) config.Findings {
	_, findings, err := Load(context.Background(), cfg, Options{})
	if err != nil {
		return config.Findings{cfg.Finding(config.ServicesFile, strictyaml.Error, nil, "services/chart", err.Error(), hint.Of(err))}
	}
	return findings
}

type builder struct {
	cfg      *config.Cluster
	embedded map[string]*embeddedChart
	services map[string]*Service
	findings config.Findings
}

func (b *builder) load() *Catalogue {
	sections := b.cfg.Services.Sections
	for _, name := range sorted(maps.Keys(b.embedded)) {
		if !isUpstream(sections[name]) {
			b.services[name] = b.embeddedService(b.embedded[name], sections[name])
		}
	}
	for _, name := range sorted(maps.Keys(sections)) {
		switch {
		case isUpstream(sections[name]):
			b.services[name] = b.upstreamService(name, sections[name].(map[string]any))
		case b.embedded[name] == nil:
			b.unknownService(name)
		}
	}
	c := &Catalogue{cfg: b.cfg, services: b.services}
	c.otherRelease, c.laterRelease = b.checkRelease()
	b.checkRequires()
	b.checkPlacement()
	b.configureScheduler()
	b.configureAgent()
	b.configureJobs()
	b.configureServer()
	b.checkServer()
	b.checkProviders()
	b.configureLinks()
	b.configureAlerts()
	c.verifiesKubelets = b.configurePrometheus()
	b.checkBackups()
	c.volumes = b.giveVolumes()
	b.checkValues()
	b.checkHostPorts()
	b.findings.Sort()
	return c
}

// isUpstream reports whether a section sets a chart. Such a section replaces the embedded service with the same name.
func isUpstream(section any) bool {
	m, ok := section.(map[string]any)
	return ok && m[keyChart] != nil
}

func (b *builder) unknownService(name string) {
	if name == hivedSection && b.embedded[SchedulerService] != nil {
		return // the scheduler reads it
	}
	if slices.Contains(otherServices(), name) {
		b.warn(at(name), "services/not-in-release", fmt.Sprintf("there is no service %s in this release; its section is kept, but not used", name), "")
		return
	}
	known := append(sorted(maps.Keys(b.embedded)), "cluster")
	remedy := nearestService(name, known)
	if strictyaml.Nearest(name, known) == "" {
		remedy += "; your own service needs the key chart"
	}
	b.fail(at(name), "services/unknown-service", fmt.Sprintf("there is no service %q", name), remedy)
}

// otherServices returns the names of OpenPAI's services for which paictl has no counterpart. A migrated configuration still contains their sections.
func otherServices() []string {
	return []string{
		"authentication", "azure-rdma", "cleaner", "cluster-utilization", "database-controller", "dev-box", "device-plugin", "docker-cache",
		"end-to-end-test", "etcd-upgrade", "fluentd", "frameworkcontroller", "hadoop-resource-manager", "hivedscheduler", "internal-storage", "job-exit-spec", "job-exporter",
		"k8s-job-exit-spec", "log-manager", "marketplace-db", "marketplace-restserver", "marketplace-webportal", "openpai-runtime", "postgresql",
		"prometheus-pushgateway", "pylon", "storage-manager", "utilities", "webportal",
	}
}

func (b *builder) fail(p strictyaml.Path, rule, message, remedy string) {
	b.findings = append(b.findings, b.cfg.Finding(config.ServicesFile, strictyaml.Error, p, rule, message, remedy))
}

func (b *builder) warn(p strictyaml.Path, rule, message, remedy string) {
	b.findings = append(b.findings, b.cfg.Finding(config.ServicesFile, strictyaml.Warning, p, rule, message, remedy))
}

func sorted(keys iter.Seq[string]) []string { return slices.Sorted(keys) }

const defaultNamespace = kube.SystemNamespace
