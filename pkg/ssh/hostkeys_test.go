package ssh_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/test/tier"
)

func rsaKey(t *testing.T) cssh.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	s, err := cssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return s
}

func TestAnUnknownHostIsRefusedWithItsFingerprint(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{Name: "node1"})
	for _, policy := range []ssh.HostKeyPolicy{ssh.HostKeyStrict, ssh.HostKeyAsk} {
		o := sshtest.Options(t)
		o.HostKeys = policy
		_, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
		require.ErrorIs(t, err, ssh.ErrHostKey)
		assert.ErrorContains(t, err, s.Fingerprint())
		assert.Contains(t, hint.Of(err), "--accept-new-host-keys")
		assert.Contains(t, hint.Of(err), "ssh-keyscan -p ")
		text, err := os.ReadFile(o.KnownHosts)
		require.NoError(t, err)
		assert.Empty(t, string(text))
	}
}

func TestAcceptedHostsAreRemembered(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{})
	o := sshtest.Options(t)
	o.HostKeys = ssh.HostKeyAcceptNew
	o.KnownHosts = filepath.Join(t.TempDir(), "new", "known_hosts")
	_, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	text, err := os.ReadFile(o.KnownHosts)
	require.NoError(t, err)
	assert.Equal(t, s.KnownHosts(), string(text))
	assert.True(t, strings.HasPrefix(string(text), "[127.0.0.1]:"), "a port other than 22 is part of the name")
	info, err := os.Stat(o.KnownHosts)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	o.HostKeys = ssh.HostKeyStrict
	_, err = sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
}

func TestManyHostsAreAcceptedAtOnce(t *testing.T) {
	o := sshtest.Options(t)
	o.HostKeys = ssh.HostKeyAcceptNew
	require.NoError(t, os.WriteFile(o.KnownHosts, []byte("# no newline at the end"), 0o600))
	c := sshtest.NewClient(t, o)
	want := map[string]bool{"# no newline at the end": true}
	var group sync.WaitGroup
	for range 50 {
		s := sshtest.NewServer(t, sshtest.Config{})
		want[strings.TrimSpace(s.KnownHosts())] = true
		group.Go(func() {
			_, err := c.Dial(t.Context(), s.Target())
			assert.NoError(t, err)
		})
	}
	group.Wait()
	text, err := os.ReadFile(o.KnownHosts)
	require.NoError(t, err)
	got := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		got[line] = true
	}
	assert.Equal(t, want, got)
}

func TestAPersonIsAskedOncePerHost(t *testing.T) {
	yes := sshtest.NewServer(t, sshtest.Config{Name: "yes"})
	no := sshtest.NewServer(t, sshtest.Config{Name: "no"})
	o := sshtest.Options(t)
	o.HostKeys = ssh.HostKeyAsk
	asked := map[string]string{} // Confirm is never called concurrently
	o.Confirm = func(host, fingerprint string) (bool, error) {
		asked[host] = fingerprint
		return host == "yes", nil
	}
	c := sshtest.NewClient(t, o)
	_, err := c.Dial(t.Context(), yes.Target())
	require.NoError(t, err)
	_, err = c.Dial(t.Context(), no.Target())
	require.ErrorIs(t, err, ssh.ErrHostKey)
	assert.Equal(t, map[string]string{"yes": "ssh-ed25519 " + yes.Fingerprint(), "no": "ssh-ed25519 " + no.Fingerprint()}, asked)
}

func TestTheTimeToThinkCountsAgainstNoLimit(t *testing.T) {
	tier.More(t, "it waits six seconds")
	t.Parallel()
	s := sshtest.NewServer(t, sshtest.Config{})
	o := sshtest.Options(t)
	o.HostKeys = ssh.HostKeyAsk
	o.DialTimeout = 5 * time.Second
	o.Confirm = func(string, string) (bool, error) {
		<-after(t, 6*time.Second)
		return true, nil
	}
	_, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
}

