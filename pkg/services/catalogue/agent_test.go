package catalogue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
)

// agentOf loads paictl's own charts, and returns the agent's service and the findings. g1 and g2 have real or simulated GPUs, and m1 has no GPU.
func agentOf(t *testing.T, simulated bool, section string) (*Service, config.Findings) {
	t.Helper()
	cfg := gpuCluster(t, 1, section)
	cfg.Layout.MachineSKU["8x-a100"].GPU.Simulated = simulated
	c, found, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	return c.Get(AgentService), found
}

func TestTheAgentRunsWhereGPUsAre(t *testing.T) {
	t.Parallel()
	s, found := agentOf(t, true, "agent: {service: {port: 9999}}\n")
	require.NoError(t, found.Err())
	assert.True(t, s.Enabled)
	gpus := map[string]any{"model": "A100", "count": int64(8), "simulated": true}
	assert.Equal(t, map[string]any{"g1": gpus, "g2": gpus}, s.Values[keyGlobal].(map[string]any)[keyGPUs])
	terms := s.Values[keyAffinity].(map[string]any)["nodeAffinity"].(map[string]any)["requiredDuringSchedulingIgnoredDuringExecution"].(map[string]any)["nodeSelectorTerms"]
	named := func(name string) any {
		return map[string]any{"matchFields": []any{map[string]any{"key": "metadata.name", "operator": "In", "values": []any{name}}}}
	}
	assert.Equal(t, []any{named("g1"), named("g2")}, terms)
	assert.Equal(t, map[string]any{"port": int64(9999)}, s.Values["service"], "the section holds")
}

func TestTheAgentHandsOutRealGPUsWherePaictlInstalledKubernetes(t *testing.T) {
	t.Parallel()
	s, found := agentOf(t, false, "")
	require.NoError(t, found.Err())
	assert.True(t, s.Enabled)
	assert.Equal(t, map[string]any{"model": "A100", "count": int64(8), "simulated": false}, s.Values[keyGlobal].(map[string]any)[keyGPUs].(map[string]any)["g1"])
	s, _ = agentOf(t, true, "agent: {enabled: false}\n")
	assert.False(t, s.Enabled)

	cfg := gpuCluster(t, 1, "")
	managed := false
	cfg.Kubernetes.Kubernetes.Managed = &managed
	c, _, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	assert.False(t, c.Get(AgentService).Enabled, "NVIDIA's device plugin may be there")

	for _, other := range []string{"Gaudi2", "pci-1da3-1020"} {
		cfg = gpuCluster(t, 1, "agent: {enabled: true}\n")
		cfg.Layout.MachineSKU["8x-a100"].GPU.Type = other
		_, found, err = Load(t.Context(), cfg, Options{})
		require.NoError(t, err)
		assert.Contains(t, strings.Join(lines(found), "\n"), "no machine has GPUs that the agent supports")
	}
}

func TestGPUsForPodsAreTheAgentsToGive(t *testing.T) {
	t.Parallel()
	load := func(section string) (*Service, config.Findings) {
		cfg := gpuCluster(t, 1, section)
		for i := range cfg.Layout.MachineList {
			if cfg.Layout.MachineList[i].Hostname == "g2" {
				cfg.Layout.MachineList[i].GPUsForPods = []int{7, 6}
			}
		}
		c, found, err := Load(t.Context(), cfg, Options{})
		require.NoError(t, err)
		return c.Get(AgentService), found
	}
	s, found := load("")
	require.NoError(t, found.Err())
	gpus := s.Values[keyGlobal].(map[string]any)[keyGPUs].(map[string]any)
	assert.Equal(t, map[string]any{"model": "A100", "count": int64(8), "simulated": false, "forPods": []any{int64(6), int64(7)}}, gpus["g2"])
	assert.NotContains(t, gpus["g1"], "forPods")
	for section, remedy := range map[string]string{
		"agent: {enabled: false}\n":                     "set enabled: true in the section agent",
		"agent: {placement: [master]}\n":                "set enabled: true in the section agent",
		"agent: {enabled: true, placement: [master]}\n": "add a role of the machine to the placement",
	} {
		_, found := load(section)
		said := strings.Join(lines(found), "\n")
		assert.Contains(t, said, "layout.yaml", section)
		assert.Contains(t, said, "the agent doesn't run on g2, and nothing else allocates these GPUs to pods", section)
		assert.Contains(t, said, remedy, section)
	}
}

func TestTheAgentIsToldWhoseGPUsAMachineHas(t *testing.T) {
	t.Parallel()
	for _, simulated := range []bool{false, true} {
		cfg := gpuCluster(t, 1, "")
		cfg.Layout.MachineSKU["8x-a100"].GPU.Type = "AMD-Instinct-MI300X"
		cfg.Layout.MachineSKU["8x-a100"].GPU.Simulated = simulated
		c, found, err := Load(t.Context(), cfg, Options{})
		require.NoError(t, err)
		require.NoError(t, found.Err())
		s := c.Get(AgentService)
		require.True(t, s.Enabled)
		assert.Equal(t, map[string]any{"model": "AMD-Instinct-MI300X", "count": int64(8), "simulated": simulated, "vendor": "amd"},
			s.Values[keyGlobal].(map[string]any)[keyGPUs].(map[string]any)["g1"])
	}
}

func TestGPUsAreSharedOnlyWhereTheAgentRuns(t *testing.T) {
	t.Parallel()
	for section, remedy := range map[string]string{
		"":                          "",
		"agent: {enabled: false}\n": "set enabled: true in the section agent",
		"agent: {enabled: true, placement: [master]}\n": "add a role of the machine to the placement",
	} {
		cfg := gpuCluster(t, 1, section)
		cfg.Layout.MachineSKU["8x-a100"].GPU.Parts = 4
		_, found, err := Load(t.Context(), cfg, Options{})
		require.NoError(t, err)
		said := strings.Join(lines(found), "\n")
		if remedy == "" {
			assert.NotContains(t, said, "jobs are to share")
			continue
		}
		assert.Contains(t, said, "jobs are to share the GPUs of", section)
		assert.Contains(t, said, remedy, section)
	}
}

func TestGPUsAreSplitIntoInstancesOnlyWhereTheAgentRuns(t *testing.T) {
	t.Parallel()
	cfg := gpuCluster(t, 1, "")
	cfg.Layout.MachineSKU["8x-a100"].GPU.MIG = "7g.80gb"
	c, found, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	assert.Equal(t, "7g.80gb", c.Get(AgentService).Values[keyGlobal].(map[string]any)[keyGPUs].(map[string]any)["g1"].(map[string]any)["mig"])

	cfg = gpuCluster(t, 1, "agent: {enabled: false}\n")
	cfg.Layout.MachineSKU["8x-a100"].GPU.MIG = "7g.80gb"
	_, found, err = Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	said := strings.Join(lines(found), "\n")
	assert.Contains(t, said, "are to be split into instances (gpu.mig of its SKU 8x-a100), but the agent, which splits GPUs, doesn't run there")
	assert.Contains(t, said, "or remove mig")
}
