package statustest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/statustest"
)

func TestTheSameSeedMakesTheSameModel(t *testing.T) {
	first := statustest.Cluster(statustest.Small())
	assert.Equal(t, first, statustest.Cluster(statustest.Small()))
	other := statustest.Small()
	other.Seed++
	assert.NotEqual(t, statustest.Cluster(statustest.Small()), statustest.Cluster(other))
}

func TestAModelHasWhatWasAskedFor(t *testing.T) {
	o := statustest.Large()
	o.Stale, o.Absent = []string{status.SourceJobs}, []string{status.SourceAlerts}
	c := statustest.Cluster(o)
	assert.Equal(t, status.Counts{Machines: 1000, MachinesReady: 990, GPUs: 7976, GPUsSick: 40, Services: 12, ServicesReady: 11}, status.Counts{
		Machines: c.Counts.Machines, MachinesReady: c.Counts.MachinesReady, GPUs: c.Counts.GPUs, GPUsSick: c.Counts.GPUsSick, Services: c.Counts.Services, ServicesReady: c.Counts.ServicesReady})
	assert.Len(t, c.Jobs, 10_000)
	assert.Positive(t, c.Counts.GPUsUsed)
	assert.Positive(t, c.Counts.Waiting)
	assert.Positive(t, c.Counts.Failed)
	assert.Equal(t, status.LevelCritical, c.Verdict.Level)
	assert.Less(t, len(c.Verdict.Problems), 20, "the same trouble of many is one problem")
	assert.Empty(t, statustest.Cluster(statustest.Options{}).Verdict.Problems)
}
