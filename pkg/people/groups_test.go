package people_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestAGroupMadeMeanwhileIsNotOverwritten(t *testing.T) {
	c := open(t)
	other, err := people.Open(kubetest.Start(t).Config, people.Options{})
	require.NoError(t, err)
	once := sync.OnceFunc(func() { // another server makes it, after this one has looked
		_, err := other.NewGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "team", Description: "the first"}})
		require.NoError(t, err)
	})
	_, err = c.ChangeGroup(t.Context(), "team", true, func(g *v1.GroupSpec) error {
		once()
		g.Administrator = true
		return nil
	})
	require.ErrorIs(t, err, people.ErrExists)
	require.NotErrorIs(t, err, people.ErrUnavailable, "asking again doesn't help")
	require.NoError(t, c.Load(t.Context()))
	g, err := c.Group("team")
	require.NoError(t, err)
	assert.Equal(t, v1.GroupSpec{Name: "team", Description: "the first"}, g.Spec)
}

func TestOfManyWhoMakeAGroupOneDoes(t *testing.T) {
	c := open(t)
	var made atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := c.NewGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "team", Description: fmt.Sprint(i)}})
			if err == nil {
				made.Add(1)
				return
			}
			assert.ErrorIs(t, err, people.ErrExists)
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, made.Load())
}

func TestAGroupDeletedMeanwhileDoesNotComeBack(t *testing.T) {
	c := open(t)
	_, err := c.NewGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "team", AllVirtualClusters: true}})
	require.NoError(t, err)
	_, err = c.ChangeGroup(t.Context(), "team", false, func(g *v1.GroupSpec) error {
		require.NoError(t, c.DeleteGroup(t.Context(), "team"))
		g.Description = "changed"
		return nil
	})
	require.ErrorIs(t, err, people.ErrNoGroup)
	require.NoError(t, c.Load(t.Context()))
	_, err = c.Group("team")
	assert.ErrorIs(t, err, people.ErrNoGroup)
}

func TestTheFirstAdministratorIsOneWhateverTheGroupIsCalled(t *testing.T) {
	c := open(t)
	code, _, err := c.OfferFirst(t.Context())
	require.NoError(t, err)
	_, err = c.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: v1.GroupAdministrators}})
	require.NoError(t, err)
	first := people.NewUser{Name: "ann", Password: good}
	_, err = c.UseFirst(t.Context(), code, first)
	require.ErrorIs(t, err, people.ErrNoGroup, "she would be one like all others, and the code used up")
	_, err = c.NewGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "operators", Administrator: true}})
	require.NoError(t, err)
	ann, err := c.UseFirst(t.Context(), code, first)
	require.NoError(t, err)
	assert.True(t, ann.Grants.Administrator)
}

func TestAGroupThatMakesAdministratorsIsFound(t *testing.T) {
	plain, operators, first := v1.GroupSpec{Name: "plain"}, v1.GroupSpec{Name: "operators", Administrator: true}, v1.GroupSpec{Name: v1.GroupAdministrators, Administrator: true}
	for want, all := range map[string][]v1.GroupSpec{
		"administrators": {plain, operators, first},
		"operators":      {plain, operators, {Name: v1.GroupAdministrators}},
	} {
		got, err := people.AdministratorGroup(all)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := people.AdministratorGroup([]v1.GroupSpec{plain, {Name: v1.GroupAdministrators}})
	require.ErrorIs(t, err, people.ErrNoGroup)
	assert.Contains(t, hint.Of(err), "paictl group add NAME --administrator")
}

func TestAGroupOfAdministratorsThatWasDeletedStaysAway(t *testing.T) {
	c := open(t)
	_, err := c.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "operators", Administrator: true}})
	require.NoError(t, err)
	require.NoError(t, c.DeleteGroup(t.Context(), v1.GroupAdministrators))
	require.NoError(t, c.Prepare(t.Context()))
	_, err = c.Group(v1.GroupAdministrators)
	require.ErrorIs(t, err, people.ErrNoGroup)
	name, err := c.AdministratorGroup()
	require.NoError(t, err)
	assert.Equal(t, "operators", name)
}
