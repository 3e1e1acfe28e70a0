package catalogue

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
)

// SchedulerService is the service that allocates GPUs to gangs of pods. The service's section has the same name.
const SchedulerService = "scheduler"

// hivedSection is the name of the scheduler's section in OpenPAI. The value of its key config is HiveD's configuration file.
const hivedSection = "hivedscheduler"

// keySchedulerConfiguration is the key that holds the scheduler's complete configuration. keySchedulerConfiguration is a key of global, which
// sections can't change.
const keySchedulerConfiguration = "schedulerConfiguration"

// SchedulerConfig builds the scheduler's configuration from the layout's machines and the section scheduler. Findings have positions in
// services-configuration.yaml. The configuration can't be used if a finding is an error.
func SchedulerConfig(cfg *config.Cluster) (cell.Config, config.Findings) {
	file := filepath.Join(cfg.Dir, config.ServicesFile)
	if text := cfg.Source(config.ServicesFile); text != nil {
		return schedulerconfig.FromCluster(cfg.Layout, file, text)
	}
	// The file doesn't exist. Encode the sections in memory to get positions.
	sections := schedulerSections(cfg)
	text, err := strictyaml.Encode(sections, nil)
	if err != nil {
		return cell.Config{}, config.Findings{cfg.Finding(config.ServicesFile, strictyaml.Error, at(SchedulerService), "scheduler/section", err.Error(), "")}
	}
	c, found := schedulerconfig.FromCluster(cfg.Layout, file, text)
	paths := map[string]strictyaml.Path{}
	collectPaths(sections, strictyaml.Path{}, paths)
	var out config.Findings
	for _, f := range found {
		out = append(out, cfg.Finding(config.ServicesFile, f.Severity, placeOf(f.Field, paths), f.Rule, f.Message, f.Remedy))
	}
	return c, out
}

// schedulerSections returns the sections that the scheduler reads. Other sections are left out, because they may contain secrets.
func schedulerSections(cfg *config.Cluster) map[string]any {
	out := map[string]any{}
	for _, name := range []string{SchedulerService, hivedSection} {
		if section, ok := cfg.Services.Sections[name].(map[string]any); ok && !isUpstream(section) {
			out[name] = section
		}
	}
	return out
}

// collectPaths adds the paths of all fields of a value to out. Each key is the text of a path, as in findings.
func collectPaths(v any, p strictyaml.Path, out map[string]strictyaml.Path) {
	out[p.String()] = p
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			collectPaths(below, p.With(key), out)
		}
	case []any:
		for i, below := range v {
			collectPaths(below, p.With(i), out)
		}
	}
}

// placeOf returns the path of a field, or of the nearest existing parent. For findings about the layout, placeOf returns the section.
func placeOf(field string, paths map[string]strictyaml.Path) strictyaml.Path {
	best := at(SchedulerService)
	for text, p := range paths {
		if (field == text || strings.HasPrefix(field, text+".") || strings.HasPrefix(field, text+"[")) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

// schedules reports whether the scheduler is enabled by default. schedules returns true if a machine has GPUs, or if a section describes hardware or
// virtual clusters.
func schedules(cfg *config.Cluster) bool {
	sections := schedulerSections(cfg)
	section, _ := sections[SchedulerService].(map[string]any)
	if sections[hivedSection] != nil || section["virtualClusters"] != nil || section["physicalCluster"] != nil {
		return true
	}
	for _, m := range cfg.Layout.MachineList {
		if gpu := cfg.Layout.MachineSKU[m.SKU].GPU; gpu != nil && gpu.Count > 0 {
			return true
		}
	}
	return false
}

// configureScheduler sets the scheduler's configuration. configureScheduler adds a standby if a second machine is available.
func (b *builder) configureScheduler() {
	s := b.services[SchedulerService]
	if s == nil || s.Upstream != nil {
		return
	}
	if section, ok := b.cfg.Services.Sections[SchedulerService].(map[string]any); (!ok || section[keyEnabled] == nil) && !schedules(b.cfg) {
		s.Enabled = false
	}
	if !s.Enabled {
		return
	}
	c, found := SchedulerConfig(b.cfg)
	b.findings = append(b.findings, notSaidBySchema(found)...)
	b.warnHived()
	computed := map[string]any{"replicas": int64(min(2, max(1, len(machinesOf(b.cfg, s.Placement)))))}
	if found.Err() == nil {
		text, err := schedulerconfig.Encode(c)
		if err != nil {
			b.fail(at(SchedulerService), "scheduler/configuration", fmt.Sprintf("the scheduler's configuration can't be written: %v", err), "")
		}
		computed[keyGlobal] = map[string]any{keySchedulerConfiguration: string(text)}
	}
	s.Values = mergeComputed(computed, s.Values)
}

// SchedulerConfiguration returns the scheduler's configuration in the values of a release, or "".
func SchedulerConfiguration(values map[string]any) string {
	global, _ := values[keyGlobal].(map[string]any)
	text, _ := global[keySchedulerConfiguration].(string)
	return text
}

// WithSchedulerConfiguration returns a copy of a release's values with the given scheduler configuration.
func WithSchedulerConfiguration(values map[string]any, text string) map[string]any {
	out := maps.Clone(values)
	global, _ := values[keyGlobal].(map[string]any)
	if global = maps.Clone(global); global == nil {
		global = map[string]any{}
	}
	global[keySchedulerConfiguration] = text
	out[keyGlobal] = global
	return out
}

// warnHived warns about OpenPAI's settings that have no effect. The key config is still used.
func (b *builder) warnHived() {
	section, _ := b.cfg.Services.Sections[hivedSection].(map[string]any)
	for _, key := range sorted(maps.Keys(section)) {
		if key != "config" {
			b.warn(at(hivedSection, key), "services/not-in-release", "the scheduler no longer has this setting", "see the section scheduler in the generated services-configuration.yaml")
		}
	}
}

// notSaidBySchema removes findings that the chart's schema also reports. notSaidBySchema keeps findings about HiveD's configuration, which the schema
// doesn't check.
func notSaidBySchema(found config.Findings) config.Findings {
	return slices.DeleteFunc(slices.Clone(found), func(f strictyaml.Finding) bool {
		return (f.Rule == "scheduler/unknown-key" || f.Rule == "yaml/type") &&
			strings.HasPrefix(f.Field, SchedulerService+".") && !strings.HasPrefix(f.Field, SchedulerService+".config")
	})
}
