package signin_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/signin/ldap"
	"github.com/openpai/paictl/pkg/people/signin/providertest"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// lab is a door with a real directory, and a Recheck for that directory.
type lab struct {
	*door
	server *providertest.Directory
	tokens *token.Service
	again  *signin.Recheck
	now    time.Time
}

func openLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{server: providertest.Slapd(t), now: time.Now()}
	d, err := ldap.New(ldap.Options{Name: "lab", URL: l.server.TLS, CA: l.server.CA, BindDN: providertest.AdminDN, BindPassword: providertest.AdminPassword,
		Users:  ldap.Users{Base: "ou=people," + providertest.Base, Name: "uid", Subject: "entryUUID", Email: "mail", DisplayName: "cn"},
		Groups: ldap.Groups{Base: "ou=groups," + providertest.Base, Member: "member", Name: "cn"}})
	require.NoError(t, err)
	l.door = open(t, d)
	l.tokens, err = token.Open(kubetest.Start(t).Config, l.Directory, token.Options{})
	require.NoError(t, err)
	require.NoError(t, l.tokens.Load(t.Context()))
	_, err = l.PutGroup(t.Context(), &v1.Group{Spec: v1.GroupSpec{Name: "vision", External: []v1.ExternalGroup{{Provider: "lab", Name: "ai-team"}}, VirtualClusters: []v1.VCGrant{{Name: "vision"}}}})
	require.NoError(t, err)
	l.again = &signin.Recheck{People: l.Directory, Tokens: l.tokens, Checkers: []signin.Checker{d}, Every: time.Second, Grace: time.Hour, Now: func() time.Time { return l.now },
		Policies: map[string]signin.Policy{"lab": {Create: true}}}
	return l
}

// enter signs in a person with a password, and begins a session.
func (l *lab) enter(t *testing.T, name string) *token.Pair {
	t.Helper()
	p, err := l.services[0].SignIn(t.Context(), name, providertest.Password, "10.0.0.1")
	require.NoError(t, err)
	assert.Equal(t, "lab", p.Via)
	pair, err := l.tokens.Session(t.Context(), p, token.New{})
	require.NoError(t, err)
	return pair
}

func (l *lab) round(t *testing.T) {
	t.Helper()
	require.NoError(t, l.again.Round(t.Context()))
	require.NoError(t, l.Load(t.Context()))
}

// pass moves the clock forward, and runs a round every ten minutes.
func (l *lab) pass(t *testing.T, d time.Duration) {
	t.Helper()
	const step = 10 * time.Minute
	for ; d > 0; d -= step {
		l.now = l.now.Add(min(d, step))
		l.round(t)
	}
}

// replace continues with another replica, which has only the data that the previous replica has stored.
func (l *lab) replace() {
	was := l.again
	l.again = &signin.Recheck{People: was.People, Tokens: was.Tokens, Checkers: was.Checkers, Policies: was.Policies, Every: was.Every, Grace: was.Grace, Now: was.Now}
}

func (l *lab) person(t *testing.T, name string) *people.Person {
	t.Helper()
	p, err := l.Person(name)
	require.NoError(t, err)
	return p
}

func (l *lab) valid(t *testing.T, text string) bool {
	t.Helper()
	_, err := l.tokens.Verify(t.Context(), text)
	if err != nil {
		require.ErrorIs(t, err, token.ErrInvalid)
	}
	return err == nil
}

func TestAPersonOfADirectoryIsAddedAndHasItsGroups(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	p := l.person(t, "kim")
	assert.Equal(t, []string{"default", "vision"}, p.Groups)
	assert.True(t, p.Grants.MayUse("vision"))
	assert.Equal(t, "Kim Kimsen", p.User.Spec.DisplayName)
	assert.Equal(t, "lab", pair.Record.Via)
	l.enter(t, "kim")
	assert.Len(t, l.tokens.Of("kim"), 2, "it is the same person")

	for what, c := range map[string]struct{ name, password string }{
		"a wrong password": {"kim", "not this one"}, "an empty one": {"kim", ""}, "no such person": {"eve", providertest.Password}, "a pattern": {"k*", providertest.Password},
	} {
		_, err := l.services[0].SignIn(t.Context(), c.name, secret.String(c.password), "10.0.0.2")
		assert.Equal(t, signin.ErrWrong, err, what)
	}
	_, err := l.services[0].SignIn(t.Context(), "*)(uid=*", providertest.Password, "10.0.0.1")
	require.ErrorIs(t, err, signin.ErrNotAdmitted, "no person here can have that name")
}