func TestAChangedKeyIsRefusedUnderEveryPolicy(t *testing.T) {
	for _, policy := range []ssh.HostKeyPolicy{ssh.HostKeyStrict, ssh.HostKeyAsk, ssh.HostKeyAcceptNew} {
		s := sshtest.NewServer(t, sshtest.Config{Name: "node1"})
		o := sshtest.Options(t, s)
		o.HostKeys = policy
		o.Confirm = func(string, string) (bool, error) { return true, nil }
		other := sshtest.NewKey(t)
		line := "# a comment\n" + knownhosts.Line([]string{s.Addr()}, other.PublicKey()) + "\n"
		require.NoError(t, os.WriteFile(o.KnownHosts, []byte(line), 0o600))
		_, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
		require.ErrorIs(t, err, ssh.ErrHostKey)
		assert.ErrorContains(t, err, o.KnownHosts+":2")
		assert.ErrorContains(t, err, s.Fingerprint())
		assert.Contains(t, hint.Of(err), "ssh-keygen -R '["+strings.ReplaceAll(s.Addr(), ":", "]:")+"' -f "+o.KnownHosts)
	}
}

func TestTheKnownKeysTypeIsAskedFor(t *testing.T) {
	ed, rs := sshtest.NewKey(t), rsaKey(t)
	for _, known := range []cssh.Signer{ed, rs} {
		s := sshtest.NewServer(t, sshtest.Config{HostKeys: []cssh.Signer{ed, rs}})
		o := sshtest.Options(t)
		require.NoError(t, os.WriteFile(o.KnownHosts, []byte(knownhosts.Line([]string{s.Addr()}, known.PublicKey())+"\n"), 0o600))
		_, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
		require.NoError(t, err, known.PublicKey().Type())
	}
	s := sshtest.NewServer(t, sshtest.Config{HostKeys: []cssh.Signer{rs}})
	o := sshtest.Options(t)
	require.NoError(t, os.WriteFile(o.KnownHosts, []byte(knownhosts.Line([]string{s.Addr()}, ed.PublicKey())+"\n"), 0o600))
	_, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.ErrorIs(t, err, ssh.ErrHostKey, "a host that has lost the known key's type has changed")
}

func TestABadLineInKnownHostsLocksNobodyOut(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{})
	o := sshtest.Options(t)
	text := "what is this\nhost future-key-type AAAA\n|1|broken ssh-ed25519 AAAA\n" + s.KnownHosts()
	require.NoError(t, os.WriteFile(o.KnownHosts, []byte(text), 0o600))
	_, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
}

func TestARevokedKeyIsRefused(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{})
	o := sshtest.Options(t, s)
	text := s.KnownHosts() + "@revoked * " + strings.SplitN(s.KnownHosts(), " ", 2)[1]
	require.NoError(t, os.WriteFile(o.KnownHosts, []byte(text), 0o600))
	_, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.ErrorIs(t, err, ssh.ErrHostKey)
	assert.ErrorContains(t, err, "revoked in "+o.KnownHosts+":2")
}

func TestAHostThatIsAcceptedInARunMayNotChangeItsKeyInTheSameRun(t *testing.T) {
	first, impostor := sshtest.NewServer(t, sshtest.Config{}), sshtest.NewServer(t, sshtest.Config{})
	for _, policy := range []ssh.HostKeyPolicy{ssh.HostKeyAsk, ssh.HostKeyAcceptNew} {
		answers := first.Addr()
		o := sshtest.Options(t)
		o.HostKeys = policy
		o.Confirm = func(string, string) (bool, error) { return true, nil }
		o.NetDial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, answers)
		}
		c := sshtest.NewClient(t, o)
		h, err := c.Dial(t.Context(), first.Target())
		require.NoError(t, err)
		require.NoError(t, h.Close())
		answers = impostor.Addr()
		_, err = c.Dial(t.Context(), first.Target())
		require.ErrorIs(t, err, ssh.ErrHostKey)
		assert.ErrorContains(t, err, "it has changed")
		assert.ErrorContains(t, err, impostor.Fingerprint())
	}
}
