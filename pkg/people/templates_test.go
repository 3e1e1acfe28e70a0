package people_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

const jobFile = "protocolVersion: 2\nname: train\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: \"busybox:1\"}]\n" +
	"taskRoles:\n  worker: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}, commands: [\"echo hello\"]}\n"

// templates deletes all templates of the cluster, and returns a store for the cluster.
func (c *cluster) templates() *template.Store {
	c.t.Helper()
	require.NoError(c.t, c.api.Resource(v1.Templates).DeleteCollection(c.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	s, err := template.Open(kubetest.Start(c.t).Config, template.Options{})
	require.NoError(c.t, err)
	require.NoError(c.t, s.Load(c.t.Context()))
	return s
}

func TestAGroupNamedAgainSeesNoTemplatesOfTheEarlierOne(t *testing.T) {
	c := open(t)
	s := c.templates()
	c.add("ann")
	group := func(s *v1.Template) []string { return s.Spec.Groups }
	made := map[string]*v1.Template{}
	for _, name := range []string{"team", "gone"} {
		_, err := c.NewGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: name}})
		require.NoError(t, err)
		made[name], err = s.Add(t.Context(), v1.TemplateSpec{Name: name, Author: "ann", Groups: []string{"default", name}, Job: jobFile})
		require.NoError(t, err)
	}
	require.NoError(t, c.DeleteGroup(t.Context(), "team"))
	require.NoError(t, s.Load(t.Context()))
	after, err := s.Get(string(made["team"].UID))
	require.NoError(t, err)
	assert.Equal(t, []string{"default"}, group(after), "who deletes a group takes it out of templates")
	after, err = s.Get(string(made["gone"].UID))
	require.NoError(t, err)
	assert.Equal(t, []string{"default", "gone"}, group(after), "others stay")

	// The group was deleted without paictl, or its deletion was interrupted.
	require.NoError(t, c.api.Resource(v1.Groups).Delete(t.Context(), v1.ObjectName("gone"), metav1.DeleteOptions{}))
	require.NoError(t, c.Load(t.Context()))
	_, err = c.NewGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "gone"}})
	require.NoError(t, err)
	require.NoError(t, s.Load(t.Context()))
	after, err = s.Get(string(made["gone"].UID))
	require.NoError(t, err)
	assert.Equal(t, []string{"default"}, group(after))
}

func TestWhoTakesANameOverGetsNoTemplates(t *testing.T) {
	c := open(t)
	s := c.templates()
	c.add("root", v1.GroupAdministrators)
	before := c.add("bob")
	require.NoError(t, c.Remove(t.Context(), "bob"))
	_, err := s.AddOf(t.Context(), c.Directory, before, v1.TemplateSpec{Name: "late", Author: "bob", Job: jobFile})
	require.ErrorIs(t, err, people.ErrNoUser)
	require.NoError(t, s.Load(t.Context()))
	assert.Empty(t, s.All(), "it was taken back")

	_, err = s.Add(t.Context(), v1.TemplateSpec{Name: "late", Author: "bob", Job: jobFile}) // by a server that was killed then
	require.NoError(t, err)
	_, err = s.Add(t.Context(), v1.TemplateSpec{Name: "hers", Author: "root", Job: jobFile})
	require.NoError(t, err)
	_, err = c.Add(t.Context(), people.NewUser{Name: "bob", Password: good, TakeOver: true})
	require.NoError(t, err)
	require.NoError(t, s.Load(t.Context()))
	require.Len(t, s.All(), 1)
	assert.Equal(t, "root", s.All()[0].Spec.Author)

	_, err = s.AddOf(t.Context(), c.Directory, before, v1.TemplateSpec{Name: "late", Author: "bob", Job: jobFile})
	require.ErrorIs(t, err, people.ErrNoUser, "another has the name by now")
	now, err := c.Person("bob")
	require.NoError(t, err)
	_, err = s.AddOf(t.Context(), c.Directory, now, v1.TemplateSpec{Name: "new", Author: "bob", Job: jobFile})
	require.NoError(t, err)
}

func TestARemovalAgainSweepsWhatCameLate(t *testing.T) {
	c := open(t)
	c.add("root", v1.GroupAdministrators)
	c.add("bob")
	swept := 0
	sweep := func(context.Context, string) error { swept++; return nil }
	stop := func(context.Context, string) (int, error) { return 0, nil }
	_, err := people.RemoveWith(t.Context(), c.Directory, "bob", stop, sweep)
	require.NoError(t, err)
	swept = 0
	_, err = people.RemoveWith(t.Context(), c.Directory, "bob", stop, sweep)
	require.ErrorIs(t, err, people.ErrNoUser)
	assert.Equal(t, 1, swept)
	_, err = people.RemoveWith(t.Context(), c.Directory, "never", stop, sweep)
	require.ErrorIs(t, err, people.ErrNoUser)
	assert.Equal(t, 1, swept)
}
