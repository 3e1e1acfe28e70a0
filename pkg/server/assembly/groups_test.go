package assembly_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// asker returns a function that sends a request as a person, and checks the status and the error code.
func (h *house) asker(t *testing.T) func(who, method, path, body string, want int, code ...string) string {
	return func(who, method, path, body string, want int, code ...string) string {
		t.Helper()
		a := h.as(who, method, "/api/v2"+path, body)
		assert.Equal(t, want, a.Status, "%s %s: %s", method, path, a.Body)
		if len(code) > 0 {
			assert.Equal(t, code[0], a.Code(), "%s %s: %s", method, path, a.Body)
		}
		return a.Body
	}
}

func TestGroupsAreManagedInOpenPAIsWords(t *testing.T) {
	h := newHouse(t)
	h.storage(t, "nfs")
	h.storage(t, "data")
	ask := h.asker(t)
	spec := func() v1.GroupSpec {
		g, err := h.People.Group("acls")
		require.NoError(t, err)
		return g.Spec
	}
	const whole = `{"groupname":"acls","description":"a team","externalName":"lab/team","extension":{"color":"blue",
		"acls":{"admin":false,"virtualClusters":["speech","vision"],"storageConfigs":["nfs"],"more":[1]}}}`
	assert.JSONEq(t, `{"message":"group is created successfully"}`, ask("root", "POST", "/groups", whole, 201))
	ask("root", "POST", "/group/", whole, 409, "ConflictGroupError")
	assert.JSONEq(t, strings.Replace(whole, "lab/team", "team", 1), ask("root", "GET", "/groups/acls", "", 200), "what was stored is read again")
	require.Equal(t, []v1.ExternalGroup{{Provider: "lab", Name: "team"}}, spec().External)

	t.Run("a patch of one grant keeps the others", func(t *testing.T) {
		_, err := h.People.ChangeGroup(t.Context(), "acls", false, func(s *v1.GroupSpec) error {
			s.VirtualClusters[0].SeeJobs, s.Pages, s.AllVirtualClusters = true, []string{"monitoring"}, true
			return nil
		})
		require.NoError(t, err)
		ask("root", "PUT", "/groups", `{"patch":true,"data":{"groupname":"acls","extension":{"acls":{"storageConfigs":["nfs","data","nfs"]},"color":null,"shape":"round"}}}`, 201)
		s := spec()
		assert.Equal(t, []v1.VCGrant{{Name: "speech", SeeJobs: true}, {Name: "vision"}}, s.VirtualClusters, "defect 16 of the original: they were gone")
		assert.Equal(t, []string{"nfs", "data"}, s.Storages)
		assert.Equal(t, []string{"monitoring"}, s.Pages, "what OpenPAI doesn't know of stays")
		assert.True(t, s.AllVirtualClusters)
		got := ask("root", "GET", "/groups/acls", "", 200)
		assert.Contains(t, got, `"shape":"round"`)
		assert.Contains(t, got, `"more":[1]`)
		assert.NotContains(t, got, "color")
	})
	t.Run("a patch with all of acls, as OpenPAI's manual has it", func(t *testing.T) {
		ask("root", "PUT", "/groups", `{"patch":"true","data":{"groupname":"acls","extension":{"acls":{"admin":false,"virtualClusters":["speech"],"storageConfigs":["nfs"]}}}}`, 201)
		assert.Equal(t, []v1.VCGrant{{Name: "speech", SeeJobs: true}}, spec().VirtualClusters)
		assert.Equal(t, []string{"nfs"}, spec().Storages)
	})
	t.Run("one value by its path", func(t *testing.T) {
		ask("root", "PUT", "/groups/acls/extension/acls/virtualClusters", `{"data":["vision"]}`, 201)
		assert.Equal(t, []v1.VCGrant{{Name: "vision"}}, spec().VirtualClusters)
		ask("root", "PUT", "/groups/acls/extension/a/b/c", `{"data":{"d":1}}`, 201)
		assert.Contains(t, ask("root", "GET", "/groups/acls", "", 200), `"a":{"b":{"c":{"d":1}}}`)
		ask("root", "PUT", "/groups/acls/extension/acls/admin", `{"data":"yes"}`, 400, "InvalidParametersError")
		ask("root", "PUT", "/groups/acls/extension/acls", `{"data":"yes"}`, 400, "InvalidParametersError")
	})
	t.Run("the older routes", func(t *testing.T) {
		ask("root", "PUT", "/groups/acls/description", `{"description":""}`, 201)
		assert.Empty(t, spec().Description, "defect 23 of the original: it could not be emptied")
		ask("root", "PUT", "/groups/acls/externalname", `{"externalName":"lab/others"}`, 201)
		ask("root", "PUT", "/groups/acls/externalname", `{"externalName":"others"}`, 201)
		assert.Equal(t, []v1.ExternalGroup{{Provider: "lab", Name: "others"}}, spec().External)
		ask("root", "PUT", "/groups/acls/externalname", `{"externalName":"somewhere"}`, 400)
		ask("root", "PUT", "/groups/acls/extension", `{"extension":{"acls":{"storageConfigs":[]}}}`, 201)
		assert.Empty(t, spec().Storages)
		assert.Equal(t, []v1.VCGrant{{Name: "vision"}}, spec().VirtualClusters)
		for _, path := range []string{"description", "externalname", "extension", "extension/a"} {
			ask("root", "PUT", "/groups/none/"+path, `{"description":"","externalName":"","extension":{},"data":1}`, 400)
		}
		ask("root", "PUT", "/groups/none/description", `{"description":""}`, 404, "NoGroupError")
	})
	t.Run("the whole of it", func(t *testing.T) {
		ask("root", "PUT", "/groups", `{"data":{"groupname":"acls","description":"x"}}`, 400, "InvalidParametersError")
		ask("root", "PUT", "/groups", `{"groupname":"acls","description":"bare","externalName":"","extension":{"acls":{"virtualClusters":["speech"]}}}`, 201)
		s := spec()
		assert.Equal(t, "bare", s.Description, "as the JavaScript SDK sends it")
		assert.Nil(t, s.Extension)
		assert.Empty(t, s.External)
		assert.Equal(t, []v1.VCGrant{{Name: "speech"}}, s.VirtualClusters)
	})
	t.Run("mistakes change nothing", func(t *testing.T) {
		before := spec()
		for _, data := range []string{
			`{"groupname":"acls","extension":{"acls":{"virtualClusters":"speech"}}}`, `{"groupname":"acls","extension":{"acls":{"virtualClusters":[1]}}}`,
			`{"groupname":"acls","extension":{"acls":7}}`, `{"groupname":"acls","extension":{"acls":{"admin":1}}}`, `{"groupname":"acls","color":"blue"}`, `{"description":"x"}`,
			`{"groupname":"acls","extension":{"acls":{"virtualClusters":[""]}}}`, `{"groupname":"acls","extension":{"x":"` + strings.Repeat("x", 70<<10) + `"}}`,
			`{"groupname":"acls","description":"` + strings.Repeat("x", 1025) + `"}`,
		} {
			ask("root", "PUT", "/groups", `{"patch":true,"data":`+data+`}`, 400, "InvalidParametersError")
		}
		assert.Equal(t, before, spec())
		ask("root", "POST", "/groups", `{"groupname":"no name"}`, 400, "InvalidParametersError")
		ask("root", "PUT", "/groups/administrators/extension/acls/admin", `{"data":false}`, 403, "RemoveAdminError")
	})
}

