package sshd

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"
)

func newKey(t testing.TB, passphrase string) (string, xssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := xssh.MarshalPrivateKey(key, "job")
	if passphrase != "" {
		block, err = xssh.MarshalPrivateKeyWithPassphrase(key, "job", []byte(passphrase))
	}
	require.NoError(t, err)
	signer, err := xssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(block)), signer
}

func TestTheHostKeyFollowsFromTheJobsAndIsAnother(t *testing.T) {
	job, signer := newKey(t, "")
	first, err := HostKey(job)
	require.NoError(t, err)
	again, err := HostKey(job)
	require.NoError(t, err)
	assert.Equal(t, public(t, first), public(t, again), "every task knows those of all")
	assert.NotEqual(t, AuthorizedKey(signer), public(t, first), "what a server signs logs nobody in")
	other, _ := newKey(t, "")
	another, err := HostKey(other)
	require.NoError(t, err)
	assert.NotEqual(t, public(t, first), public(t, another))
}

func TestWithoutAJobsKeyTheHostKeyIsDrawn(t *testing.T) {
	one, err := HostKey("")
	require.NoError(t, err)
	two, err := HostKey("")
	require.NoError(t, err)
	assert.NotEqual(t, public(t, one), public(t, two))
}

func public(t *testing.T, key string) string {
	t.Helper()
	s, err := ParseKey(key)
	require.NoError(t, err)
	return AuthorizedKey(s)
}

func TestAPrivateKeyThatCannotBeUsedIsNotShown(t *testing.T) {
	locked, _ := newKey(t, "secret")
	good, _ := newKey(t, "")
	for name, c := range map[string]struct{ key, want string }{
		"a passphrase":   {locked, "has a passphrase"},
		"no PEM":         {"s3cret", "isn't a PEM block"},
		"a PEM of other": {"-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----\n", "isn't a PEM block"},
		"a cut one":      {good[:len(good)/2], "isn't a PEM block"},
		"nothing":        {"", "isn't a PEM block"},
	} {
		_, err := ParseKey(c.key)
		require.ErrorContains(t, err, c.want, name)
		for _, secret := range []string{"s3cret", "czNjcmV0", strings.Split(good, "\n")[1]} {
			assert.NotContains(t, err.Error(), secret, name)
		}
	}
	_, err := HostKey("no PEM")
	require.ErrorContains(t, err, "PEM block")
}

func TestAuthorizedKeysAreReadLineByLine(t *testing.T) {
	_, a := newKey(t, "")
	_, b := newKey(t, "")
	lineA, lineB := strings.TrimSpace(AuthorizedKey(a)), strings.TrimSpace(AuthorizedKey(b))
	for name, c := range map[string]struct {
		lines []string
		keys  int
		want  string
	}{
		"none":                            {nil, 0, ""},
		"one with a comment":              {[]string{lineA + " alice@laptop"}, 1, ""},
		"two in one text, as a job file":  {[]string{lineA + "\n" + lineB}, 2, ""},
		"blank lines, comments, Windows":  {[]string{"# mine\r\n\r\n  " + lineA + "\r\n"}, 1, ""},
		"options":                         {[]string{`command="ls" ` + lineA}, 0, "has options"},
		"a private key by mistake":        {[]string{"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA"}, 0, "is not a public key"},
		"a second one that can't be read": {[]string{lineA, "ssh-ed25519 AAAA"}, 0, "is not a public key"},
	} {
		keys, err := ParseAuthorized(c.lines)
		if c.want != "" {
			require.ErrorContains(t, err, c.want, name)
			assert.NotContains(t, err.Error(), "b3BlbnNzaC1rZXk", name)
			continue
		}
		require.NoError(t, err, name)
		assert.Len(t, keys, c.keys, name)
	}
}

func FuzzParseAuthorized(f *testing.F) {
	_, a := newKey(f, "")
	f.Add(AuthorizedKey(a))
	f.Add("# x\n\nssh-rsa AAAA me\n")
	f.Add(`command="x\"y",no-pty ` + AuthorizedKey(a))
	f.Add("ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTY=")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseAuthorized([]string{text})
		if err != nil {
			return
		}
		for _, k := range keys {
			again, err := ParseAuthorized([]string{string(xssh.MarshalAuthorizedKey(k))})
			require.NoError(t, err)
			require.Len(t, again, 1)
			assert.Equal(t, k.Marshal(), again[0].Marshal())
		}
	})
}

func FuzzParseKey(f *testing.F) {
	good, _ := newKey(f, "")
	f.Add(good)
	f.Add("-----BEGIN RSA PRIVATE KEY-----\nMAA=\n-----END RSA PRIVATE KEY-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseKey(text); err != nil {
			return
		}
		host, err := HostKey(text)
		require.NoError(t, err, "what logs in makes a host key")
		_, err = ParseKey(host)
		require.NoError(t, err)
	})
}
