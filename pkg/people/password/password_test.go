package password_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people/password"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/test/tier"
)

// ofPython is the PBKDF2 hash of alice's password "openpai-secret", calculated with Python's hashlib.
const ofPython = "c2bd4b6afd83f3a08e1628c233ea3c2a895105b8c683a4328b3dd5d285c65f76a92d10154709d1991dae6a0d9cbbf2a0a875c88221df545d18e1944ff555ece5"

// ofReference is the argon2id hash of "password" with the salt "somesalt" from the tests of the reference implementation (t=2, m=65536, p=1).
const ofReference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"

func TestAPasswordIsThatOfItsHash(t *testing.T) {
	one, two := password.Hash("correct horse"), password.Hash("correct horse")
	assert.True(t, strings.HasPrefix(one, "$argon2id$v=19$m=19456,t=2,p=1$"), one)
	assert.NotEqual(t, one, two, "each has a salt of its own")
	old, err := password.OpenPAI("alice", strings.ToUpper(ofPython))
	require.NoError(t, err)
	for name, test := range map[string]struct {
		hash, try  string
		ok, rehash bool
	}{
		"the one":            {one, "correct horse", true, false},
		"another":            {one, "correct horse ", false, false},
		"none":               {one, "", false, false},
		"of the reference":   {ofReference, "password", true, false},
		"of OpenPAI":         {old, "openpai-secret", true, true},
		"another of OpenPAI": {old, "openpai-secre", false, false},
		"of fewer rounds":    {"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "password", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.True(t, password.Known(test.hash))
			ok, rehash, err := password.Verify(t.Context(), test.hash, secret.String(test.try))
			require.NoError(t, err)
			assert.Equal(t, test.ok, ok)
			assert.Equal(t, test.rehash, rehash)
		})
	}
}

func TestAHashThatCostsTooMuchOrCannotBeReadIsRefused(t *testing.T) {
	for _, hash := range []string{
		"", "$", "plain", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=1000000,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$", "$argon2id$v=19$m=19456,t=2,p=1$$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$pbkdf2-sha512$i=1,l=64$6384e2b2184bcbf58eccf10ca7a6563c$" + ofPython, "$pbkdf2-sha512$i=10000,l=64$6384e2b2184bcbf58eccf10ca7a6563c$00",
	} {
		assert.False(t, password.Known(hash), hash)
		ok, _, err := password.Verify(t.Context(), hash, "password")
		assert.False(t, ok, hash)
		require.Error(t, err, hash)
		if hash != "" && hash != "$" {
			assert.NotContains(t, err.Error(), hash)
		}
	}
	_, err := password.OpenPAI("alice", "xyz")
	assert.Error(t, err)
}

func TestFourPasswordsAreCheckedAtATime(t *testing.T) {
	hash := password.Hash("correct horse")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 8 { // all do their work, in two turns
		wg.Go(func() {
			ok, _, err := password.Verify(ctx, hash, "correct horse")
			assert.NoError(t, err)
			assert.True(t, ok)
		})
	}
	wg.Wait()
	cancel()
	release := password.Fill()
	defer release()
	_, _, err := password.Verify(ctx, hash, "correct horse")
	assert.ErrorIs(t, err, context.Canceled, "who has left doesn't wait")
	assert.ErrorIs(t, password.Dummy(ctx, "x"), context.Canceled)
}

func TestAPasswordThatFindsNoPlaceInFiveSecondsIsRefused(t *testing.T) {
	tier.More(t, "it waits five seconds")
	release := password.Fill()
	defer release()
	begin := time.Now()
	assert.ErrorIs(t, password.Dummy(t.Context(), "x"), password.ErrBusy)
	assert.Greater(t, time.Since(begin), 4*time.Second)
}

func TestWeakPasswordsAreRefused(t *testing.T) {
	for p, why := range map[string]string{
		"":                            "too short",
		"x7-Kq!":                      "too short",
		"Zürich-9":                    "too short",
		"1234567890":                  "easy to guess",
		"password123":                 "easy to guess",
		"qwertyuiop":                  "easy to guess",
		"aaaaaaaaaaaaaaaaaaaaaaaa":    "easy to guess",
		"Catherine2024":               "",
		"catherine.miller":            "easy to guess",
		"line\nline-and-more":         "end of line",
		"\xff\xfe" + "0123456789abcd": "can't be typed",
		strings.Repeat("long ", 300):  "too long",
		"correct horse battery":       "",
		"Grüße aus der Eifel":         "",
	} {
		err := password.Check(secret.String(p), "catherine.miller")
		if why == "" {
			assert.NoError(t, err, p)
			continue
		}
		assert.ErrorContains(t, err, why, "%q", p)
	}
	assert.NoError(t, password.Check(secret.String("correct horse battery "+strings.Repeat("ab ", 300)), "x"), "a long one is judged by its beginning")
}

func TestAMadePasswordIsStrong(t *testing.T) {
	one, two := password.New(), password.New()
	assert.NotEqual(t, one.Reveal(), two.Reveal())
	assert.Regexp(t, `^([a-z2-7]{5}-){3}[a-z2-7]{5}$`, one.Reveal())
	assert.NoError(t, password.Check(one, "ann"))
}

func FuzzVerify(f *testing.F) {
	f.Add(ofReference)
	f.Add("$pbkdf2-sha512$i=10000,l=64$6384e2b2184bcbf58eccf10ca7a6563c$" + ofPython)
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$$")
	f.Fuzz(func(t *testing.T, hash string) {
		if !password.Known(hash) {
			ok, _, err := password.Verify(t.Context(), hash, "x")
			if ok || err == nil {
				t.Fatalf("%q can't be read, and lets people in", hash)
			}
		}
	})
}

func FuzzCheck(f *testing.F) {
	for _, p := range []string{"correct horse battery", "2024-01-01 12.12.2024", "aaaaAAAA1111", "\u0130\u0131 stra\u00dfe", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "p@ssw0rd|p4$$word"} {
		f.Add(p, "ann")
	}
	f.Fuzz(func(t *testing.T, p, name string) {
		if password.Check(secret.String(p), name) == nil && len([]rune(p)) < password.MinLength {
			t.Fatalf("%q is too short", p)
		}
	})
}
