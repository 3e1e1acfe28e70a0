package assembly_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/audit"
)

func TestWhatWasDoneCanBeAskedFor(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "noted", "speech").Status)
	require.Equal(t, 403, h.as("abe", "POST", "/api/v3/jobs/ann/noted/stop", "").Status)
	require.Equal(t, 200, h.as("root", "POST", "/api/v3/jobs/ann/noted/stop", "").Status)
	read := func(who, query string) []audit.Record {
		a := h.as(who, "GET", "/api/v3/audit"+query, "")
		require.Equal(t, 200, a.Status, a.Body)
		page := audit.Page{}
		a.Into(&page)
		return page.Items
	}
	h.Eventually("the records are kept", func() bool { return len(read("root", "?object=noted")) == 3 })
	all := read("root", "?object=noted")
	assert.Equal(t, "root", all[0].Actor)
	assert.Equal(t, audit.Done, all[0].Outcome)
	assert.Equal(t, "ann", all[0].Owner)
	assert.Equal(t, "speech", all[0].VC)
	assert.Equal(t, "abe", all[1].Actor)
	assert.Equal(t, audit.Refused, all[1].Outcome)
	assert.Equal(t, 403, all[1].Status)
	assert.NotEmpty(t, all[1].Address)
	assert.NotEmpty(t, all[1].Token)
	assert.NotEmpty(t, all[1].ActorUID)
	assert.Len(t, read("root", "?object=noted&outcome=refused"), 1)
	for _, r := range read("ann", "") {
		assert.Equal(t, "ann", r.Actor, "others see what they did themselves")
	}
	assert.Len(t, read("ann", "?object=noted"), 1)
}
