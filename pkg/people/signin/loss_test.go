package signin_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/signin/ldap"
	"github.com/openpai/paictl/pkg/people/signin/providertest"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// namer is an issuer that reports the groups of each person. If next is set, it returns a new refresh token at each check.
type namer struct {
	groups map[string][]string
	next   bool
	unsaid bool              // it reports no groups
	lost   string            // whose answer is lost
	taken  map[string]string // the refresh token that it would take
	before func()            // each answer
	mu     sync.Mutex
	n      int
}

func (*namer) Name() string    { return "dex" }
func (*namer) Refreshes() bool { return true }

func (i *namer) Check(ctx context.Context, subject string, refresh secret.String) (*signin.Identity, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.before != nil {
		i.before()
	}
	if i.next {
		if i.taken[subject] != "" && i.taken[subject] != refresh.Reveal() {
			return nil, signin.ErrGone
		}
		i.n++
		refresh = secret.String(fmt.Sprint("refresh", i.n))
		i.taken[subject] = refresh.Reveal()
	}
	if i.lost == subject || ctx.Err() != nil {
		return nil, signin.ErrLost
	}
	return &signin.Identity{Provider: "dex", Subject: subject, Groups: i.groups[subject], GroupsUnsaid: i.unsaid, Refresh: refresh}, nil
}

// enterBy signs in a person whom an issuer confirms, and begins a session.
func (l *lab) enterBy(t *testing.T, i *namer, name string) *token.Pair {
	t.Helper()
	delete(i.taken, name) // another sign-in there
	id, err := i.Check(t.Context(), name, "refresh")
	require.NoError(t, err)
	id.Name = name
	p, err := signin.New(l.Directory, nil, signin.Options{Policies: l.again.Policies, Now: l.again.Now}).Admit(t.Context(), id)
	require.NoError(t, err)
	pair, err := l.tokens.Session(t.Context(), p, token.New{})
	require.NoError(t, err)
	return pair
}

// openNamer returns a lab with an issuer. The issuer's group gpu-users may sign in, and members of its group bosses are administrators.
func openNamer(t *testing.T) (*lab, *namer) {
	t.Helper()
	l := openLab(t)
	_, err := l.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "bosses", Administrator: true, External: []v1.ExternalGroup{{Provider: "dex", Name: "bosses"}}}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.DeleteGroup(context.WithoutCancel(t.Context()), "bosses")) })
	i := &namer{groups: map[string][]string{}, taken: map[string]string{}}
	l.again.Checkers, l.again.Policies = []signin.Checker{i}, map[string]signin.Policy{"dex": {Create: true, Allowed: []string{"gpu-users"}}}
	return l, i
}

func TestWhoMaySignInNoLongerIsSignedOutWhateverTheIssuerIsAskedWith(t *testing.T) {
	for _, next := range []bool{false, true} {
		t.Run(fmt.Sprint("another refresh token each time: ", next), func(t *testing.T) {
			l, i := openNamer(t)
			i.next, i.groups["kim"] = next, []string{"bosses", "gpu-users"}
			pair := l.enterBy(t, i, "kim")
			l.round(t)
			assert.True(t, l.person(t, "kim").Grants.Administrator)
			i.groups["kim"] = []string{"bosses"}
			l.round(t)
			assert.False(t, l.person(t, "kim").Grants.Administrator)
			assert.True(t, l.person(t, "kim").Unconfirmed)
			assert.False(t, l.valid(t, pair.Access.Reveal()))
		})
	}
}

func TestGroupsThatAProviderNamesCountAtOnceHoweverManyLeave(t *testing.T) {
	for what, left := range map[string]struct {
		groups   []string // the groups of a person who stays
		signedIn bool
	}{
		"it names groups of another person": {[]string{"gpu-users"}, false},
		"it shows no groups of anyone":      {nil, true},
	} {
		t.Run(what, func(t *testing.T) {
			l, i := openNamer(t)
			access := map[string]string{}
			for _, name := range []string{"kim", "lee", "max", "ola"} {
				i.groups[name] = []string{"bosses", "gpu-users"}
				access[name] = l.enterBy(t, i, name).Access.Reveal()
			}
			l.round(t)
			assert.True(t, l.person(t, "kim").Grants.Administrator)
			clear(i.groups)
			i.groups["ola"] = left.groups
			l.round(t)
			for _, name := range []string{"kim", "lee", "max"} {
				assert.False(t, l.person(t, name).Grants.Administrator, name)
				assert.Equal(t, left.signedIn, l.valid(t, access[name]), name)
				assert.Equal(t, !left.signedIn, l.person(t, name).Unconfirmed, name)
			}
			assert.True(t, l.valid(t, access["ola"]))
			l.pass(t, 61*time.Minute)
			assert.False(t, l.valid(t, access["kim"]), "after an hour it is no mistake")
		})
	}
}

