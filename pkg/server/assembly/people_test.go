package assembly_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func body(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

func TestAdministratorsLookAfterPeople(t *testing.T) {
	h := newHouse(t)
	h.storage(t, "arms")
	ask := func(who, method, path string, in any) *servertest.Answer { return h.as(who, method, path, body(t, in)) }

	spec := v1.GroupSpec{Name: "robots", Description: "arms and legs", VirtualClusters: []v1.VCGrant{{Name: "vision", SeeJobs: true}}, Storages: []string{"arms"}}
	wrong := spec
	wrong.VirtualClusters = []v1.VCGrant{{Name: "visoin"}}
	a := ask("root", "PUT", "/api/v3/groups/robots", api.GroupChange{Spec: wrong})
	assert.Equal(t, 400, a.Status, a.Body)
	assert.Contains(t, a.Body, "did you mean vision?")
	a = ask("root", "POST", "/api/v2/groups", map[string]any{"groupname": "robots", "extension": map[string]any{"acls": map[string]any{"virtualClusters": []string{"visoin"}}}})
	assert.Equal(t, 400, a.Status, a.Body)
	a = ask("root", "PUT", "/api/v3/groups/robots", api.GroupChange{Spec: spec})
	require.Equal(t, 200, a.Status, a.Body)
	assert.Equal(t, 409, ask("root", "PUT", "/api/v3/groups/robots", api.GroupChange{Spec: spec}).Status, "it is there")
	a = ask("root", "POST", "/api/v3/users", api.NewUser{Name: "Rob.1", Email: "rob@example.org", Groups: []string{"robots"}, Password: servertest.Password})
	require.Equal(t, 201, a.Status, a.Body)
	assert.NotContains(t, a.Body, servertest.Password)
	assert.Equal(t, 409, ask("root", "POST", "/api/v3/users", api.NewUser{Name: "rob.1"}).Status, "a name that differs in case only")
	h.tokens["Rob.1"] = h.SignIn("Rob.1")

	rob := api.User{}
	h.as("Rob.1", "GET", "/api/v3/users/Rob.1", "").Into(&rob)
	assert.Equal(t, []v1.VCGrant{{Name: "vision", SeeJobs: true}}, rob.VCs)
	require.NotNil(t, rob.Spec)
	h.Group("robots", func(g *v1.GroupSpec) {
		*g = *spec.DeepCopy()
		g.VirtualClusters = append(g.VirtualClusters, v1.VCGrant{Name: "was-deleted"})
	})
	for _, path := range []string{"/api/v3/whoami", "/api/v3/users/Rob.1", "/api/v3/users", "/api/v2/users/Rob.1"} {
		assert.NotContains(t, h.as("Rob.1", "GET", path, "").Body, "was-deleted", path)
	}
	assert.Contains(t, h.as("root", "GET", "/api/v3/groups/robots", "").Body, "was-deleted", "the group still grants it")
	assert.Equal(t, 201, ask("root", "PUT", "/api/v2/groups/robots/description", map[string]string{"description": "legs"}).Status, "an earlier grant blocks no other change")
	seen := h.as("ann", "GET", "/api/v3/users/Rob.1", "")
	assert.Contains(t, seen.Body, "rob@example.org")
	assert.NotContains(t, seen.Body, "robots", "others see name and address")
	assert.NotContains(t, h.as("ann", "GET", "/api/v3/groups/robots", "").Body, "vision")
	assert.Contains(t, h.as("root", "GET", "/api/v3/groups/robots", "").Body, `"members":["Rob.1"]`)

	// People may change some fields of their User, but not their rights.
	now := *rob.Spec
	now.DisplayName = "Rob"
	require.Equal(t, 200, ask("Rob.1", "PUT", "/api/v3/users/Rob.1", api.UserChange{Was: *rob.Spec, Spec: now}).Status)
	assert.Equal(t, 409, ask("Rob.1", "PUT", "/api/v3/users/Rob.1", api.UserChange{Was: *rob.Spec, Spec: now}).Status, "it is another one by now")
	grab := now
	grab.Groups = []string{v1.GroupAdministrators}
	assert.Equal(t, 403, ask("Rob.1", "PUT", "/api/v3/users/Rob.1", api.UserChange{Was: now, Spec: grab}).Status)
	assert.Equal(t, 403, ask("ann", "PUT", "/api/v3/users/Rob.1", api.UserChange{Was: now, Spec: now}).Status)

	const next = "another long password"
	assert.Equal(t, 400, ask("Rob.1", "PUT", "/api/v3/users/Rob.1/password", api.PasswordChange{Password: next}).Status, "one's own needs the old one")
	assert.Equal(t, 400, ask("Rob.1", "PUT", "/api/v3/users/Rob.1/password", api.PasswordChange{Password: next, Old: "wrong"}).Status)
	assert.Equal(t, 403, ask("ann", "PUT", "/api/v3/users/Rob.1/password", api.PasswordChange{Password: next, Old: servertest.Password}).Status)
	require.Equal(t, 200, ask("Rob.1", "PUT", "/api/v3/users/Rob.1/password", api.PasswordChange{Password: next, Old: servertest.Password}).Status)
	assert.Equal(t, 401, h.as("Rob.1", "GET", "/api/v3/whoami", "").Status, "sessions end with the password")
	require.Equal(t, 200, ask("root", "PUT", "/api/v3/users/Rob.1/password", api.PasswordChange{Password: servertest.Password}).Status)
	h.tokens["Rob.1"] = h.SignIn("Rob.1")

	made := api.IssuedToken{}
	a = ask("Rob.1", "POST", "/api/v3/tokens", api.NewToken{Label: "ci", Scopes: []string{"read"}})
	require.Equal(t, 201, a.Status, a.Body)
	a.Into(&made)
	assert.Equal(t, 200, h.Do("GET", "/api/v3/jobs", made.Token, "").Status)
	list := api.TokenRecords{}
	h.as("root", "GET", "/api/v3/tokens?user=Rob.1", "").Into(&list)
	assert.Len(t, list.Items, 2)
	assert.NotContains(t, body(t, list), made.Token)
	assert.Equal(t, 404, h.as("ann", "DELETE", "/api/v3/tokens/"+made.Record.ID, "").Status)
	assert.Equal(t, 200, h.as("root", "DELETE", "/api/v3/tokens/"+made.Record.ID, "").Status)
	assert.Equal(t, 401, h.Do("GET", "/api/v3/jobs", made.Token, "").Status)

	assert.Equal(t, 403, h.as("root", "DELETE", "/api/v3/users/root", "").Status, "the last administrator stays")
	assert.Equal(t, 200, h.as("root", "DELETE", "/api/v3/users/Rob.1", "").Status)
	assert.Equal(t, 401, h.as("Rob.1", "GET", "/api/v3/whoami", "").Status)
	assert.Equal(t, 409, ask("root", "POST", "/api/v3/users", api.NewUser{Name: "Rob.1"}).Status, "the name stays taken")
	assert.Equal(t, 200, h.as("root", "DELETE", "/api/v3/groups/robots", "").Status)
	assert.Equal(t, 403, h.as("root", "DELETE", "/api/v3/groups/"+v1.GroupDefault, "").Status)

	printed := h.Printed.String()
	for _, secret := range []string{servertest.Password, next, made.Token, made.Token[strings.LastIndex(made.Token, ".")+1:]} {
		assert.NotContains(t, printed, secret)
	}
	assert.Contains(t, printed, `"verb":"manage","kind":"user","object":"Rob.1"`)
}
