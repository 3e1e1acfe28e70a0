package catalogue

import (
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/layout"
)

// AgentService is the service that hands GPUs to containers, and the name of its section.
const AgentService = "agent"

// keyGPUs are the GPUs of machines. It lies under global, where sections of services can't change it.
const keyGPUs = "gpus"

// configureAgent gives the agent the machines whose GPUs it knows to hand out: NVIDIA's, AMD's, and simulated ones. Unless its section says otherwise
// it is on where there are any; on a Kubernetes that was there someone else may hand out real ones already.
func (b *builder) configureAgent() {
	s := b.services[AgentService]
	if s == nil || s.Upstream != nil {
		return
	}
	gpus, simulated := map[string]any{}, false
	for _, m := range machinesOf(b.cfg, s.Placement) {
		if gpu := servedGPU(b.cfg.Layout, m); gpu != nil {
			of := map[string]any{"model": gpu.Type, "count": int64(gpu.Count), "simulated": gpu.Simulated}
			if gpu.AMD() {
				of["vendor"] = "amd" // what pkg/agent/gpu calls AMD; without one it is NVIDIA
			}
			gpus[m.Hostname] = of
			simulated = simulated || gpu.Simulated
		}
	}
	if section, ok := b.cfg.Services.Sections[AgentService].(map[string]any); !ok || section[keyEnabled] == nil {
		s.Enabled = simulated || len(gpus) > 0 && b.cfg.IsManaged()
	}
	if !s.Enabled {
		return
	}
	if len(gpus) == 0 {
		b.fail(at(AgentService, keyEnabled), "services/agent", "no machine has GPUs that the agent knows to hand out: NVIDIA's, AMD's, or simulated ones",
			"set enabled: false")
		return
	}
	terms := []any{} // a term of its own for each: Kubernetes allows one name in a term
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

// servedGPU returns the GPUs of a machine that the agent knows to hand out, or nil.
func servedGPU(l layout.Layout, m layout.Machine) *layout.GPU {
	if gpu := l.MachineSKU[m.SKU].GPU; gpu != nil && gpu.Count > 0 && (gpu.Simulated || gpu.NVIDIA() || gpu.AMD()) {
		return gpu
	}
	return nil
}