func TestAPersonIsKnownByTheSubjectAndNotByTheName(t *testing.T) {
	l := openLab(t)
	_, err := l.Add(t.Context(), people.NewUser{Name: "kim", Password: good})
	require.NoError(t, err)
	_, err = l.services[0].SignIn(t.Context(), "kim", providertest.Password, "10.0.0.1")
	require.ErrorIs(t, err, signin.ErrNotAdmitted, "the kim of the directory is another one, as far as is known")
	id, err := l.again.Checkers[0].(*ldap.Directory).SignIn(t.Context(), "kim", providertest.Password)
	require.NoError(t, err)
	_, err = l.Update(t.Context(), "kim", func(s *v1.UserSpec) error {
		s.Identities = []v1.Identity{{Provider: "lab", Subject: id.Subject}}
		return nil
	})
	require.NoError(t, err)
	l.enter(t, "kim")
}

func TestWhatAProviderTakesAwayGoesWithTheNextQuestion(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	other := l.enter(t, "lee")
	l.round(t)
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"))
	l.server.Leave("ai-team", "kim")
	l.round(t)
	assert.False(t, l.person(t, "kim").Grants.MayUse("vision"))
	assert.True(t, l.person(t, "lee").Grants.MayUse("vision"))
	assert.True(t, l.valid(t, pair.Access.Reveal()), "they are still signed in")
	l.server.Join("ai-team", "kim")
	l.round(t)
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"))

	application, err := l.tokens.Application(t.Context(), l.person(t, "kim"), token.New{})
	require.NoError(t, err)
	l.server.Remove("kim")
	l.round(t)
	assert.False(t, l.valid(t, pair.Access.Reveal()), "the session has ended")
	assert.False(t, l.valid(t, application.Token.Reveal()), "application tokens of one who is gone are refused")
	assert.True(t, l.valid(t, other.Access.Reveal()))
	assert.Empty(t, l.person(t, "kim").LastAnswer(l.person(t, "kim").User.Spec.Identities[0]).Groups)
}

func TestASessionByAnotherWayGoesOn(t *testing.T) {
	l := openLab(t)
	l.enter(t, "kim")
	require.NoError(t, l.SetPassword(t.Context(), "kim", good))
	p, err := l.services[0].SignIn(t.Context(), "kim", good, "10.0.0.1")
	require.NoError(t, err)
	assert.Empty(t, p.Via)
	own, err := l.tokens.Session(t.Context(), p, token.New{})
	require.NoError(t, err)
	viaLab := l.enter(t, "kim")
	l.server.Remove("kim")
	l.round(t)
	assert.True(t, l.valid(t, own.Access.Reveal()))
	assert.False(t, l.valid(t, viaLab.Access.Reveal()))
	l.round(t)
	assert.True(t, l.valid(t, own.Access.Reveal()))
}

func TestAProviderThatIsAwayCountsForAWhile(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	l.enter(t, "lee")
	require.NoError(t, l.SetPassword(t.Context(), "lee", good))
	tokens := map[string]string{}
	for _, name := range []string{"kim", "lee"} {
		application, err := l.tokens.Application(t.Context(), l.person(t, name), token.New{Scopes: []rules.Scope{rules.ScopeRead}})
		require.NoError(t, err)
		tokens[name] = application.Token.Reveal()
	}
	l.round(t)
	l.server.Stop()
	l.pass(t, 30*time.Minute)
	l.replace()
	l.pass(t, 29*time.Minute)
	assert.True(t, l.valid(t, tokens["kim"]))
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"))
	assert.True(t, l.valid(t, pair.Access.Reveal()))
	l.pass(t, 2*time.Minute)
	assert.False(t, l.person(t, "kim").Grants.MayUse("vision"), "its word is too old")
	assert.False(t, l.valid(t, pair.Access.Reveal()))
	assert.False(t, l.valid(t, tokens["kim"]), "it can't be known whether she is still there")
	assert.True(t, l.valid(t, tokens["lee"]), "he is also one of the cluster's own")
	l.server.Start()
	l.round(t)
	assert.True(t, l.valid(t, tokens["kim"]))
	assert.False(t, l.person(t, "kim").Unconfirmed)
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"), "it is back")
}

