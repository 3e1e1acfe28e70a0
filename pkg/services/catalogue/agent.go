package catalogue

import (
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/layout"
)

// AgentService is the service that hands GPUs to containers, and the name of its section.
const AgentService = "agent"

// keySimulatedGPUs are the GPUs that machines pretend to have. It lies under global, where sections of services can't change it.
const keySimulatedGPUs = "simulatedGPUs"

// configureAgent gives the agent the machines whose GPUs it knows to hand out: those that simulate them. Unless its section says
// otherwise it is on where there are any.
func (b *builder) configureAgent() {
	s := b.services[AgentService]
	if s == nil || s.Upstream != nil {
		return
	}
	simulated := map[string]any{}
	for _, m := range machinesOf(b.cfg, s.Placement) {
		if gpu := simulatedGPU(b.cfg.Layout, m); gpu != nil {
			simulated[m.Hostname] = map[string]any{"model": gpu.Type, "count": int64(gpu.Count)}
		}
	}
	if section, ok := b.cfg.Services.Sections[AgentService].(map[string]any); !ok || section[keyEnabled] == nil {
		s.Enabled = len(simulated) > 0
	}
	if !s.Enabled {
		return
	}
	if len(simulated) == 0 {
		b.fail(at(AgentService, keyEnabled), "services/agent", "no machine simulates GPUs, and real ones can't be handed out yet",
			"set enabled: false; containers see the GPUs that NVIDIA_VISIBLE_DEVICES names, where NVIDIA's container runtime is the machines' default")
		return
	}
	terms := []any{} // a term of its own for each: Kubernetes allows one name in a term
	for _, name := range slices.Sorted(maps.Keys(simulated)) {
		terms = append(terms, map[string]any{"matchFields": []any{map[string]any{"key": "metadata.name", "operator": "In", "values": []any{name}}}})
	}
	s.Values = mergeComputed(map[string]any{
		keyGlobal: map[string]any{keySimulatedGPUs: simulated},
		keyAffinity: map[string]any{"nodeAffinity": map[string]any{
			"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": terms},
		}},
	}, s.Values)
}

// simulatedGPU returns the GPUs that a machine pretends to have, or nil.
func simulatedGPU(l layout.Layout, m layout.Machine) *layout.GPU {
	if gpu := l.MachineSKU[m.SKU].GPU; gpu != nil && gpu.Simulated && gpu.Count > 0 {
		return gpu
	}
	return nil
}
