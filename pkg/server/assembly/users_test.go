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
	h.storage(t, "nfs")
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

func TestPeopleAreManagedInOpenPAIsWords(t *testing.T) {
	h := newHouse(t)
	ask := func(who, method, path, body string, want int) {
		t.Helper()
		a := h.as(who, method, "/api/v2"+path, body)
		assert.Equal(t, want, a.Status, "%s %s: %s", method, path, a.Body)
	}
	groups := func(name string) []string {
		p, err := h.People.Person(name)
		require.NoError(t, err)
		return p.User.Spec.Groups
	}
	const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBrVnTPmkCdvhZbQ6uzHMVcQAuRqgNMQJ5mGVT0uwqfM laptop`
	ask("root", "POST", "/users", `{"username":"willa","password":"correct horse battery","email":"w@example.org","virtualCluster":["vision"],"admin":false,"extension":{"githubPAT":"x"}}`, 201)
	assert.Equal(t, []string{"default", "vision"}, groups("willa"))
	ask("root", "POST", "/users", `{"username":"WILLA","password":"correct horse battery"}`, 409)
	ask("root", "POST", "/users", `{"username":"xavi","password":"correct horse battery","virtualCluster":["none"]}`, 404)
	ask("root", "POST", "/users", `{"username":"xavi","password":"123456"}`, 400)
	h.tokens["willa"] = h.SignIn("willa")

	ask("willa", "PUT", "/users/willa/extension", `{"extension":{"githubPAT":null,"sshKeys":[{"title":"laptop","value":"`+key+`","time":1}]}}`, 201)
	seen := h.as("willa", "GET", "/api/v2/users/willa", "").Body
	assert.Contains(t, seen, `"extension":{"sshKeys":[{"title":"laptop","value":"ssh-ed25519 `)
	ask("willa", "PUT", "/users/willa/extension", `{"extension":{"sshKeys":[{"title":"x","value":"no key"}]}}`, 400)
	ask("willa", "PUT", "/users/ann/extension", `{"extension":{"a":1}}`, 403)
	ask("willa", "PUT", "/users/willa/email", `{"email":""}`, 201)
	ask("willa", "PUT", "/users/willa/admin", `{"admin":true}`, 403)
	ask("willa", "PUT", "/users/willa/grouplist", `{"grouplist":["administrators"]}`, 403)

	ask("root", "PUT", "/users/willa/group", `{"groupname":"speech"}`, 201)
	ask("root", "PUT", "/users/willa/group", `{"groupname":"none"}`, 404)
	h.Group("storage-only", func(g *v1.GroupSpec) { g.Storages = []string{"nfs"} })
	ask("root", "PUT", "/users/willa/group", `{"groupname":"storage-only"}`, 201)
	ask("root", "PUT", "/users/willa/virtualcluster", `{"virtualCluster":["speech"]}`, 201)
	assert.Equal(t, []string{"default", "speech", "storage-only"}, groups("willa"), "defect 14 of the original: other groups stay")
	ask("root", "DELETE", "/users/willa/group", `{"groupname":"speech"}`, 201)
	ask("root", "PUT", "/users/willa/admin", `{"admin":true}`, 201)
	assert.Contains(t, groups("willa"), "administrators")
	ask("root", "PUT", "/users/willa/admin", `{"admin":false}`, 201)
	assert.Equal(t, []string{"default", "storage-only"}, groups("willa"))
	ask("root", "PUT", "/users/willa/grouplist", `{"grouplist":[]}`, 201)
	assert.Empty(t, groups("willa"))

	ask("willa", "PUT", "/users/willa/password", `{"newPassword":"staple battery correct"}`, 400)
	ask("willa", "PUT", "/users/willa/password", `{"newPassword":"staple battery correct","oldPassword":"correct horse battery"}`, 201)
	ask("willa", "GET", "/users/willa", "", 401)
	ask("root", "PUT", "/users/willa/password", `{"newPassword":"staple battery correct two"}`, 201)
	ask("root", "DELETE", "/users/root", "", 403)
	ask("root", "DELETE", "/users/willa", "", 200)
	ask("root", "GET", "/users/willa", "", 404)
	ask("root", "DELETE", "/groups/storage-only", "", 200)
	ask("root", "DELETE", "/groups/storage-only", "", 404)
}
