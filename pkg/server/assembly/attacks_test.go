package assembly_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/server/attacks"
)

// mark is a text that only the owner's job contains.
const mark = "only-its-owner-reads-this-7391"

// besieged returns the world for the attacks on the house.
func besieged(t *testing.T, h *house) *attacks.World {
	t.Helper()
	a := h.as("ann", "POST", "/api/v2/jobs", attacks.File("train", "defaults: {virtualCluster: speech}\nparameters: {mark: "+mark+"}\n"))
	require.Equal(t, 202, a.Status, a.Body)
	a = h.as("vic", "POST", "/api/v2/jobs", attacks.File("own", "defaults: {virtualCluster: vision}\n"))
	require.Equal(t, 202, a.Status, a.Body)
	ann, err := h.People.Person("ann")
	require.NoError(t, err)
	made := func(n token.New) *token.Issued {
		t.Helper()
		i, err := h.Tokens.Application(t.Context(), ann, n)
		require.NoError(t, err)
		return i
	}
	old, revoked, id := made(token.New{Lifetime: time.Second}), made(token.New{}), made(token.New{})
	require.NoError(t, h.Tokens.Revoke(t.Context(), "ann", revoked.Record.ID))
	pair, err := h.Tokens.Session(t.Context(), ann, token.New{})
	require.NoError(t, err)
	h.person(t, "dora", "speech")
	dora, err := h.People.Person("dora")
	require.NoError(t, err)
	disabled, err := h.Tokens.Application(t.Context(), dora, token.New{Scopes: rules.Scopes()})
	require.NoError(t, err)
	require.NoError(t, h.People.Disable(t.Context(), "dora", true))
	h.Eventually("dora is disabled, and a token has expired", func() bool {
		return h.Do("GET", "/api/v3/whoami", disabled.Token.Reveal(), "").Status == 401 && h.Do("GET", "/api/v3/whoami", old.Token.Reveal(), "").Status == 401
	})
	return &attacks.World{
		Address: strings.TrimPrefix(h.URL, "https://"), Pages: strings.TrimPrefix(h.ProxyURL, "https://"), TLS: h.Dialled(),
		Owner: "ann", Job: "train", Object: fv1.ObjectName("ann", "train"), Thief: "vic", Own: "own", Reader: "abe",
		OwnerToken: h.tokens["ann"], ThiefToken: h.tokens["vic"], ReaderToken: h.tokens["abe"],
		Expired: old.Token.Reveal(), Revoked: revoked.Token.Reveal(), Disabled: disabled.Token.Reveal(), Refresh: pair.Refresh.Reveal(), TokenID: id.Record.ID,
		Marks: []string{mark, h.tokens["ann"]},
	}
}

func TestAThiefGetsNothing(t *testing.T) {
	h := newHouse(t)
	w := besieged(t, h)
	require.Contains(t, h.as("ann", "GET", "/api/v2/jobs/ann~train/config", "").Body, mark, "its owner sees it")
	names := map[string]bool{}
	all := attacks.All(w)
	for i := range all {
		a := &all[i]
		require.False(t, names[a.Name], "two have the name %s", a.Name)
		names[a.Name] = true
		assert.NoError(t, attacks.Try(t.Context(), w, a), a.Name)
	}
	for _, a := range attacks.Frames(w) {
		assert.NoError(t, attacks.TryFrames(t.Context(), w, &a), a.Name)
	}
	t.Logf("%d attempts", len(all)+len(attacks.Frames(w)))

	// The attempts have changed nothing.
	assert.Equal(t, fv1.ExecutionStart, framework(t, h.cluster, "ann", "train").Spec.ExecutionType)
	assert.NotContains(t, h.as("ann", "GET", "/api/v2/jobs/ann~train", "").Body, "stolen")
	client, err := dynamic.NewForConfig(h.cluster.Config)
	require.NoError(t, err)
	jobs, err := client.Resource(fv1.Resource).Namespace(kube.JobNamespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, j := range jobs.Items {
		assert.Contains(t, []string{fv1.ObjectName("ann", "train"), fv1.ObjectName("vic", "own")}, j.GetName())
	}
	for _, who := range []string{"ann", "vic"} {
		p, err := h.People.Person(who)
		require.NoError(t, err)
		assert.False(t, p.Grants.Administrator, who)
		assert.Len(t, p.Groups, 1, who)
		assert.NotEqual(t, "thief@example.org", p.User.Spec.Email)
		assert.Empty(t, p.User.Spec.Identities)
	}
	_, err = h.People.Person("made-by-thief")
	require.Error(t, err)
	h.SignIn("ann") // with her old password
	assert.Equal(t, 200, h.as("ann", "GET", "/api/v3/whoami", "").Status, "her session goes on")
	printed := h.Printed.String()
	for _, secret := range []string{w.OwnerToken, w.ThiefToken, w.ReaderToken, w.Expired, w.Revoked, w.Disabled, w.Refresh} {
		assert.NotContains(t, printed, secret, "a token is in the log")
	}
}