func TestTheGraceBeginsAnewAfterATimeWithoutQuestions(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	l.round(t)
	l.server.Stop()
	l.now = l.now.Add(2 * time.Hour)
	l.replace()
	l.pass(t, 50*time.Minute)
	assert.True(t, l.valid(t, pair.Access.Reveal()), "no replica ran for two hours")
	l.replace()
	l.pass(t, 21*time.Minute)
	assert.False(t, l.valid(t, pair.Access.Reveal()), "the second replica continues the hour of the first")
}

func TestGroupsEndWithTheirTimeAlsoWhereNoOneIsAskedAbout(t *testing.T) {
	l := openLab(t)
	own := map[string]string{}
	for _, name := range []string{"kim", "lee"} {
		l.enter(t, name)
		require.NoError(t, l.SetPassword(t.Context(), name, good)) // it ends the session, so they aren't checked
	}
	l.server.Leave("ai-team", "kim")
	l.round(t)
	l.server.Stop()
	require.NoError(t, l.Disable(t.Context(), "lee", true))
	l.pass(t, 59*time.Minute)
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"), "the word counts for its hour")
	l.pass(t, 2*time.Minute)
	require.NoError(t, l.Disable(t.Context(), "lee", false))
	for _, name := range []string{"kim", "lee"} {
		p, err := l.services[0].SignIn(t.Context(), name, good, "10.0.0.1")
		require.NoError(t, err, "a password of the cluster lets in while the directory is away")
		assert.False(t, p.Grants.MayUse("vision"), name)
		pair, err := l.tokens.Session(t.Context(), p, token.New{})
		require.NoError(t, err)
		own[name] = pair.Access.Reveal()
	}
	l.round(t)
	for name, access := range own {
		assert.True(t, l.valid(t, access), name)
		assert.Contains(t, l.person(t, name).Groups, "default")
	}
	l.server.Start()
	l.round(t)
	assert.False(t, l.person(t, "kim").Grants.MayUse("vision"))
	assert.True(t, l.person(t, "lee").Grants.MayUse("vision"), "the directory says so again")
}

func TestAnOldWordDoesNotEndANewOne(t *testing.T) {
	l := openLab(t)
	l.enter(t, "kim")
	old := l.person(t, "kim").LastAnswer(l.person(t, "kim").User.Spec.Identities[0])
	said := old
	said.CheckedAt = metav1.NewTime(old.CheckedAt.Add(time.Hour))
	_, err := l.RecordAnswer(t.Context(), l.person(t, "kim"), said)
	require.NoError(t, err)
	old.Groups = nil
	require.NoError(t, l.ExpireAnswer(t.Context(), l.person(t, "kim"), old))
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"), "they have signed in since")
	said.Groups = nil
	require.NoError(t, l.ExpireAnswer(t.Context(), l.person(t, "kim"), said))
	assert.False(t, l.person(t, "kim").Grants.MayUse("vision"))
}

func TestAProviderWhoseGroupsAreNotReadPutsNoOneIntoGroups(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	without, err := ldap.New(ldap.Options{Name: "lab", URL: l.server.TLS, CA: l.server.CA, BindDN: providertest.AdminDN, BindPassword: providertest.AdminPassword,
		Users: ldap.Users{Base: "ou=people," + providertest.Base, Name: "uid", Subject: "entryUUID"}})
	require.NoError(t, err)
	l.again.Checkers = []signin.Checker{without}
	l.round(t)
	assert.False(t, l.person(t, "kim").Grants.MayUse("vision"))
	assert.True(t, l.valid(t, pair.Access.Reveal()))
}

