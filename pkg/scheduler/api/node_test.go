package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGPUsForPodsAreNeitherUnexpectedNorForCells(t *testing.T) {
	const told = `{"devices":[{"index":0,"healthy":true},{"index":1,"healthy":true,"forPods":true}]}`
	both := CompareNode("n", "A100", []int32{0}, told)
	assert.Empty(t, both.Difference())
	late := CompareNode("n", "A100", []int32{0, 1}, told) // the scheduler's configuration is older than the agent's
	assert.Equal(t, []int32{1}, late.Unhealthy)
	assert.Equal(t, "GPUs [1] are not healthy; GPU 1: it is for ordinary pods", late.Difference())
}

func TestNumbersOfDevicesMeanNothingWhereOneOfBothSplitsGPUs(t *testing.T) {
	whole := `{"devices":[{"index":0,"healthy":true},{"index":1,"healthy":true}]}`
	parts := `{"devices":[{"index":0,"healthy":true},{"index":1,"healthy":true}],"parts":2}`
	mig := `{"devices":[{"index":0,"healthy":true},{"index":1,"healthy":true}],"parts":2,"mig":"3g.40gb"}`
	for _, c := range []struct {
		leaf, text string
		agree      bool
	}{{"A100-MIG-3G-40GB", mig, true}, {"A100" + MIGSuffix("3g.40gb"), mig, true}, {"A100-MIG-3g-40gb", mig, true},
		{"A100-MIG-1G-10GB", mig, false}, {"A100-MIG-3G-40GB", parts, false}, {"A100-PART-2", mig, false}, {"A100", mig, false}, {"A100-MIG-3G-40GB", whole, false},
		{"A100", whole, true}, {"A100-PART-2", parts, true}, {"A100-PART-2", whole, false}, {"A100", parts, false}, {"A100-PART-4", parts, false}, {"A100-PART-x", whole, true}} {
		n := CompareNode("n", c.leaf, []int32{0, 1}, c.text)
		if c.agree {
			assert.Empty(t, n.Difference(), "%+v", c)
		} else {
			assert.Equal(t, []int32{0, 1}, n.Unhealthy, "%+v", c)
			assert.Contains(t, n.Difference(), "the agent allocates ")
		}
	}
	assert.Contains(t, (&Node{Why: CompareNode("n", "A100", []int32{0}, mig).Why}).Difference(), "the agent allocates instances of the profile 3g.40gb, but the scheduler's cells (A100) say otherwise")
}