func TestWholeChangesOfPeople(t *testing.T) {
	h := newHouse(t)
	ask := h.asker(t)
	h.person(t, "una", "speech")
	h.Group("una-group", nil)
	spec := func() v1.UserSpec {
		p, err := h.People.Person("una")
		require.NoError(t, err)
		return p.User.Spec
	}
	const next = "a different long phrase"
	t.Run("by an administrator", func(t *testing.T) {
		ask("root", "PUT", "/users", `{"data":{"username":"una","email":"una@example.org"}}`, 400, "InvalidParametersError")
		ask("root", "PUT", "/users", `{"patch":true,"data":{"username":"una","virtualCluster":["administrators"]}}`, 400, "NoVirtualClusterError")
		ask("root", "PUT", "/users", `{"patch":true,"data":{"username":"una","virtualCluster":["una-group"]}}`, 400, "NoVirtualClusterError")
		ask("root", "PUT", "/users", `{"patch":true,"data":{"username":"una","email":"una@example.org","virtualCluster":["nowhere"]}}`, 404, "NoGroupError")
		ask("root", "PUT", "/users", `{"patch":true,"data":{"username":"una","email":"una@example.org","password":"short"}}`, 400, "InvalidParametersError")
		ask("root", "PUT", "/users", `{"patch":true,"data":{"username":"una","email":"no address","extension":{"a":1}}}`, 400, "InvalidParametersError")
		assert.Empty(t, spec().Email, "mistakes change nothing")
		assert.NotContains(t, ask("root", "GET", "/users/una", "", 200), `"a":1`)
		assert.JSONEq(t, `{"message":"Update user una successfully"}`, ask("root", "PUT", "/users", `{"patch":true,"data":{"username":"una","email":"una@example.org"}}`, 201))
		assert.Equal(t, []string{"speech"}, spec().Groups)
		ask("root", "PUT", "/user/", `{"data":{"username":"una","email":"","virtualCluster":["vision"],"admin":true,"password":"`+next+`","extension":{"a":1}}}`, 201)
		assert.Equal(t, []string{"administrators", "vision"}, spec().Groups)
		assert.Empty(t, spec().Email)
		ask("una", "GET", "/users/una", "", 401)
		ask("root", "PUT", "/users", `{"patch":true,"data":{"username":"una","admin":false}}`, 201)
		assert.Equal(t, []string{"vision"}, spec().Groups)
	})
	sign := func(password string) int {
		a := h.Do("POST", "/api/v2/authn/basic/login", "", `{"username":"una","password":"`+password+`"}`)
		if a.Status == 200 {
			h.tokens["una"] = a.JSON()["token"].(string)
		}
		return a.Status
	}
	t.Run("by oneself", func(t *testing.T) {
		require.Equal(t, 200, sign(next), "defect 11 of the original: the password never changed")
		ask("una", "PUT", "/users/me", `{"patch":true,"data":{"username":"root","email":"una@example.org"}}`, 403, "ForbiddenUserError")
		ask("una", "PUT", "/users/me", `{"patch":true,"data":{"username":"una","admin":true}}`, 400, "InvalidParametersError")
		ask("una", "PUT", "/users/me", `{"data":{"username":"una","email":"una@example.org"}}`, 400, "InvalidParametersError")
		ask("una", "PUT", "/users/me", `{"patch":true,"data":{"username":"una","email":"una@example.org","extension":{"b":2}}}`, 201)
		assert.Equal(t, "una@example.org", spec().Email)
		assert.Contains(t, ask("una", "GET", "/users/una", "", 200), `"b":2`)
		ask("una", "PUT", "/users/me", `{"patch":true,"data":{"username":"una","email":"","newPassword":"`+servertest.Password+`"}}`, 400, "InvalidParametersError")
		ask("una", "PUT", "/users/me", `{"patch":true,"data":{"username":"una","email":"","newPassword":"`+servertest.Password+`","oldPassword":"wrong"}}`, 400, "IncorrectPasswordError")
		assert.Equal(t, "una@example.org", spec().Email, "a wrong password changes nothing")
		ask("una", "PUT", "/users/me", `{"patch":true,"data":{"username":"una","email":"","newPassword":"`+servertest.Password+`","oldPassword":"`+next+`"}}`, 201)
		ask("una", "GET", "/users/una", "", 401)
		assert.Equal(t, 400, sign(next))
		assert.Equal(t, 200, sign(servertest.Password))
	})
	t.Run("an administrator shows the old password for a new one", func(t *testing.T) {
		ask("root", "PUT", "/users", `{"patch":true,"data":{"username":"root","password":"`+next+`"}}`, 400, "InvalidParametersError")
		ask("root", "GET", "/users/root", "", 200)
	})
	assert.NotContains(t, h.Printed.String(), next)
}

func TestWhoIsRemovedLeavesNoJobThatRuns(t *testing.T) {
	h := newHouse(t)
	_, err := h.People.Add(t.Context(), people.NewUser{Name: "gone", Groups: []string{"speech"}, Password: secret.String(servertest.Password), TakeOver: true})
	require.NoError(t, err)
	h.tokens["gone"] = h.SignIn("gone")
	for _, name := range []string{"one", "two"} {
		require.Equal(t, 202, h.Submit(h.tokens["gone"], name, "speech").Status)
	}
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "stays", "speech").Status)
	h.asker(t)("root", "DELETE", "/users/gone", "", 200)
	for _, name := range []string{"one", "two"} {
		assert.EqualValues(t, "Stop", framework(t, h.cluster, "gone", name).Spec.ExecutionType, "defect 17 of the original: jobs went on")
	}
	assert.EqualValues(t, "Start", framework(t, h.cluster, "ann", "stays").Spec.ExecutionType)
	assert.Equal(t, 401, h.as("gone", "GET", "/api/v2/jobs", "").Status)
	assert.Contains(t, h.Printed.String(), `"detail":{"change":"remove","stopped":"2"}`)
	h.asker(t)("root", "DELETE", "/users/gone", "", 404, "NoUserError")
}
