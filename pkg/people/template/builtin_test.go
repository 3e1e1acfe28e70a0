package template_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// stocked returns the store of another replica with the built-in templates.
func stocked(t *testing.T) *template.Store {
	t.Helper()
	builtIn, err := template.BuiltIn()
	require.NoError(t, err)
	s, err := template.Open(kubetest.Start(t).Config, template.Options{BuiltIn: builtIn})
	require.NoError(t, err)
	require.NoError(t, s.Load(t.Context()))
	return s
}

func named(t *testing.T, s *template.Store, name string) *v1.Template {
	t.Helper()
	for _, one := range s.Of(v1.AuthorBuiltIn) {
		if one.Spec.Name == name {
			return one
		}
	}
	require.Fail(t, "it isn't in the catalogue", name)
	return nil
}

func TestTheCatalogueIsAfterTheTemplatesOfPeople(t *testing.T) {
	people, api := open(t)
	add(t, people, "zoe", "last")
	s := stocked(t)
	all := s.All()
	require.Greater(t, len(all), 12)
	assert.Equal(t, "zoe", all[0].Spec.Author)
	assert.Equal(t, "hello", all[1].Spec.Name)
	ids := map[string]bool{}
	for _, one := range all {
		ids[string(one.UID)] = true
		got, err := s.Get(string(one.UID))
		require.NoError(t, err)
		assert.Equal(t, one, got)
	}
	assert.Len(t, ids, len(all))
	for _, one := range s.Of(v1.AuthorBuiltIn) {
		assert.True(t, one.BuiltIn())
		assert.True(t, one.Spec.Public)
		assert.Contains(t, one.Spec.Categories, v1.CategoryOfficial)
		assert.Len(t, string(one.UID), 36)
	}
	assert.False(t, v1.ValidName(v1.AuthorBuiltIn), "no person has this name")
	stored, err := api.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, stored.Items, 1, "a list stores nothing")
	assert.Len(t, another(t).All(), 1, "a store without the catalogue")
}

func TestStarsAndUsesOfTheCatalogueAreStored(t *testing.T) {
	_, api := open(t)
	stores := []*template.Store{stocked(t), stocked(t)}
	id := string(named(t, stores[0], "hello").UID)
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			_, err := s.Star(t.Context(), id, []string{"ann", "bob"}[i], true)
			assert.NoError(t, err)
			assert.NoError(t, s.Use(t.Context(), id))
		})
	}
	wg.Wait()
	s := stocked(t)
	got := named(t, s, "hello")
	assert.Equal(t, v1.TemplateStatus{Uses: 2, Stars: []string{"ann", "bob"}}, got.Status)
	assert.Equal(t, id, string(got.UID))
	assert.Contains(t, got.Spec.Job, "name: hello")
	assert.Empty(t, named(t, s, "jax").Status)

	made, err := s.Star(t.Context(), id, "ann", false)
	require.NoError(t, err)
	assert.Equal(t, []string{"bob"}, made.Status.Stars)
	assert.Equal(t, got.Spec, made.Spec)
	assert.Equal(t, []string{"bob"}, named(t, s, "hello").Status.Stars, "a read after a write returns the change")

	stored, err := api.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, stored.Items, 1)
	_, err = s.Get(string(stored.Items[0].GetUID()))
	require.ErrorIs(t, err, template.ErrNone, "the object itself is no template")
	assert.Empty(t, another(t).All())
}

func TestTheCatalogueStaysAsItIs(t *testing.T) {
	open(t)
	s := stocked(t)
	id := string(named(t, s, "hello").UID)
	for _, starred := range []bool{false, true} {
		if starred {
			_, err := s.Star(t.Context(), id, "ann", true)
			require.NoError(t, err)
		}
		_, err := s.Update(t.Context(), id, 0, func(t *v1.Template) error { t.Spec.Summary = "other"; return nil })
		require.ErrorIs(t, err, template.ErrNone)
		require.ErrorIs(t, s.Remove(t.Context(), id, nil), template.ErrNone)
	}
	forged := spec("ann", "hello")
	forged.Author = v1.AuthorBuiltIn
	_, err := s.Add(t.Context(), forged)
	require.Error(t, err)
	assert.NotContains(t, named(t, s, "hello").Spec.Job, forged.Job)
}
