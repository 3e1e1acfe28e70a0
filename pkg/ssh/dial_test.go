package ssh_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/test/tier"
)

func after(t *testing.T, d time.Duration) <-chan time.Time {
	t.Helper()
	timer := time.NewTimer(d)
	t.Cleanup(func() { timer.Stop() })
	return timer.C
}

func TestAHostThatCannotBeReachedIsNamedWithARemedy(t *testing.T) {
	t.Parallel()
	hanging := sshtest.NewServer(t, sshtest.Config{Fault: sshtest.Fault{HangBanner: true}})
	dropping := sshtest.NewServer(t, sshtest.Config{Fault: sshtest.Fault{DropDials: 1000}})
	tests := map[string]struct {
		target  ssh.Target
		timeout time.Duration
		remedy  string
	}{
		// Only root can listen on this port, so no other program listens on it by chance.
		"nothing listens":        {ssh.Target{Name: "node1", Address: "127.0.0.1", Port: 1}, time.Minute, "no SSH server listens"},
		"it says nothing":        {hanging.Target(), time.Second, "no SSH server answers"},
		"it hangs up every time": {dropping.Target(), time.Minute, "MaxStartups"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := sshtest.Options(t, hanging, dropping)
			o.DialTimeout = test.timeout
			test.target.Name = "node1"
			_, err := sshtest.NewClient(t, o).Dial(t.Context(), test.target)
			require.ErrorIs(t, err, ssh.ErrUnreachable)
			assert.ErrorContains(t, err, "reach node1 (127.0.0.1:")
			assert.Contains(t, hint.Of(err), test.remedy)
		})
	}
}

func TestABusyServerIsTriedAgain(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{Fault: sshtest.Fault{DropDials: 3}})
	_, err := sshtest.Dialer(t, s).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	assert.Equal(t, 4, s.Dials())
}

func TestDialingEndsWithItsContext(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{Fault: sshtest.Fault{HangBanner: true}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := sshtest.Dialer(t, s).Dial(ctx, s.Target())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(start), 30*time.Second, "sooner than the limit of a dial")
}

func TestSomebodyElsesCancellationIsNotOurs(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{Handler: sshtest.Shell{Root: t.TempDir()}})
	o := sshtest.Options(t, s)
	first := make(chan struct{})
	var calls atomic.Int32
	o.NetDial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if calls.Add(1) == 1 {
			close(first)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	c := sshtest.NewClient(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Dial(ctx, s.Target())
		ended <- err
	}()
	<-first
	second := make(chan error, 1)
	go func() {
		_, err := c.Dial(t.Context(), s.Target())
		second <- err
	}()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, <-second)
}

func TestASilentConnectionIsDeclaredLost(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{Name: "node1", Handler: sshtest.Shell{Root: t.TempDir()}, Fault: sshtest.Fault{Silent: true}})
	o := sshtest.Options(t, s)
	o.KeepAlive = 20 * time.Millisecond
	counter := &ssh.Counter{}
	o.Tracer = counter
	h, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	_, err = h.Run(t.Context(), ssh.Script{Name: "slow", Body: "sleep 600"})
	require.ErrorIs(t, err, ssh.ErrClosed)
	assert.ErrorContains(t, err, "no answer for 60ms")
	s.Wait()
}

func TestAnAnsweringConnectionIsKept(t *testing.T) {
	tier.More(t, "it waits six seconds")
	t.Parallel()
	s := sshtest.NewServer(t, sshtest.Config{Handler: sshtest.Shell{Root: t.TempDir()}})
	o := sshtest.Options(t, s)
	o.KeepAlive = time.Second // a busy machine may respond late
	h, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	_, err = h.Run(t.Context(), ssh.Script{Name: "slow", Body: "sleep 6"})
	require.NoError(t, err)
}

// jump returns a server in the form of Target.JumpHosts.
func jump(s *sshtest.Server, user string) string { return user + "@" + s.Addr() }

