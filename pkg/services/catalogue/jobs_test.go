package catalogue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
)

func jobsOf(t *testing.T, masters int, sections string) (*Catalogue, *Service, config.Findings) {
	t.Helper()
	c, found, err := Load(t.Context(), gpuCluster(t, masters, sections), Options{})
	require.NoError(t, err)
	return c, c.Get(JobService), found
}

const dsnSection = "job-controller: {postgresql: {enabled: true, dsn: \"postgres://pai:hunter2@db/pai\"}}\n"

func TestJobsAreArchivedInAFileUnlessADatabaseIsNamed(t *testing.T) {
	c, s, found := jobsOf(t, 3, "")
	require.NoError(t, found.Err())
	assert.Equal(t, "pai-scheduler", s.Values["schedulerName"])
	assert.Nil(t, s.Values["replicas"], "a file has one writer")
	assert.Contains(t, volumesFor(c), "job-controller-data")

	c, s, found = jobsOf(t, 3, dsnSection)
	require.NoError(t, found.Err())
	assert.EqualValues(t, 2, s.Values["replicas"])
	assert.NotContains(t, volumesFor(c), "job-controller-data")
	assert.Equal(t, "postgres://pai:hunter2@db/pai", s.Credentials["postgresql.dsn"].Reveal())
	assert.NotContains(t, s.Values["postgresql"], "dsn")
	_, s, _ = jobsOf(t, 1, dsnSection)
	assert.EqualValues(t, 1, s.Values["replicas"], "one master runs one")
}

// volumesFor returns the claims for which the storage service creates volumes.
func volumesFor(c *Catalogue) []string {
	var out []string
	for _, v := range c.Get(storageService).Values["local"].(map[string]any)["serviceVolumes"].([]any) {
		out = append(out, v.(map[string]any)["claim"].(string))
	}
	return out
}

func TestJobsGoToKubernetesWhereTheSchedulerOfGPUsDoesNotRun(t *testing.T) {
	_, s, found := jobsOf(t, 1, "scheduler: {enabled: false}\n")
	require.NoError(t, found.Err())
	assert.Empty(t, s.Values["schedulerName"])
}

func TestJobsGetTheirGPUsByClaimsWhereTheAgentServesThem(t *testing.T) {
	t.Parallel()
	jobs := func(simulated bool, sections string, change func(*config.Cluster)) (*Service, string) {
		cfg := gpuCluster(t, 1, sections)
		cfg.Layout.MachineSKU["8x-a100"].GPU.Simulated = simulated
		if change != nil {
			change(cfg)
		}
		c, found, err := Load(t.Context(), cfg, Options{})
		require.NoError(t, err)
		return c.Get(JobService), strings.Join(lines(found), "\n")
	}
	for _, simulated := range []bool{true, false} {
		s, found := jobs(simulated, "", nil)
		assert.Empty(t, found)
		assert.Equal(t, true, s.Values["claims"])
		assert.Contains(t, s.Requires, AgentService, "it starts with the agent")
	}

	for name, c := range map[string]struct {
		simulated bool
		sections  string
		change    func(*config.Cluster)
	}{
		"turned off":   {simulated: true, sections: "job-controller: {claims: false}\n"},
		"no agent":     {simulated: true, sections: "agent: {enabled: false}\n"},
		"no scheduler": {simulated: true, sections: "scheduler: {enabled: false}\n"},
		"other vendors' GPUs elsewhere": {simulated: true, change: func(cfg *config.Cluster) {
			cfg.Layout.MachineSKU["other"] = layout.SKU{GPU: &layout.GPU{Type: "Gaudi2", Count: 8}}
			cfg.Layout.MachineList[len(cfg.Layout.MachineList)-1].SKU = "other"
		}},
	} {
		s, _ := jobs(c.simulated, c.sections, c.change)
		assert.Equal(t, false, s.Values["claims"], name)
		assert.NotContains(t, s.Requires, AgentService, name)
	}
	_, found := jobs(false, "agent: {enabled: false}\njob-controller: {claims: true}\n", nil)
	assert.Contains(t, found, "jobs/claims")
}

func TestSettingsOfTheArchiveThatDoNotGoTogetherAreFound(t *testing.T) {
	for name, c := range map[string]struct{ section, want string }{
		"no database":         {"job-controller: {postgresql: {enabled: true}}\n", "jobs/no-dsn"},
		"database not used":   {"job-controller: {postgresql: {dsn: \"postgres://db/pai\"}}\n", "jobs/dsn-unused"},
		"several with a file": {"job-controller: {replicas: 2}\n", "jobs/replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, found := jobsOf(t, 1, c.section)
			assert.Contains(t, strings.Join(lines(found), "\n"), c.want)
		})
	}
}
