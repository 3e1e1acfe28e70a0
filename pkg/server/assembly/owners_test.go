package assembly_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/signin"
)

// Jobs that were submitted with a kubeconfig have owners who aren't people. A person whom a provider adds must not get these jobs, or the owner's
// folders, by choosing the owner's name.
func TestOwnersOfJobsWhoArentPeopleCantBeClaimed(t *testing.T) {
	h := newHouse(t)
	jobs, err := job.New(h.cluster)
	require.NoError(t, err)
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "train", "speech").Status)
	f := framework(t, h.cluster, "ann", "train")
	f.ObjectMeta = metav1.ObjectMeta{Name: fv1.ObjectName("owen", "train"), Namespace: f.Namespace, Labels: f.Labels, Annotations: f.Annotations}
	f.Labels[fv1.LabelUser] = "owen"
	_, err = jobs.Frameworks.Create(t.Context(), f, false)
	require.NoError(t, err)
	h.Ended("lee", "speech", "past", time.Now().Add(-time.Hour))
	service := signin.New(h.People, nil, signin.Options{Policies: map[string]signin.Policy{"lab": {Create: true}}})
	admit := func(name string) error {
		_, err := service.Admit(t.Context(), &signin.Identity{Provider: "lab", Subject: "of " + name, Name: name})
		return err
	}
	for _, name := range []string{"owen", "OWEN", "lee", "Lee", "root", "Admin", "ubuntu", "operator", "SYSTEM", "system:admin", "me"} {
		require.ErrorIs(t, admit(name), signin.ErrNotAdmitted, name)
		_, err := h.People.Person(name)
		if name != "root" {
			assert.ErrorIs(t, err, people.ErrNoUser, name)
		}
	}
	require.NoError(t, admit("mia"))

	// An administrator must confirm that a new person takes over the jobs, in both APIs.
	a := h.as("root", "POST", "/api/v3/users", `{"name":"owen"}`)
	assert.Equal(t, 409, a.Status, a.Body)
	assert.Contains(t, a.Body, "jobs belong to owen")
	assert.Contains(t, a.Body, "--take-over-history")
	a = h.as("root", "POST", "/api/v2/users", `{"username":"lee","password":"correct horse battery"}`)
	assert.Equal(t, 409, a.Status, a.Body)
	a = h.as("root", "POST", "/api/v3/users", `{"name":"operator","takeOverHistory":true}`)
	assert.Equal(t, 400, a.Status, a.Body)
	a = h.as("root", "POST", "/api/v3/users", `{"name":"owen","takeOverHistory":true}`)
	assert.Equal(t, 200, a.Status/100*100, a.Body)

	// If the history doesn't respond, the server can't check whether the name owns jobs.
	require.NoError(t, h.Store.Close())
	require.ErrorIs(t, admit("noa"), people.ErrUnavailable)
	_, err = h.People.Add(t.Context(), people.NewUser{Name: "noa"})
	require.NoError(t, err, "an administrator isn't kept from it")
}
