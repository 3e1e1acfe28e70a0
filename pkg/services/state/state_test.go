package state

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/services/ready"
)

func TestAnUnknownServiceSaysWhyByItself(t *testing.T) {
	own := []ready.Problem{{Reason: "Unknown", Message: "it has objects elsewhere"}}
	r := Report{Items: []Status{{Name: "grafana", State: StateUnknown}, {Name: "loki", State: StateUnknown, Problems: own}, {Name: "prometheus", State: StateReady}}}
	assert.Equal(t, r.Items, r.Explained())
	r.Notes = []Note{{Message: "another configuration was pushed"}, {Message: "the run was interrupted", Remedy: "run it again"}}
	got := r.Explained()
	assert.Equal(t, []ready.Problem{{Object: "release/grafana", Reason: "Unknown", Message: "the run was interrupted", Hint: "run it again"}}, got[0].Problems)
	assert.Equal(t, own, got[1].Problems)
	assert.Empty(t, got[2].Problems)
	assert.Empty(t, r.Items[0].Problems, "the report isn't changed")
}