func TestHostsBehindJumpHostsShareTheConnectionToThem(t *testing.T) {
	outer := sshtest.NewServer(t, sshtest.Config{User: "door", Password: "pw"})
	inner := sshtest.NewServer(t, sshtest.Config{User: "gate", Password: "pw"})
	o := sshtest.Options(t, outer, inner)
	o.HostKeys = ssh.HostKeyAcceptNew
	c := sshtest.NewClient(t, o)
	var group sync.WaitGroup
	hosts := make([]ssh.Host, 30)
	for i := range hosts {
		s := sshtest.NewServer(t, sshtest.Config{Name: fmt.Sprint("node", i), Password: "pw", Handler: sshtest.Shell{Root: t.TempDir()}})
		target := s.Target()
		target.JumpHosts = jump(outer, "door") + "," + jump(inner, "gate")
		group.Go(func() {
			h, err := c.Dial(t.Context(), target)
			if assert.NoError(t, err) {
				r, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: "echo $0"})
				assert.NoError(t, err)
				assert.Equal(t, "sh\n", strings.TrimPrefix(string(r.Stdout), "/bin/"))
				hosts[i] = h
			}
		})
	}
	group.Wait()
	assert.Equal(t, 1, outer.Dials())
	assert.Equal(t, 1, inner.Dials())
	text, err := os.ReadFile(o.KnownHosts)
	require.NoError(t, err)
	assert.Equal(t, 32, strings.Count(string(text), "\n"), "hosts behind jump hosts are remembered by their own address")
	for _, h := range hosts {
		require.NoError(t, h.Close())
	}
}

