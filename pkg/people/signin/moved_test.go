package signin_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// oneSession returns one session of kim, which began with the issuer dex.
type oneSession struct{ signin.Tokens }

func (oneSession) Of(string) []token.Record { return []token.Record{{User: "kim", Via: "dex"}} }

// shown is an issuer that records the refresh tokens that it receives.
type shown struct{ with []secret.String }

func (*shown) Name() string    { return "dex" }
func (*shown) Refreshes() bool { return true }

func (i *shown) Check(_ context.Context, subject string, refresh secret.String) (*signin.Identity, error) {
	i.with = append(i.with, refresh)
	return &signin.Identity{Provider: "dex", Subject: subject, Refresh: refresh}, nil
}

// The subject 7 of another issuer is another person. The other issuer must not receive refresh tokens of the first issuer.
func TestAnIssuerOfAnotherAddressIsAnotherOne(t *testing.T) {
	d := open(t)
	i := &shown{}
	at := func(source, movedFrom string) (*signin.Service, *signin.Recheck) {
		policies := map[string]signin.Policy{"dex": {Create: true, Source: source, MovedFrom: movedFrom}}
		return signin.New(d.Directory, nil, signin.Options{Policies: policies, Now: time.Now}),
			&signin.Recheck{People: d.Directory, Tokens: oneSession{}, Checkers: []signin.Checker{i}, Policies: policies, Every: time.Second, Grace: time.Hour}
	}
	seven := &signin.Identity{Provider: "dex", Subject: "7", Name: "kim", Refresh: "first"}
	id := v1.Identity{Provider: "dex", Subject: "7"}
	service, again := at("https://one.example.org", "")
	kim, err := service.Admit(t.Context(), seven)
	require.NoError(t, err)
	require.NoError(t, again.Round(t.Context()))
	require.Equal(t, []secret.String{"first"}, i.with)

	other, otherAgain := at("https://two.example.org", "https://three.example.org")
	for _, who := range []*signin.Identity{seven, {Provider: "dex", Subject: "8", Name: "mia"}} {
		_, err = other.Admit(t.Context(), who)
		require.ErrorIs(t, err, signin.ErrNotAdmitted)
		require.ErrorContains(t, err, "dex was https://one.example.org when people were linked with it, and is https://two.example.org")
	}
	require.ErrorContains(t, otherAgain.Round(t.Context()), "https://two.example.org")
	assert.Len(t, i.with, 1, "it isn't asked, nor shown what the first one gave")
	_, err = service.Admit(t.Context(), seven)
	require.NoError(t, err, "the first one is who it was")

	// The operator confirms that both issuers have the same people.
	moved, movedAgain := at("https://two.example.org", "https://one.example.org")
	require.NoError(t, movedAgain.Round(t.Context()))
	kept, err := d.Refresh(t.Context(), kim, id)
	require.NoError(t, err)
	assert.False(t, kept.Refresh.IsSet(), "what the first one gave is deleted")
	assert.Len(t, i.with, 1)
	p, err := moved.Admit(t.Context(), seven)
	require.NoError(t, err)
	assert.Equal(t, kim.UID, p.UID)
	_, err = service.Admit(t.Context(), seven)
	require.ErrorIs(t, err, signin.ErrNotAdmitted, "the one of before counts no longer")
}
