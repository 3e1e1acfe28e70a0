package assembly_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func TestASubmissionRecordsTheJobThatItWasClonedFrom(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "origin", "speech").Status)
	uid, _ := h.as("ann", "GET", "/api/v3/jobs/ann/origin", "").JSON()["uid"].(string)
	require.NotEmpty(t, uid)
	submit := func(who, name, vc string, from *api.ClonedFrom) *servertest.Answer {
		t.Helper()
		data, err := json.Marshal(api.Submission{Text: servertest.JobFile(name, vc), ClonedFrom: from})
		require.NoError(t, err)
		a := h.as(who, "POST", "/api/v3/jobs", string(data))
		require.Equal(t, 200, a.Status, a.Body)
		return a
	}
	// abe may read ann's jobs, but vic may not.
	assert.NotContains(t, submit("abe", "copy", "speech", &api.ClonedFrom{Job: "ann/origin", UID: uid}).Body, "job/cloned-from")
	got, _ := h.as("abe", "GET", "/api/v3/jobs/abe/copy", "").JSON()["clonedFrom"].(map[string]any)
	assert.Equal(t, "ann", got["user"])
	assert.Equal(t, "origin", got["name"])
	assert.Equal(t, uid, got["uid"])
	parent := h.as("abe", "GET", "/api/v3/jobs/abe/copy/parent", "")
	require.Equal(t, 200, parent.Status, parent.Body)
	assert.Equal(t, uid, parent.JSON()["uid"])
	assert.Contains(t, parent.JSON()["config"], "name: origin")

	assert.Contains(t, submit("vic", "guess", "vision", &api.ClonedFrom{Job: "ann/origin"}).Body, "job/cloned-from", "a warning says that it isn't found")
	hidden := h.as("vic", "GET", "/api/v3/jobs/vic/guess", "")
	assert.NotContains(t, hidden.Body, "clonedFrom")
	assert.NotContains(t, hidden.Body, "origin")

	bad := h.as("ann", "POST", "/api/v3/jobs", `{"text":"x","clonedFrom":{"job":"a b"}}`)
	assert.Equal(t, 400, bad.Status, bad.Body)
}
