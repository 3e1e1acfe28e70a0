package catalogue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/layout"
)

// AgentService is the service that allocates GPUs to containers. The service's section has the same name.
const AgentService = "agent"

// keyGPUs is the key that holds the machines' GPUs. keyGPUs is a key of global, which the sections of services can't change.
const keyGPUs = "gpus"

// configureAgent passes the machines whose GPUs the agent can allocate: GPUs of NVIDIA and AMD, and simulated GPUs. By default, the agent is enabled
// if the layout contains such a machine. If paictl didn't install Kubernetes, real GPUs don't enable the agent, because another program may already
// allocate real GPUs.
func (b *builder) configureAgent() {
	s := b.services[AgentService]
	if s == nil || s.Upstream != nil {
		return
	}
	gpus, simulated := map[string]any{}, false
	for _, m := range machinesOf(b.cfg, s.Placement) {
		if gpu := servedGPU(b.cfg.Layout, m); gpu != nil {
			has := map[string]any{"model": gpu.Type, "count": int64(gpu.Count), "simulated": gpu.Simulated}
			if gpu.AMD() {
				has["vendor"] = "amd" // the name of AMD in pkg/node/agent/gpu; without a vendor it is NVIDIA
			}
			if gpu.Shares() > 1 {
				has["parts"] = int64(gpu.Shares())
			}
			if gpu.MIG != "" {
				has["mig"] = gpu.MIG
			}
			if len(m.GPUsForPods) > 0 {
				has[keyForPods] = indices(m.GPUsForPods)
			}
			gpus[m.Hostname] = has
			simulated = simulated || gpu.Simulated
		}
	}
	if section, ok := b.cfg.Services.Sections[AgentService].(map[string]any); !ok || section[keyEnabled] == nil {
		s.Enabled = simulated || len(gpus) > 0 && b.cfg.IsManaged()
	}
	b.checkGPUsForPods(s.Enabled, gpus)
	b.checkShared(s.Enabled, gpus)
	if !s.Enabled {
		return
	}
	if len(gpus) == 0 {
		b.fail(at(AgentService, keyEnabled), "services/agent", "no machine has GPUs that the agent supports: NVIDIA's, AMD's, or simulated ones",
			"set enabled: false")
		return
	}
	terms := []any{} // a separate term for each, because Kubernetes allows only one name in a term
	for _, name := range slices.Sorted(maps.Keys(gpus)) {
		terms = append(terms, map[string]any{"matchFields": []any{map[string]any{"key": "metadata.name", "operator": "In", "values": []any{name}}}})
	}
	s.Values = mergeComputed(map[string]any{
		keyGlobal: map[string]any{keyGPUs: gpus},
		keyAffinity: map[string]any{"nodeAffinity": map[string]any{
			"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": terms},
		}},
	}, s.Values)
}

// keyForPods is the key that holds the indices of a machine's GPUs for ordinary pods.
const keyForPods = "forPods"

func indices(list []int) []any {
	out := make([]any, len(list))
	for i, index := range slices.Sorted(slices.Values(list)) {
		out[i] = int64(index)
	}
	return out
}

// checkGPUsForPods rejects GPUs for ordinary pods on machines without the agent. On such machines, no program would allocate these GPUs.
func (b *builder) checkGPUsForPods(runs bool, on map[string]any) {
	for i, m := range b.cfg.Layout.MachineList {
		if len(m.GPUsForPods) == 0 || runs && on[m.Hostname] != nil || servedGPU(b.cfg.Layout, m) == nil {
			continue // unknown GPUs have a finding in the layout
		}
		remedy := "add a role of the machine to the placement of the section " + AgentService
		if !runs {
			remedy = "set enabled: true in the section " + AgentService
		}
		b.findings = append(b.findings, b.cfg.Finding(config.LayoutFile, strictyaml.Error, at("machine-list", i, "gpus-for-pods"), "services/gpus-for-pods",
			fmt.Sprintf("the agent doesn't run on %s, and nothing else allocates these GPUs to pods", m.Hostname), remedy+", or remove the line"))
	}
}

// checkShared rejects the setting to split GPUs on machines without the agent, because other programs don't split GPUs.
func (b *builder) checkShared(runs bool, on map[string]any) {
	for i, m := range b.cfg.Layout.MachineList {
		gpu := servedGPU(b.cfg.Layout, m)
		if gpu == nil || gpu.Shares() == 1 && gpu.MIG == "" || runs && on[m.Hostname] != nil {
			continue
		}
		what, line := fmt.Sprintf("jobs are to share the GPUs of %s (gpu.parts of its SKU %s), but the agent, which allocates parts, doesn't run there", m.Hostname, m.SKU), "parts"
		if gpu.MIG != "" {
			what, line = fmt.Sprintf("the GPUs of %s are to be split into instances (gpu.mig of its SKU %s), but the agent, which splits GPUs, doesn't run there", m.Hostname, m.SKU), "mig"
		}
		remedy := "add a role of the machine to the placement of the section " + AgentService
		if !runs {
			remedy = "set enabled: true in the section " + AgentService
		}
		b.findings = append(b.findings, b.cfg.Finding(config.LayoutFile, strictyaml.Error, at("machine-list", i, "machine-type"), "services/shared-gpus",
			what, remedy+", or remove "+line))
	}
}

// servedGPU returns the GPUs of a machine that the agent can allocate, or nil.
func servedGPU(l layout.Layout, m layout.Machine) *layout.GPU {
	if gpu := l.MachineSKU[m.SKU].GPU; gpu != nil && gpu.Count > 0 && (gpu.Simulated || gpu.NVIDIA() || gpu.AMD()) {
		return gpu
	}
	return nil
}
