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
	// Charts is a file system whose folder charts contains one folder per chart. If it is nil, the charts of this paictl are used.
	Charts fs.FS
	// Fetcher fetches the charts of enabled upstream services. If it is nil, these services have no Chart. They can then be listed, checked and
	// stopped.
	Fetcher Fetcher
}

// Load builds the catalogue of a configuration. The findings are about the sections. If a finding is an error, no service should be started. The
// error of Load is about an embedded chart that is broken, or an upstream chart that can't be fetched.
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

// Check finds mistakes in the sections of services. It doesn't fetch upstream charts.
func Check(cfg *config.Cluster) config.Findings {
	_, findings, err := Load(context.Background(), cfg, Options{})
	if err != nil {
		return config.Findings{cfg.Finding(config.ServicesFile, strictyaml.Error, nil, "services/chart", err.Error(), hint.Of(err))}
	}
	return findings
}

// builder converts sections to services and collects their mistakes.
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

// isUpstream reports whether a section sets a chart. If the section has the name of an embedded service, the upstream service replaces the embedded
// service.
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

// otherServices returns names of OpenPAI's services that have no counterpart here. A migrated configuration still contains their sections.
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

// defaultNamespace is the namespace of services that don't set a namespace.
const defaultNamespace = kube.SystemNamespace
