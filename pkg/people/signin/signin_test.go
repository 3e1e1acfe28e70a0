package signin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/password"
	"github.com/openpai/paictl/pkg/people/signin"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

const (
	good = "correct horse battery"
	// ofPython is the PBKDF2 hash of alice's password "openpai-secret", calculated with Python's hashlib.
	ofPython = "c2bd4b6afd83f3a08e1628c233ea3c2a895105b8c683a4328b3dd5d285c65f76a92d10154709d1991dae6a0d9cbbf2a0a875c88221df545d18e1944ff555ece5"
)

// door is a running Directory with the sign-in services of two replicas.
type door struct {
	*people.Directory
	services [2]*signin.Service
	skew     atomic.Int64
}

func open(t *testing.T, providers ...signin.Password) *door {
	t.Helper()
	c := kubetest.Start(t)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	api, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	require.NoError(t, api.Resource(v1.Users).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, c.Client.CoreV1().Secrets(v1.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = d.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	require.Eventually(t, func() bool { return d.Fresh() == nil }, 20*time.Second, 10*time.Millisecond)
	out := &door{Directory: d}
	for i := range out.services {
		out.services[i] = signin.New(d, providers, signin.Options{Policies: map[string]signin.Policy{"lab": {Create: true}}, Now: func() time.Time { return time.Now().Add(time.Duration(out.skew.Load())) },
			Addresses: func(name string) []string { return map[string][]string{"ann": {"", "10.0.9.9"}}[name] }})
	}
	for _, n := range []people.NewUser{{Name: "ann", Password: good}, {Name: "off", Password: good}, {Name: "nopassword"}} {
		_, err := d.Add(t.Context(), n)
		require.NoError(t, err)
	}
	require.NoError(t, d.Disable(t.Context(), "off", true))
	return out
}

func (d *door) try(t *testing.T, name, p, address string) error {
	t.Helper()
	_, err := d.services[0].SignIn(t.Context(), name, secret.String(p), address)
	return err
}

func TestOneAnswerForAllThatIsWrong(t *testing.T) {
	d := open(t)
	require.NoError(t, d.try(t, "ann", good, "10.0.0.1"))
	took := map[string]time.Duration{}
	for i, test := range []struct{ what, name, password string }{
		{"wrong", "ann", good + "x"}, {"empty", "ann", ""}, {"unknown", "eve", good}, {"disabled", "off", good}, {"without one", "nopassword", good},
		{"another case", "NOPASSWORD", good}, {"a path", "../../ann", good}, {"long", string(make([]byte, 5000)), good}, {"no name", "", good},
	} {
		var times []time.Duration
		d.skew.Add(int64(time.Hour)) // some are one name to the throttle
		for n := range 5 {
			begin := time.Now()
			assert.Equal(t, signin.ErrWrong, d.try(t, test.name, test.password, fmt.Sprintf("10.0.%d.%d", i+1, n)), test.what)
			times = append(times, time.Since(begin))
		}
		slices.Sort(times)
		took[test.what] = times[2]
	}
	t.Log(took)
	for what, d := range took {
		assert.InDelta(t, took["wrong"], d, float64(took["wrong"])/4, "%s is told from a wrong password by time", what)
	}
}

func TestGuessingIsSlowedDownByAddress(t *testing.T) {
	d := open(t)
	for i := range 10 { // each another name
		assert.ErrorIs(t, d.try(t, fmt.Sprintf("user%d", i), "x", "2001:db8::1"), signin.ErrWrong)
	}
	err := d.try(t, "ann", good, "2001:db8::2")
	var throttled *signin.ThrottledError
	require.ErrorAs(t, err, &throttled, "an address of the same network")
	assert.ErrorIs(t, err, signin.ErrBusy)
	assert.LessOrEqual(t, throttled.After, 12*time.Second)
	assert.NoError(t, d.try(t, "ann", good, "2001:db9::2"))
	d.skew.Store(int64(13 * time.Second))
	assert.NoError(t, d.try(t, "ann", good, "2001:db8::2"))
	assert.NoError(t, d.try(t, "ann", good, "2001:db8::2"), "who is right is not slowed down")
}

func TestWhoSharesAnAddressIsNotLockedOutByOthers(t *testing.T) {
	d := open(t)
	require.NoError(t, d.try(t, "ann", good, "10.0.0.1"))
	for i := range 10 {
		assert.ErrorIs(t, d.try(t, fmt.Sprintf("user%d", i), "x", "10.0.0.1"), signin.ErrWrong)
	}
	assert.ErrorIs(t, d.try(t, "user11", "x", "10.0.0.1"), signin.ErrBusy)
	assert.NoError(t, d.try(t, "ann", good, "10.0.0.1"), "she has signed in from there")
	for range 10 {
		_ = d.try(t, "ann", "x", "10.0.0.1")
	}
	assert.ErrorIs(t, d.try(t, "ann", "x", "10.0.0.1"), signin.ErrBusy, "her password isn't guessed there without end")
}

func TestGuessingOfANameIsSlowedDownAndLocksThePersonNotOut(t *testing.T) {
	d := open(t)
	require.NoError(t, d.try(t, "ann", good, "10.0.0.1"))
	for i := range 10 { // each from another address
		assert.ErrorIs(t, d.try(t, "ann", "x", fmt.Sprintf("10.1.0.%d", i)), signin.ErrWrong)
	}
	assert.ErrorIs(t, d.try(t, "ann", "x", "10.1.0.99"), signin.ErrBusy)
	_, err := d.services[1].SignIn(t.Context(), "ann", good, "10.1.0.100")
	assert.ErrorIs(t, err, signin.ErrWrong, "the other replica knows it by the Secret, and answers as for a name that isn't there")
	_, err = d.services[1].SignIn(t.Context(), "eve", good, "10.1.0.100")
	assert.ErrorIs(t, err, signin.ErrWrong)
	_, err = d.services[1].SignIn(t.Context(), "ann", good, "10.0.9.9")
	assert.NoError(t, err, "an address that her tokens are used from is known to the other replica")
	assert.NoError(t, d.try(t, "ann", good, "10.0.0.1"), "an address that has signed in before")
	for i := range 10 {
		assert.ErrorIs(t, d.try(t, "eve", "x", fmt.Sprintf("10.2.0.%d", i)), signin.ErrWrong)
	}
	assert.ErrorIs(t, d.try(t, "eve", "x", "10.2.0.99"), signin.ErrBusy, "a name that isn't there is slowed down, too")
	d.skew.Store(int64(6 * time.Minute))
	assert.NoError(t, d.try(t, "ann", good, "10.1.0.101"))
}

func TestAGuessIsNotSlowedDownByWrongPasswordsOfANameLikeIt(t *testing.T) {
	d := open(t)
	none, right := errors.New("none"), func() error { return nil }
	for i := range 10 {
		assert.ErrorIs(t, d.try(t, "device:ann", "x", fmt.Sprintf("10.4.0.%d", i)), signin.ErrWrong)
	}
	require.ErrorIs(t, d.try(t, "device:ann", "x", "10.4.0.99"), signin.ErrBusy)
	require.NoError(t, d.services[0].Guess("device:ann", none, right))
	for range 10 {
		require.ErrorIs(t, d.services[0].Guess("device:ann", none, func() error { return none }), none)
	}
	require.ErrorIs(t, d.services[0].Guess("device:ann", none, right), signin.ErrBusy)
	assert.NoError(t, d.services[0].Guess("device:eve", none, right))
	for range 20 {
		d.skew.Add(int64(24 * time.Hour))
		require.ErrorIs(t, d.services[0].Guess("device:eve", none, func() error { return none }), none)
		require.NoError(t, d.services[0].Guess("device:eve", none, right), "slips of many days don't add up")
	}
}

func TestManyAtOnceAreNoWayAround(t *testing.T) {
	d := open(t)
	var wrong, busy atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			switch err := d.try(t, "ann", "x", "10.3.0.1"); {
			case errors.Is(err, signin.ErrWrong):
				wrong.Add(1)
			case errors.Is(err, signin.ErrBusy):
				busy.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, wrong.Load(), int32(11))
	assert.Positive(t, busy.Load())
}

func TestAPasswordOfOpenPAIIsHashedAgainWhenItIsUsed(t *testing.T) {
	d := open(t)
	hash, err := password.OpenPAI("alice", ofPython)
	require.NoError(t, err)
	alice, err := d.Add(t.Context(), people.NewUser{Name: "alice", Hash: hash})
	require.NoError(t, err)
	assert.ErrorIs(t, d.try(t, "alice", "openpai-secre", "10.0.0.1"), signin.ErrWrong)
	require.NoError(t, d.try(t, "alice", "openpai-secret", "10.0.0.1"))
	stored, err := d.Password(t.Context(), alice)
	require.NoError(t, err)
	assert.Contains(t, stored.Hash, "$argon2id$")
	assert.Zero(t, stored.Failures)
	require.NoError(t, d.try(t, "alice", "openpai-secret", "10.0.0.1"))
	assert.Eventually(t, func() bool {
		p, err := d.Person("alice")
		return err == nil && p.User.Status.LastSignIn != nil && time.Since(p.User.Status.LastSignIn.Time) < time.Minute
	}, time.Minute, 10*time.Millisecond)
}

func TestASignInAfterTheSessionsEndedIsGood(t *testing.T) {
	d := open(t)
	require.NoError(t, d.Disable(t.Context(), "ann", true))
	require.NoError(t, d.Disable(t.Context(), "ann", false))
	ann, err := d.services[0].SignIn(t.Context(), "ann", good, "10.0.0.1")
	require.NoError(t, err)
	assert.EqualValues(t, 1, ann.Sessions)
	require.NoError(t, d.SetPassword(t.Context(), "ann", good+" two"))
	ann, err = d.services[0].SignIn(t.Context(), "ann", good+" two", "10.0.0.1")
	require.NoError(t, err)
	assert.EqualValues(t, 2, ann.Sessions)
}

func TestAProviderVouchesForItsOwnPeopleAlone(t *testing.T) {
	d := open(t)
	s := d.services[0]
	made, err := s.Admit(t.Context(), &signin.Identity{Provider: "lab", Subject: "1", Name: "carol", Email: "carol@example.org"})
	require.NoError(t, err)
	again, err := s.Admit(t.Context(), &signin.Identity{Provider: "lab", Subject: "1", Name: "another-name"})
	require.NoError(t, err)
	assert.Equal(t, made.UID, again.UID)
	for what, id := range map[string]signin.Identity{
		"the name of a person here":          {Provider: "lab", Subject: "2", Name: "ann"},
		"the name of another of theirs":      {Provider: "lab", Subject: "3", Name: "carol"},
		"the e-mail of a person here":        {Provider: "other", Subject: "1", Name: "x", Email: "carol@example.org"},
		"a name that can't be":               {Provider: "lab", Subject: "4", Name: "a/b"},
		"a provider that doesn't add people": {Provider: "other", Subject: "1", Name: "dave"},
	} {
		_, err := s.Admit(t.Context(), &id)
		assert.ErrorIs(t, err, signin.ErrNotAdmitted, what)
		assert.Contains(t, hint.Of(err), "paictl user link", what)
	}
	_, err = s.Admit(t.Context(), &signin.Identity{Provider: "lab"})
	assert.Error(t, err)
	require.NoError(t, d.Disable(t.Context(), "carol", true))
	_, err = s.Admit(t.Context(), &signin.Identity{Provider: "lab", Subject: "1", Name: "carol"})
	assert.ErrorIs(t, err, signin.ErrWrong)
}

// asked is a provider that fails the test if it gets an empty password.
type asked struct{ t *testing.T }

func (asked) Name() string { return "lab" }

func (a asked) SignIn(_ context.Context, name string, p secret.String) (*signin.Identity, error) {
	assert.NotEmpty(a.t, p.Reveal(), "an empty password must not get to a provider")
	if name == "dora" && p.Reveal() == "of the lab" {
		return &signin.Identity{Provider: "lab", Subject: "dora", Name: "dora"}, nil
	}
	return nil, signin.ErrWrong
}

func TestProvidersAreAskedAfterLocalPasswords(t *testing.T) {
	d := open(t, asked{t})
	require.NoError(t, d.try(t, "dora", "of the lab", "10.0.0.1"))
	assert.ErrorIs(t, d.try(t, "dora", "", "10.0.0.1"), signin.ErrWrong)
	assert.ErrorIs(t, d.try(t, "ann", "of the lab", "10.0.0.1"), signin.ErrWrong)
}

// judge is a provider that always returns the same result, and counts its calls.
type judge struct {
	name string
	says error
	was  atomic.Int32
}

func (j *judge) Name() string { return j.name }

func (j *judge) SignIn(context.Context, string, secret.String) (*signin.Identity, error) {
	j.was.Add(1)
	if j.says != nil {
		return nil, j.says
	}
	return &signin.Identity{Provider: "other", Subject: "1", Name: "dave"}, nil
}

func TestGuessingIsSlowedDownWhileOneDirectoryIsAway(t *testing.T) {
	there := &judge{name: "lab", says: signin.ErrWrong}
	away := &judge{name: "away", says: fmt.Errorf("%w: it doesn't answer", people.ErrUnavailable)}
	d := open(t, there, away)
	for i := range 30 {
		err := d.try(t, "kim", fmt.Sprint("guess", i), "10.0.0.1")
		if i < 10 {
			assert.ErrorIs(t, err, people.ErrUnavailable, "it isn't known to be wrong")
		} else {
			assert.ErrorIs(t, err, signin.ErrBusy)
		}
	}
	assert.EqualValues(t, 10, there.was.Load())
}

func TestWhereNoOneCanSayNothingIsCounted(t *testing.T) {
	d := open(t)
	away := &judge{name: "away", says: fmt.Errorf("%w: it doesn't answer", people.ErrUnavailable)}
	foreign := signin.New(d.Directory, []signin.Password{away}, signin.Options{ProvidersOnly: true})
	for range 15 {
		_, err := foreign.SignIn(t.Context(), "kim", good, "10.0.0.1")
		assert.ErrorIs(t, err, people.ErrUnavailable)
	}
	right := signin.New(d.Directory, []signin.Password{&judge{name: "other"}}, signin.Options{})
	for range 15 {
		_, err := right.SignIn(t.Context(), "dave", good, "10.0.0.1")
		assert.ErrorIs(t, err, signin.ErrNotAdmitted, "a right password of a person who isn't here is no guess")
	}
}