func TestAtMostEightDialsGoThroughAJumpHostAtATime(t *testing.T) {
	door := sshtest.NewServer(t, sshtest.Config{})
	busy := sshtest.NewServer(t, sshtest.Config{Fault: sshtest.Fault{HangBanner: true}})
	o := sshtest.Options(t, door, busy)
	c := sshtest.NewClient(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs := make(chan error)
	for i := range 20 {
		target := busy.Target()
		target.JumpHosts = jump(door, "root")
		target.User = fmt.Sprint("user", i) // another connection each
		go func() {
			_, err := c.Dial(ctx, target)
			errs <- err
		}()
	}
	require.Eventually(t, func() bool { return busy.Dials() >= 8 }, time.Minute, time.Millisecond)
	<-after(t, 300*time.Millisecond) // time for a ninth connection to appear
	assert.Equal(t, 8, busy.Dials())
	cancel()
	for range 20 {
		require.ErrorIs(t, <-errs, context.Canceled)
	}
	assert.Equal(t, 1, door.Dials())
}

func TestAJumpHostThatRefusesIsNamed(t *testing.T) {
	door := sshtest.NewServer(t, sshtest.Config{NoForwarding: true})
	s := sshtest.NewServer(t, sshtest.Config{Name: "node1"})
	target := s.Target()
	target.JumpHosts = door.Addr()
	_, err := sshtest.Dialer(t, door, s).Dial(t.Context(), target)
	require.ErrorIs(t, err, ssh.ErrUnreachable)
	assert.ErrorContains(t, err, "reach node1")
	assert.ErrorContains(t, err, "through jump host "+door.Addr())
	assert.Contains(t, hint.Of(err), "AllowTcpForwarding")

	locked := sshtest.NewServer(t, sshtest.Config{Password: "other"})
	target.JumpHosts = locked.Addr()
	_, err = sshtest.Dialer(t, locked, s).Dial(t.Context(), target)
	require.ErrorIs(t, err, ssh.ErrAuth)
	assert.ErrorContains(t, err, "reach node1: log in to jump host "+locked.Addr())
	assert.NotEmpty(t, hint.Of(err))

	target.JumpHosts = "a:b:c@"
	_, err = sshtest.Dialer(t, s).Dial(t.Context(), target)
	require.ErrorContains(t, err, "jump host \"********@\" is not valid")
	target.JumpHosts = "ann:hunter2@gateway"
	_, err = sshtest.Dialer(t, s).Dial(t.Context(), target)
	require.ErrorContains(t, err, "jump host \"********@gateway\" is not valid", "ssh has no passwords in addresses")
}

func TestTheSSHConfigurationIsHonouredAndTheTargetWins(t *testing.T) {
	door := sshtest.NewServer(t, sshtest.Config{User: "door"})
	s := sshtest.NewServer(t, sshtest.Config{User: "pai", Handler: sshtest.Shell{Root: t.TempDir()}})
	_, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	_, doorPort, err := net.SplitHostPort(door.Addr())
	require.NoError(t, err)
	dir := t.TempDir()
	config := fmt.Sprintf(`
Match exec "false"
  User nobody
Host node1 node2
  HostName 127.0.0.1
  Port %s
  User pai
  ProxyJump front
  StrictHostKeyChecking accept-new
  UserKnownHostsFile %s/known/%%h
Host front
  HostName 127.0.0.1
  User door
  Port %s
  StrictHostKeyChecking no
Host *
  User wrong
`, port, dir, doorPort)
	require.NoError(t, os.WriteFile(dir+"/config", []byte(config), 0o600))
	o := sshtest.Options(t)
	o.HostKeys = ssh.HostKeyAsk
	o.ConfigFile = dir + "/config"
	var warned []string
	o.Warn = func(text string) { warned = append(warned, text) }
	c := sshtest.NewClient(t, o)
	h, err := c.Dial(t.Context(), ssh.Target{Address: "node1"})
	require.NoError(t, err)
	assert.Equal(t, "node1", h.Name())
	assert.Equal(t, 1, door.Dials())
	assert.Equal(t, []string{dir + "/config:2: paictl ignores this Match block; write Host, or Match all"}, warned)
	known, err := os.ReadFile(filepath.Join(dir, "known", "127.0.0.1"))
	require.NoError(t, err)
	assert.Equal(t, s.KnownHosts(), string(known))

	_, err = c.Dial(t.Context(), ssh.Target{Address: "node2", User: "other"})
	require.ErrorContains(t, err, "as other", "the target's user wins")

	require.NoError(t, os.WriteFile(dir+"/bad", []byte("Host \"\n  Port\n"), 0o600))
	o.ConfigFile = dir + "/bad"
	_, err = sshtest.NewClient(t, o).Dial(t.Context(), ssh.Target{Address: "127.0.0.1"})
	require.Error(t, err)
}

func TestAThousandHostsAnswer(t *testing.T) {
	const n = 1000
	servers := make([]*sshtest.Server, n)
	key := sshtest.NewKey(t)
	for i := range servers {
		servers[i] = sshtest.NewServer(t, sshtest.Config{
			Name: fmt.Sprint("node", i), Password: "pw", HostKeys: []cssh.Signer{key},
			Handler: sshtest.Scripted(t, sshtest.Step{Match: "^facts$", Stdout: fmt.Sprint("i am ", i)}),
		})
	}
	o := sshtest.Options(t, servers...)
	counter := &ssh.Counter{}
	o.Tracer = counter
	c := sshtest.NewClient(t, o)
	var group sync.WaitGroup
	start := time.Now()
	for i, s := range servers {
		group.Go(func() {
			h, err := c.Dial(t.Context(), s.Target())
			if !assert.NoError(t, err) {
				return
			}
			r, err := h.Run(t.Context(), ssh.Script{Name: "facts", Body: "facts"})
			assert.NoError(t, err)
			assert.Equal(t, fmt.Sprint("i am ", i), string(r.Stdout))
		})
	}
	group.Wait()
	t.Logf("dialled and asked %d hosts in %s", n, time.Since(start))
	for name, got := range counter.Hosts() {
		assert.Equal(t, ssh.Count{Dials: 1, RoundTrips: 1, BytesOut: got.BytesOut, BytesIn: got.BytesIn}, got, name)
	}
	assert.Len(t, counter.Hosts(), n)
}

func TestAFakeHostRefusesWhatItWasNotToldToExpect(t *testing.T) {
	fake := &recorder{TB: t}
	s := sshtest.NewServer(t, sshtest.Config{Handler: sshtest.Scripted(fake, sshtest.Step{Match: "^known$", Times: 1})})
	h, err := sshtest.Dialer(t, s).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	for _, test := range []struct {
		body string
		exit int
	}{{"known", 0}, {"known", 126}, {"unknown", 126}} {
		r, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: test.body})
		require.NoError(t, err)
		assert.Equal(t, test.exit, r.ExitCode)
	}
	assert.EqualValues(t, 2, fake.errors.Load())
}

// recorder counts errors instead of failing the test.
type recorder struct {
	testing.TB
	errors atomic.Int32
}

func (r *recorder) Errorf(string, ...any) { r.errors.Add(1) }

func TestAClosedClientDialsNoMore(t *testing.T) {
	s := sshtest.NewServer(t, sshtest.Config{})
	c := ssh.NewClient(sshtest.Options(t, s))
	h, err := c.Dial(t.Context(), s.Target())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = h.Run(t.Context(), ssh.Script{Name: "test", Body: "true"})
	require.ErrorIs(t, err, ssh.ErrClosed)
	_, err = c.Dial(t.Context(), s.Target())
	require.ErrorIs(t, err, ssh.ErrClosed)
	require.NoError(t, h.Close())
}
