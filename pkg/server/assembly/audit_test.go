package assembly_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
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

	for range 10 {
		require.Equal(t, 200, h.as("root", "POST", "/api/v3/jobs/ann/noted/stop", "").Status, "it is stopping")
	}
	require.Equal(t, 403, h.as("abe", "POST", "/api/v3/jobs/ann/noted/stop", "").Status)
	h.Eventually("the refusal is kept", func() bool { return len(read("root", "?object=noted&outcome=refused")) == 2 })
	assert.Len(t, read("root", "?object=noted&actor=root"), 1, "stops that change nothing leave no record")

	// A request for a change that is rejected before the lookup of its job is also in the audit log.
	p, err := h.People.Person("ann")
	require.NoError(t, err)
	made, err := h.Tokens.Application(t.Context(), p, token.New{Label: "ci", Scopes: []rules.Scope{rules.ScopeRead}})
	require.NoError(t, err)
	reads := made.Token.Reveal()
	assert.Equal(t, 403, h.Do("POST", "/api/v3/jobs/ann/noted/stop", reads, "").Status)
	assert.Equal(t, 403, h.Do("GET", "/api/v3/audit", reads, "").Status)
	assert.Equal(t, 401, h.Do("POST", "/api/v3/jobs/ann/noted/stop", "", "").Status)
	refused := "?actor=ann&outcome=refused"
	h.Eventually("the refusal is kept", func() bool { return len(read("root", refused)) > 0 })
	if all := read("root", refused); assert.Len(t, all, 1) {
		assert.Equal(t, "stop", all[0].Verb)
		assert.Equal(t, "POST /api/v3/jobs/{user}/{name}/stop", all[0].Detail["route"])
		assert.Contains(t, all[0].Reason, "scope submit")
	}
}

func TestAJobGrowsOnlyWithWhatIsGrantedToday(t *testing.T) {
	h := newHouse(t)
	h.person(t, "gwen", "speech")
	file := strings.Replace(servertest.JobFile("grows", "speech"), "instances: 1", "instances: 2", 1) + "extras: {gangAllocation: false}\n"
	a := h.Do("POST", "/api/v2/jobs", h.tokens["gwen"], file, "Content-Type", "text/yaml")
	require.Equal(t, 202, a.Status, a.Body)
	scale := func(who string, tasks int) *servertest.Answer {
		return h.as(who, "POST", "/api/v3/jobs/gwen/grows/scale", fmt.Sprintf(`{"tasks":%d}`, tasks))
	}
	require.Equal(t, 200, scale("gwen", 3).Status)
	_, err := h.People.Update(t.Context(), "gwen", func(u *v1.UserSpec) error { u.Groups = []string{"vision"}; return nil })
	require.NoError(t, err)
	h.Eventually("the grant is gone", func() bool { p, err := h.People.Person("gwen"); return err == nil && !p.Grants.MayUse("speech") })
	for _, who := range []string{"gwen", "root"} {
		a = scale(who, 4)
		assert.Equal(t, 403, a.Status, a.Body)
		assert.Contains(t, a.Body, "the virtual cluster speech isn't granted")
	}
	assert.Equal(t, 200, scale("gwen", 2).Status, "it may become smaller")
}

// A thief uses the owner's refresh token, so the owner's token becomes an earlier token of the session. When the owner uses this token, the session
// ends. The audit log contains the owner's name.
func TestARefreshTokenThatSomeoneElseUsedEndsTheSessionAndIsInTheAudit(t *testing.T) {
	h := newHouse(t)
	grant := func(status int, form string) map[string]any {
		a := h.Do("POST", "/oauth/token", "", form)
		require.Equal(t, status, a.Status, a.Body)
		return a.JSON()
	}
	owner := grant(200, "grant_type=password&username=ann&password=correct+horse+battery")["refresh_token"].(string)
	thief := map[string]any{"refresh_token": owner}
	for range 2 {
		thief = grant(200, "grant_type=refresh_token&refresh_token="+thief["refresh_token"].(string))
	}
	access := thief["access_token"].(string)
	require.Equal(t, 200, h.Do("GET", "/api/v3/whoami", access, "").Status)
	assert.Equal(t, "invalid_grant", grant(400, "grant_type=refresh_token&refresh_token="+owner)["error"])
	h.Eventually("the session has ended", func() bool { return h.Do("GET", "/api/v3/whoami", access, "").Status == 401 })
	grant(400, "grant_type=refresh_token&refresh_token="+thief["refresh_token"].(string))
	assert.Regexp(t, `"verb":"reuse"[^\n]*"owner":"ann"|"owner":"ann"[^\n]*"verb":"reuse"`, h.Printed.String())
}
