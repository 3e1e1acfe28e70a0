package assembly_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestPeopleAndGroupsInOpenPAIsWords(t *testing.T) {
	h := newHouse(t)
	h.Group("words", func(g *v1.GroupSpec) {
		g.Description, g.Storages = "of OpenPAI", []string{"nfs"}
		g.VirtualClusters = []v1.VCGrant{{Name: "vision"}, {Name: "speech"}}
		g.External = []v1.ExternalGroup{{Provider: "lab", Name: "everyone"}}
		g.Extension = &runtime.RawExtension{Raw: []byte(`{"color":"blue","acls":{"admin":true}}`)}
	})
	h.person(t, "wanda", "words", "speech")
	_, err := h.People.MergeExtension(t.Context(), "wanda", people.Extension{"jobSSH": json.RawMessage(`{"key":"SECRET"}`)})
	require.NoError(t, err)
	_, err = h.People.Update(t.Context(), "wanda", func(s *v1.UserSpec) error { s.Email = "wanda@example.org"; return nil })
	require.NoError(t, err)

	whole := `{"username":"wanda","email":"wanda@example.org","grouplist":["speech","words"],"extension":{"jobSSH":{"key":"SECRET"}},"admin":false,
		"virtualCluster":["speech","vision"],"storageConfig":["nfs"]}`
	for _, path := range []string{"/api/v2/users/wanda", "/api/v2/user/wanda", "/api/v1/user/wanda"} {
		assert.JSONEq(t, whole, h.as("wanda", "GET", path, "").Body, path)
	}
	assert.JSONEq(t, whole, h.as("root", "GET", "/api/v2/users/wanda", "").Body)
	assert.JSONEq(t, `{"username":"wanda","email":"wanda@example.org","grouplist":[],"extension":{},"admin":false,"virtualCluster":[],"storageConfig":[]}`,
		h.as("ann", "GET", "/api/v2/users/wanda", "").Body, "defect 1 of the original: everyone saw everyone's keys")
	a := h.as("ann", "GET", "/api/v2/users/no.one", "")
	assert.Equal(t, 404, a.Status)
	assert.Equal(t, "NoUserError", a.Code())
	all := h.as("root", "GET", "/api/v2/users", "").Body
	assert.Contains(t, all, `"wanda"`)
	assert.NotContains(t, all, "SECRET")

	assert.JSONEq(t, `{"groupname":"words","description":"of OpenPAI","externalName":"everyone","extension":{"color":"blue",
		"acls":{"admin":false,"virtualClusters":["vision","speech"],"storageConfigs":["nfs"]}}}`, h.as("wanda", "GET", "/api/v2/groups/words", "").Body)
	assert.JSONEq(t, `{"groupname":"words","description":"of OpenPAI","externalName":"","extension":{}}`, h.as("ann", "GET", "/api/v2/groups/words", "").Body)
	assert.Equal(t, "NoGroupError", h.as("ann", "GET", "/api/v2/groups/none", "").Code())
	assert.JSONEq(t, `[{"username":"wanda","clusterAdmin":false}]`, h.as("root", "GET", "/api/v2/groups/words/userlist", "").Body)
	assert.JSONEq(t, `[]`, h.as("root", "GET", "/api/v2/groups/none/userlist", "").Body)
}
