package vc

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/api"
)

// The question before a change must show the policy, also if the cells change as well, or if the virtual cluster is new.
func TestAPolicyIsToldBesideCells(t *testing.T) {
	more, fresh := owner("a", 24, 3), owner("b", 8, 1)
	more.Policy, fresh.Policy = "fewer-kills", "start-now"
	var b bytes.Buffer
	require.NoError(t, writeValidation(&b, &api.Validation{Valid: true, VirtualClusters: []api.ChangedVirtualCluster{
		{Name: "a", Before: owner("a", 16, 2), After: more},
		{Name: "b", After: fresh},
	}}))
	assert.Contains(t, b.String(), "fewer-kills")
	assert.Contains(t, b.String(), "start-now")
}
