package assembly_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// If the API reported success here, an administrator could keep the rights of the group while other people believe that these rights were removed.
func TestNoOneIsTakenOutOfAGroupThatAProviderKeepsThemIn(t *testing.T) {
	h := newHouse(t)
	ask := h.asker(t)
	lab := func(name string) []v1.ExternalGroup { return []v1.ExternalGroup{{Provider: "lab", Name: name}} }
	h.Group("wardens", func(g *v1.GroupSpec) { g.Administrator, g.External = true, lab("ops") })
	h.Group("word", func(g *v1.GroupSpec) { g.VirtualClusters, g.External = []v1.VCGrant{{Name: "word"}}, lab("team") })
	t.Cleanup(func() { // other tests share the cluster
		require.NoError(t, h.People.DeleteGroup(context.WithoutCancel(t.Context()), "wardens"))
		require.NoError(t, h.People.DeleteGroup(context.WithoutCancel(t.Context()), "word"))
	})
	id := v1.Identity{Provider: "lab", Subject: "wes"}
	h.person(t, "wes", "speech")
	p, err := h.People.Update(t.Context(), "wes", func(u *v1.UserSpec) error { u.Identities = []v1.Identity{id}; return nil })
	require.NoError(t, err)
	_, err = h.People.RecordAnswer(t.Context(), p, v1.External{Provider: id.Provider, Subject: id.Subject, Groups: []string{"ops", "team"}, CheckedAt: metav1.Now()})
	require.NoError(t, err)
	for path, body := range map[string]string{
		"/users/wes/admin":          `{"admin":false}`,
		"/users/wes/virtualcluster": `{"virtualCluster":["speech"]}`,
		"/users/wes/grouplist":      `{"grouplist":["speech","word"]}`,
		"/users":                    `{"patch":true,"data":{"username":"wes","admin":false}}`,
	} {
		said := ask("root", "PUT", path, body, 409, "ConflictError")
		assert.Contains(t, said, "remove them from the group there", path)
	}
	ask("root", "DELETE", "/users/wes/group", `{"groupname":"wardens"}`, 409, "ConflictError")
	p, err = h.People.Person("wes")
	require.NoError(t, err)
	assert.Equal(t, []string{"speech"}, p.User.Spec.Groups, "nothing changes")

	ask("root", "PUT", "/users/wes/virtualcluster", `{"virtualCluster":["word"]}`, 201)
	p, err = h.People.Person("wes")
	require.NoError(t, err)
	assert.Empty(t, p.User.Spec.Groups, "a list that is sent back makes no one a member by name")
	_, err = h.People.RecordAnswer(t.Context(), p, v1.External{Provider: id.Provider, Subject: id.Subject, CheckedAt: metav1.Now()})
	require.NoError(t, err)
	ask("root", "PUT", "/users/wes/admin", `{"admin":false}`, 201)
}