func TestWhatIsNotInTheSettingsVouchesForNoOne(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	l.enter(t, "lee")
	require.NoError(t, l.SetPassword(t.Context(), "lee", good))
	l.again.Checkers = nil
	l.round(t)
	assert.False(t, l.person(t, "kim").Grants.MayUse("vision"))
	assert.False(t, l.person(t, "lee").Grants.MayUse("vision"), "also of those who aren't signed in")
	assert.False(t, l.valid(t, pair.Access.Reveal()))
	application, err := l.tokens.Application(t.Context(), l.person(t, "kim"), token.New{})
	require.NoError(t, err)
	l.pass(t, 61*time.Minute)
	assert.False(t, l.valid(t, application.Token.Reveal()))
}

func TestAnIdentityThatIsUnlinkedGrantsNothing(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	_, err := l.Update(t.Context(), "kim", func(s *v1.UserSpec) error { s.Identities = nil; return nil })
	require.NoError(t, err)
	assert.False(t, l.person(t, "kim").Grants.MayUse("vision"), "at once")
	l.round(t)
	assert.False(t, l.valid(t, pair.Access.Reveal()))
}

func TestOnlyGroupsThatAreAllowedSignIn(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "lee")
	l.again.Policies = map[string]signin.Policy{"lab": {Create: true, Allowed: []string{"operators"}}}
	narrow := signin.New(l.Directory, []signin.Password{l.again.Checkers[0].(*ldap.Directory)}, signin.Options{Policies: l.again.Policies})
	_, err := narrow.SignIn(t.Context(), "lee", providertest.Password, "10.0.0.1")
	require.ErrorIs(t, err, signin.ErrNotAdmitted)
	_, err = narrow.SignIn(t.Context(), "kim", providertest.Password, "10.0.0.1")
	require.NoError(t, err)
	l.round(t)
	assert.False(t, l.valid(t, pair.Access.Reveal()), "who may sign in no longer is signed out")
}

func TestAWordAboutAPersonWhoWasReplacedIsNotKept(t *testing.T) {
	l := openLab(t)
	l.enter(t, "kim")
	was := l.person(t, "kim")
	require.NoError(t, l.Remove(t.Context(), "kim"))
	_, err := l.Add(t.Context(), people.NewUser{Name: "kim", Password: good, TakeOver: true})
	require.NoError(t, err)
	_, err = l.RecordAnswer(t.Context(), was, v1.External{Provider: "lab", Subject: "x", Groups: []string{"ai-team"}, CheckedAt: metav1.Now()})
	require.ErrorIs(t, err, people.ErrNoUser)
}

func TestManyWhoAreGoneAtOnceCountForAWhile(t *testing.T) {
	l := openLab(t)
	names := []string{"kim", "lee"}
	l.server.Do(func(c *goldap.Conn) error {
		for i := range 6 {
			name := fmt.Sprint("many", i)
			names = append(names, name)
			a := goldap.NewAddRequest(providertest.PersonDN(name), nil)
			for key, value := range map[string]string{"objectClass": "inetOrgPerson", "uid": name, "cn": name, "sn": name, "userPassword": providertest.Password} {
				a.Attribute(key, []string{value})
			}
			if err := c.Add(a); err != nil {
				return err
			}
		}
		return nil
	})
	access := map[string]string{}
	for _, name := range names {
		access[name] = l.enter(t, name).Access.Reveal()
	}
	l.round(t)
	l.server.Remove("many0")
	l.server.Remove("many1")
	l.round(t)
	assert.False(t, l.valid(t, access["many0"]), "two are gone at once")
	assert.False(t, l.valid(t, access["many1"]))
	for _, name := range []string{"kim", "many2", "many3"} {
		l.server.Remove(name)
	}
	l.pass(t, 10*time.Minute)
	for _, name := range []string{"kim", "many2", "many3", "lee"} {
		assert.True(t, l.valid(t, access[name]), "three of six are rather a mistake: %s", name)
	}
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"))
	assert.False(t, l.person(t, "kim").Unconfirmed)
	l.pass(t, 51*time.Minute)
	for _, name := range []string{"kim", "many2", "many3"} {
		assert.False(t, l.valid(t, access[name]), name)
		assert.True(t, l.person(t, name).Unconfirmed, name)
	}
	assert.True(t, l.valid(t, access["lee"]))
}