func TestTheGroupsOfBeforeCountForAWhileWhereAnAnswerSaysNone(t *testing.T) {
	for what, c := range map[string]struct {
		allowed  []string
		signedIn bool
	}{
		"everyone may sign in":         {nil, true},
		"members of a group alone may": {[]string{"gpu-users"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			l, i := openNamer(t)
			l.again.Policies = map[string]signin.Policy{"dex": {Create: true, Allowed: c.allowed}}
			i.groups["kim"] = []string{"bosses", "gpu-users"}
			pair := l.enterBy(t, i, "kim")
			l.round(t)
			i.unsaid, i.groups["kim"] = true, nil
			l.pass(t, 59*time.Minute)
			assert.True(t, l.person(t, "kim").Grants.Administrator)
			assert.True(t, l.valid(t, pair.Access.Reveal()))
			l.pass(t, 20*time.Minute)
			assert.False(t, l.person(t, "kim").Grants.Administrator)
			assert.Equal(t, c.signedIn, l.valid(t, pair.Access.Reveal()))
		})
	}
}

func TestAnAnswerThatIsLostSignsNoOneOut(t *testing.T) {
	l, i := openNamer(t)
	i.next, i.groups["kim"], i.groups["lee"] = true, []string{"bosses", "gpu-users"}, []string{"gpu-users"}
	kim, lee := l.enterBy(t, i, "kim"), l.enterBy(t, i, "lee")
	l.round(t)
	i.lost = "kim"
	l.round(t)
	i.lost = ""
	l.pass(t, 59*time.Minute)
	assert.True(t, l.valid(t, kim.Access.Reveal()), "the issuer says no to what it was asked with before")
	assert.True(t, l.person(t, "kim").Grants.Administrator)
	l.pass(t, 20*time.Minute)
	assert.False(t, l.valid(t, kim.Access.Reveal()), "but for a while only")
	assert.False(t, l.person(t, "kim").Grants.Administrator)
	assert.True(t, l.valid(t, lee.Access.Reveal()))
	kim = l.enterBy(t, i, "kim")
	l.round(t)
	assert.True(t, l.valid(t, kim.Access.Reveal()), "it is asked with what the new sign-in brought")
	i.taken["kim"] = "ended there"
	l.round(t)
	assert.False(t, l.valid(t, kim.Access.Reveal()), "no means no again")
}

func TestAnAnswerThatComesWhileTheServerEndsIsKept(t *testing.T) {
	l, i := openNamer(t)
	i.next, i.groups["kim"] = true, []string{"gpu-users"}
	pair := l.enterBy(t, i, "kim")
	ctx, end := context.WithCancel(t.Context())
	i.before = end
	_ = l.again.Round(ctx)
	require.Error(t, ctx.Err())
	p := l.person(t, "kim")
	kept, err := l.Refresh(t.Context(), p, p.User.Spec.Identities[0])
	require.NoError(t, err)
	assert.Equal(t, i.taken["kim"], kept.Refresh.Reveal())
	i.before = nil
	l.round(t)
	assert.True(t, l.valid(t, pair.Access.Reveal()))
}

func TestTimeInWhichNoOneAskedMakesNoWordOlder(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	l.round(t)
	l.now = l.now.Add(24 * time.Hour) // the server was off
	l.server.Stop()
	l.round(t)
	assert.True(t, l.valid(t, pair.Access.Reveal()), "one question has failed")
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"))
	l.pass(t, 61*time.Minute)
	assert.False(t, l.valid(t, pair.Access.Reveal()))
	assert.False(t, l.person(t, "kim").Grants.MayUse("vision"))
}

func TestAPasswordThatLetsNoOneInKeepsNoApplicationTokens(t *testing.T) {
	l := openLab(t)
	l.enter(t, "kim")
	require.NoError(t, l.SetPassword(t.Context(), "kim", good)) // before passwords of the cluster were switched off
	foreign := signin.New(l.Directory, []signin.Password{l.again.Checkers[0].(*ldap.Directory)}, signin.Options{ProvidersOnly: true, Policies: l.again.Policies})
	_, err := foreign.SignIn(t.Context(), "kim", good, "10.0.0.9")
	require.Equal(t, signin.ErrWrong, err)
	_, err = foreign.SignIn(t.Context(), "kim", providertest.Password, "10.0.0.9")
	require.NoError(t, err)
	application, err := l.tokens.Application(t.Context(), l.person(t, "kim"), token.New{})
	require.NoError(t, err)
	l.again.ProvidersOnly = true
	l.round(t)
	l.server.Stop()
	l.pass(t, 61*time.Minute)
	assert.False(t, l.valid(t, application.Token.Reveal()))
}
