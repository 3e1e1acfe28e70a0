package token_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
)

type place struct{ Name string }

func TestALinkLeadsToOnePlaceForItsTimeAndNoLongerThanItsToken(t *testing.T) {
	r := replicas(t, 2)
	here, there := r[0], r[1]
	made, err := here.Application(t.Context(), here.person(t, "ann"), token.New{Scopes: []rules.Scope{rules.ScopeRead}})
	require.NoError(t, err)
	v, err := here.Verify(t.Context(), made.Token.Reveal())
	require.NoError(t, err)
	text, err := here.Link(t.Context(), v.Claims, token.UseLog, place{"a log"}, time.Minute)
	require.NoError(t, err)
	assert.NotContains(t, made.Token.Reveal(), text.Reveal())

	to := place{}
	followed, err := there.Follow(t.Context(), token.UseLog, text.Reveal(), &to)
	require.NoError(t, err, "at another replica")
	assert.Equal(t, place{"a log"}, to)
	assert.Equal(t, "ann", followed.Subject.Name)
	assert.Equal(t, v.Subject.Token, followed.Subject.Token, "it may what the token may")

	_, err = there.Verify(t.Context(), text.Reveal())
	require.ErrorIs(t, err, token.ErrInvalid, "a link is no token")
	_, err = there.Follow(t.Context(), token.UsePage, text.Reveal(), &to)
	require.ErrorIs(t, err, token.ErrInvalid, "nor is it for another use")
	resumed, err := there.Resume(t.Context(), v.Claims.Session, v.Claims.UID)
	require.NoError(t, err)
	assert.Equal(t, v.Subject.Token, resumed.Subject.Token)
	_, err = there.Resume(t.Context(), v.Claims.Session, "another")
	require.ErrorIs(t, err, token.ErrInvalid, "it is the session of another person")
	for name, bad := range map[string]string{"a token": made.Token.Reveal(), "nothing": "", "changed": another(text.Reveal()), "a text": "none", "cut": text.Reveal()[:len(text.Reveal())-4]} {
		_, err = here.Follow(t.Context(), token.UseLog, bad, &to)
		require.ErrorIs(t, err, token.ErrInvalid, name)
	}
	there.skew.Store(int64(2 * time.Minute))
	_, err = there.Follow(t.Context(), token.UseLog, text.Reveal(), &to)
	require.ErrorIs(t, err, token.ErrInvalid, "its time is over")
	there.skew.Store(0)

	require.NoError(t, here.Revoke(t.Context(), "ann", made.Record.ID))
	_, err = here.Follow(t.Context(), token.UseLog, text.Reveal(), &to)
	require.ErrorIs(t, err, token.ErrInvalid)
	_, err = here.Resume(t.Context(), v.Claims.Session, v.Claims.UID)
	require.ErrorIs(t, err, token.ErrInvalid)
	require.Eventually(t, func() bool { _, err := there.Follow(t.Context(), token.UseLog, text.Reveal(), &to); return err != nil }, 10*time.Second, 10*time.Millisecond)
	select {
	case <-followed.Ended:
	case <-time.After(10 * time.Second):
		t.Fatal("what is still read goes on")
	}
}