func TestADirectoryThatShowsNoOneIsAway(t *testing.T) {
	l := openLab(t)
	pair := l.enter(t, "kim")
	blind, err := ldap.New(ldap.Options{Name: "lab", URL: l.server.TLS, CA: l.server.CA, BindDN: providertest.AdminDN, BindPassword: providertest.AdminPassword,
		Users: ldap.Users{Base: "ou=groups," + providertest.Base, Name: "uid", Subject: "entryUUID"}})
	require.NoError(t, err)
	l.again.Checkers = []signin.Checker{blind}
	l.round(t)
	assert.True(t, l.valid(t, pair.Access.Reveal()))
	assert.True(t, l.person(t, "kim").Grants.MayUse("vision"))
}

// issuer is a Checker that returns an error of the test's choice for each person.
type issuer struct {
	says  map[string]error
	mu    sync.Mutex
	asked map[string]int
}

func (*issuer) Name() string    { return "dex" }
func (*issuer) Refreshes() bool { return true }

func (i *issuer) Check(_ context.Context, subject string, refresh secret.String) (*signin.Identity, error) {
	if err := i.says[subject]; err != nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked[subject]++
		return nil, err
	}
	return &signin.Identity{Provider: "dex", Subject: subject, Groups: []string{"ai-team"}, Refresh: refresh}, nil
}

func TestAnIssuerMayHaveBeenWrong(t *testing.T) {
	l := openLab(t)
	i := &issuer{says: map[string]error{}, asked: map[string]int{}}
	l.again.Checkers = []signin.Checker{i}
	service := signin.New(l.Directory, nil, signin.Options{Policies: map[string]signin.Policy{"dex": {Create: true}}})
	p, err := service.Admit(t.Context(), &signin.Identity{Provider: "dex", Subject: "1", Name: "kim", Refresh: "refresh"})
	require.NoError(t, err)
	session, err := l.tokens.Session(t.Context(), p, token.New{})
	require.NoError(t, err)
	application, err := l.tokens.Application(t.Context(), p, token.New{})
	require.NoError(t, err)
	i.says["1"] = signin.ErrGone
	l.round(t)
	assert.False(t, l.valid(t, session.Access.Reveal()))
	assert.False(t, l.valid(t, application.Token.Reveal()))
	delete(i.says, "1")
	l.round(t)
	assert.True(t, l.valid(t, application.Token.Reveal()), "it was asked again")
	assert.False(t, l.person(t, "kim").Unconfirmed)
	i.says["1"] = signin.ErrGone
	l.round(t)
	l.pass(t, 61*time.Minute)
	kept, err := l.Refresh(t.Context(), p, p.User.Spec.Identities[0])
	require.NoError(t, err)
	assert.False(t, kept.Refresh.IsSet(), "after an hour it isn't asked with that")
}

func TestAnAnswerAboutOnePersonStopsNoQuestionsAboutOthers(t *testing.T) {
	l := openLab(t)
	i := &issuer{says: map[string]error{}, asked: map[string]int{}}
	l.again.Checkers = []signin.Checker{i}
	service := signin.New(l.Directory, nil, signin.Options{Policies: map[string]signin.Policy{"dex": {Create: true}}})
	for n := range 12 {
		subject := fmt.Sprint("s", n)
		p, err := service.Admit(t.Context(), &signin.Identity{Provider: "dex", Subject: subject, Name: subject, Refresh: "refresh"})
		require.NoError(t, err)
		_, err = l.tokens.Session(t.Context(), p, token.New{})
		require.NoError(t, err)
		i.says[subject] = fmt.Errorf("%w: %w", people.ErrUnavailable, signin.ErrUnsaid)
	}
	l.round(t)
	assert.Len(t, i.asked, 12)
	for subject := range i.says {
		i.says[subject] = errors.New("it doesn't answer")
	}
	clear(i.asked)
	l.round(t)
	assert.Less(t, len(i.asked), 12, "one that doesn't answer is asked later")
}
