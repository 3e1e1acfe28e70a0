package assembly_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

func TestGrantsStayUnlessTheyAreTakenAwayInWords(t *testing.T) {
	h := newHouse(t)
	ask := h.asker(t)
	vcs := []v1.VCGrant{{Name: "speech", SeeJobs: true}}
	h.Group("kept", func(g *v1.GroupSpec) { g.VirtualClusters, g.Storages = vcs, []string{"data"} })
	spec := func() v1.GroupSpec {
		g, err := h.People.Group("kept")
		require.NoError(t, err)
		return g.Spec
	}
	for path, body := range map[string]string{
		"/groups/kept/extension":      `{"extension":{"acls":{}}}`,
		"/groups":                     `{"patch":true,"data":{"groupname":"kept","extension":{"acls":{}}}}`,
		"/groups/kept/extension/acls": `{"data":{}}`,
	} {
		ask("root", "PUT", path, body, 201)
		assert.Equal(t, vcs, spec().VirtualClusters, path)
		assert.Equal(t, []string{"data"}, spec().Storages, path)
	}
	ask("root", "PUT", "/groups/kept/extension", `{"extension":{"acls":{"storageConfigs":[]}}}`, 201)
	assert.Empty(t, spec().Storages)
	assert.Equal(t, vcs, spec().VirtualClusters)
	ask("root", "PUT", "/groups/kept/extension", `{"extension":{"acls":null}}`, 201)
	assert.Empty(t, spec().VirtualClusters)
}

func TestWhoIsMadeAnAdministratorIsOne(t *testing.T) {
	h := newHouse(t)
	ask := h.asker(t)
	h.Group("operators", func(g *v1.GroupSpec) { g.Administrator = true })
	h.person(t, "olga", "operators")
	for _, name := range []string{"adam", "ada"} {
		h.person(t, name)
	}
	administrators := func(yes bool) {
		_, err := h.People.ChangeGroup(context.WithoutCancel(t.Context()), v1.GroupAdministrators, false, func(g *v1.GroupSpec) error {
			g.Administrator = yes
			return nil
		})
		require.NoError(t, err)
	}
	administrators(false)
	t.Cleanup(func() { // other tests share the cluster, and have one administrator
		administrators(true)
		require.NoError(t, h.People.DeleteGroup(context.WithoutCancel(t.Context()), "operators"))
	})
	ask("olga", "PUT", "/users/adam/admin", `{"admin":true}`, 201)
	ask("olga", "PUT", "/users", `{"patch":true,"data":{"username":"ada","admin":true}}`, 201)
	ask("olga", "POST", "/users", `{"username":"nina","password":"`+servertest.Password+`","admin":true}`, 201)
	for _, name := range []string{"adam", "ada", "nina"} {
		p, err := h.People.Person(name)
		require.NoError(t, err)
		assert.True(t, p.Grants.Administrator, name)
	}
}

func TestOfManyWhoMakeAGroupThroughTheServerOneDoes(t *testing.T) {
	h := newHouse(t)
	for name, way := range map[string][3]string{
		"raced2": {"POST", "/api/v2/groups", `{"groupname":"raced2","description":"%d"}`},
		"raced3": {"PUT", "/api/v3/groups/raced3", `{"spec":{"name":"raced3","description":"%d"}}`},
	} {
		var made atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				switch a := h.as("root", way[0], way[1], fmt.Sprintf(way[2], i)); a.Status {
				case 200, 201:
					made.Add(1)
				default:
					assert.Equal(t, 409, a.Status, a.Body)
				}
			})
		}
		wg.Wait()
		assert.EqualValues(t, 1, made.Load(), name)
	}
}
