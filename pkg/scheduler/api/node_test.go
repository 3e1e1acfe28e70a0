package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGPUsForPodsAreNeitherUnexpectedNorForCells(t *testing.T) {
	const told = `{"devices":[{"index":0,"healthy":true},{"index":1,"healthy":true,"forPods":true}]}`
	both := CompareNode("n", []int32{0}, told)
	assert.Empty(t, both.Difference())
	late := CompareNode("n", []int32{0, 1}, told) // the scheduler's configuration is older than the agent's
	assert.Equal(t, []int32{1}, late.Unhealthy)
	assert.Equal(t, "GPUs [1] are not healthy; GPU 1: it is for ordinary pods", late.Difference())
}
