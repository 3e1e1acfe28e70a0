package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/test/runnable"
	"github.com/openpai/paictl/test/tier"
)

// dial starts a server. dial returns a connected host, the server, and the client's counter.
func dial(t *testing.T, c sshtest.Config, edit ...func(*ssh.Options)) (ssh.Host, *sshtest.Server, *ssh.Counter) {
	t.Helper()
	s := sshtest.NewServer(t, c)
	o := sshtest.Options(t, s)
	counter := &ssh.Counter{}
	o.Tracer = counter
	for _, f := range edit {
		f(&o)
	}
	h, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	return h, s, counter
}

func shell(t *testing.T) sshtest.Config {
	t.Helper()
	return sshtest.Config{Name: "node1", Handler: sshtest.Shell{Root: t.TempDir()}}
}

func TestRunAnswersWhatTheScriptPrints(t *testing.T) {
	tests := map[string]struct {
		body           string
		stdout, stderr string
		exit           int
	}{
		"both streams":                     {"echo out; echo err >&2", "out\n", "err\n", 0},
		"an exit code is not an error":     {"exit 7", "", "", 7},
		"set -e works":                     {"set -e; false; echo no", "", "", 1},
		"a here-document":                  {"cat <<'X'\n'it' \"is\"\nX\necho end", "'it' \"is\"\nend\n", "", 0},
		"standard input is empty":          {"cat; echo end", "end\n", "", 0},
		"a reader cannot eat the script":   {"read -r x || echo none\necho after", "none\nafter\n", "", 0},
		"messages are in English":          {"echo $LC_ALL", "C\n", "", 0},
		"a trap of the script's own works": {"trap 'echo bye' EXIT; echo hi", "hi\nbye\n", "", 0},
		"a command that a signal ends":     {"exec 2>/dev/null; sh -c 'kill -9 $$'", "", "", 137},
		"the last line needs no newline":   {"echo a", "a\n", "", 0},
	}
	for _, sh := range []string{"sh", "bash --posix", "busybox sh"} {
		t.Run(sh, func(t *testing.T) {
			runnable.Need(t, strings.Fields(sh)[0])
			h, _, _ := dial(t, sshtest.Config{Handler: sshtest.Shell{Root: t.TempDir(), Sh: sh}})
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					r, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: test.body})
					require.NoError(t, err)
					assert.Equal(t, test.stdout, string(r.Stdout))
					assert.Equal(t, test.stderr, string(r.Stderr))
					assert.Equal(t, test.exit, r.ExitCode)
				})
			}
			sess, err := h.Hold(t.Context(), ssh.Script{Name: "lock", Body: "echo locked; cat >/dev/null; exit 3"})
			require.NoError(t, err)
			assert.Equal(t, "locked", sess.FirstLine())
			require.NoError(t, sess.Close())
		})
	}
}

func TestRunQuotesEveryByteOfTheScript(t *testing.T) {
	h, s, _ := dial(t, shell(t))
	text := "a'b''c\"d\\e$f`g!h\ti*?[~#;&|<>(){}é"
	body := "cat <<'END'\n" + text + "\nEND\n"
	r, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: body})
	require.NoError(t, err)
	assert.Equal(t, text+"\n", string(r.Stdout))
	assert.Equal(t, body, s.Execs()[0].Body)
}

func TestRunReportsASyntaxErrorAtOnce(t *testing.T) {
	h, _, _ := dial(t, shell(t))
	for _, body := range []string{"if true; then", "echo 'open", "echo )", "}"} {
		r, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: body, Timeout: time.Minute})
		require.NoError(t, err, body)
		assert.NotZero(t, r.ExitCode, body)
	}
}

func TestRunIsOneRoundTrip(t *testing.T) {
	h, _, counter := dial(t, shell(t))
	for range 3 {
		_, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: "echo 12345"})
		require.NoError(t, err)
	}
	got := counter.Host("node1")
	assert.Equal(t, 1, got.Dials)
	assert.Equal(t, 3, got.RoundTrips)
	assert.EqualValues(t, 18, got.BytesIn)
}

func TestSudoGetsThePasswordOnlyWhenItAsks(t *testing.T) {
	c := shell(t)
	c.User, c.Password = "pai", "s3cret"
	c.Sudo = &sshtest.Sudo{Password: "s3cret"}
	h, s, counter := dial(t, c)
	r, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: "cat; echo root"})
	require.NoError(t, err)
	assert.Equal(t, "root\n", string(r.Stdout))
	assert.Empty(t, string(r.Stderr), "sudo's words are not the script's")
	assert.Equal(t, []string{"s3cret"}, s.Passwords())
	assert.Equal(t, 1, counter.Host("node1").RoundTrips)

	_, err = h.Run(t.Context(), ssh.Script{Name: "test", Body: "echo me", User: true})
	require.NoError(t, err)
	records := s.Execs()
	assert.True(t, records[0].Root)
	assert.False(t, records[1].Root)
	assert.Equal(t, []string{"s3cret"}, s.Passwords(), "no sudo for the login user's scripts")
}

func TestSudoWithoutPasswordNeverSeesOne(t *testing.T) {
	c := shell(t)
	c.User, c.Password = "pai", "s3cret"
	h, s, _ := dial(t, c)
	r, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: "cat"})
	require.NoError(t, err)
	assert.Empty(t, string(r.Stdout))
	assert.Empty(t, s.Passwords())
}

func TestAPersonIsAskedForTheSudoPassword(t *testing.T) {
	c := shell(t)
	c.User, c.Sudo = "pai", &sshtest.Sudo{Password: "right"}
	s := sshtest.NewServer(t, c)
	o := sshtest.Options(t, s)
	answers := []secret.String{"wrong", "right"}
	var asked []string
	o.Prompt = func(question string) (secret.String, error) {
		asked = append(asked, question)
		return answers[len(asked)-1], nil
	}
	target := s.Target()
	target.SudoPassword = ""
	h, err := sshtest.NewClient(t, o).Dial(t.Context(), target)
	require.NoError(t, err)
	_, err = h.Run(t.Context(), ssh.Script{Name: "test", Body: "true"})
	require.ErrorIs(t, err, ssh.ErrSudo)
	for range 3 {
		_, err = h.Run(t.Context(), ssh.Script{Name: "test", Body: "true"})
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"sudo password of pai", "sudo password of pai"}, asked)
}

func TestSudoRefusalsHaveACauseAndARemedy(t *testing.T) {
	tests := map[string]struct {
		sudo   sshtest.Sudo
		give   string
		cause  string
		remedy string
	}{
		"a wrong password":       {sshtest.Sudo{Password: "right"}, "wrong", "the password was refused", "check the password"},
		"no password":            {sshtest.Sudo{Password: "right"}, "", "none was given", "NOPASSWD"},
		"not in sudoers":         {sshtest.Sudo{Deny: "pai is not in the sudoers file."}, "x", "may not become root", "/etc/sudoers.d"},
		"a terminal is required": {sshtest.Sudo{Deny: "sudo: sorry, you must have a tty to run sudo"}, "x", "terminal", "requiretty"},
		"a shell that wants one": {sshtest.Sudo{Deny: "mesg: ttyname failed: Inappropriate ioctl for device\nsudo: 3 incorrect password attempts"}, "x", "the password was refused", "check the password"},
		"sudo is missing":        {sshtest.Sudo{Deny: "env: 'sudo': No such file or directory", ExitCode: 127}, "x", "not installed", "install sudo"},
		"sudo-rs, no rights":     {sshtest.Sudo{Deny: "sudo: I'm sorry pai. I'm afraid I can't do that"}, "x", "may not become root", "printf '%s\\n' 'pai ALL=(ALL) ALL' > /etc/sudoers.d/pai"},
		"sudo-rs, wrong":         {sshtest.Sudo{Deny: "sudo: Maximum 3 incorrect authentication attempts"}, "x", "the password was refused", "check the password"},
		"doas":                   {sshtest.Sudo{Deny: "doas: Operation not permitted"}, "x", "is doas: doas: Operation not permitted", "install sudo"},
		"an expired password":    {sshtest.Sudo{Deny: "Password change required but no TTY available."}, "x", "has expired", "change the password there"},
		"a shell that refuses":   {sshtest.Sudo{Shell: "This account is currently not available."}, "x", "the login shell refuses commands: This account is currently not available.", "usermod -s /bin/sh 'pai'"},
		"a shell without words":  {sshtest.Sudo{Shell: " "}, "x", "the login shell ended with exit code 1 and printed nothing", "usermod"},
		"another language":       {sshtest.Sudo{Deny: "sudo: pai ist nicht in der sudoers-Datei."}, "x", "ist nicht in der sudoers-Datei", "> /etc/sudoers.d/pai"},
		"something else":         {sshtest.Sudo{Deny: "sudo: PAM account management error", ExitCode: 1}, "x", "PAM account management error", "sudo true"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := shell(t)
			c.User, c.Sudo = "pai", &test.sudo
			s := sshtest.NewServer(t, c)
			target := s.Target()
			target.SudoPassword = ""
			target.Password = ""
			if test.give != "" {
				target.Password = "unused"
				target.SudoPassword = secret.String(test.give)
			}
			h, err := sshtest.Dialer(t, s).Dial(t.Context(), target)
			require.NoError(t, err)
			_, err = h.Run(t.Context(), ssh.Script{Name: "base/apply", Body: "echo no"})
			require.ErrorIs(t, err, ssh.ErrSudo)
			assert.ErrorContains(t, err, test.cause)
			assert.ErrorContains(t, err, "base/apply on node1")
			assert.Contains(t, hint.Of(err), test.remedy)
			assert.LessOrEqual(t, len(s.Passwords()), 1, "one attempt, not three")
		})
	}
}

// Without the escape, sudoers would contain another name.
func TestTheRemedyForATerminalEscapesTheUser(t *testing.T) {
	c := shell(t)
	c.User, c.Sudo = `DOMAIN\user`, &sshtest.Sudo{Deny: "sudo: sorry, you must have a tty to run sudo"}
	s := sshtest.NewServer(t, c)
	h, err := sshtest.Dialer(t, s).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	_, err = h.Run(t.Context(), ssh.Script{Name: "base/apply", Body: "echo no"})
	assert.Equal(t, `add this line to sudoers: Defaults:DOMAIN\\user !requiretty`, hint.Of(err))
}

func TestCancellationEndsTheScriptOnTheHost(t *testing.T) {
	root := t.TempDir()
	h, s, _ := dial(t, sshtest.Config{Handler: sshtest.Shell{Root: root}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.Run(ctx, ssh.Script{Name: "slow", Body: `sleep 600 & : >"$PAICTL_ROOT/started"; sleep 600`})
		ended <- err
	}()
	waitFor(t, root+"/started")
	cancel()
	start := time.Now()
	require.ErrorIs(t, <-ended, context.Canceled)
	assert.Less(t, time.Since(start), 30*time.Second)
	s.Wait() // would take ten minutes if the sleeps lived on
	assert.Less(t, time.Since(start), time.Minute)
}

func TestCancellationAlsoEndsAScriptThatIgnoresTheFirstSignal(t *testing.T) {
	tier.More(t, "it waits five seconds")
	t.Parallel()
	root := t.TempDir()
	h, s, _ := dial(t, sshtest.Config{Handler: sshtest.Shell{Root: root}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := h.Run(ctx, ssh.Script{Name: "stubborn", Body: `trap '' TERM; : >"$PAICTL_ROOT/started"; sleep 600`})
		ended <- err
	}()
	waitFor(t, root+"/started")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	start := time.Now()
	s.Wait()
	assert.Less(t, time.Since(start), time.Minute)
}

// waitFor waits until a file exists.
func waitFor(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, time.Minute, time.Millisecond)
}

func TestATimeoutIsNamed(t *testing.T) {
	t.Parallel()
	h, s, _ := dial(t, shell(t))
	r, err := h.Run(t.Context(), ssh.Script{Name: "slow", Body: "echo first; sleep 600", Timeout: 5 * time.Second})
	require.ErrorIs(t, err, ssh.ErrTimeout)
	assert.ErrorContains(t, err, "slow on node1")
	assert.Equal(t, "first\n", string(r.Stdout), "what was printed so far is kept")
	s.Wait()
}

func TestALostConnectionEndsTheScriptOnTheHost(t *testing.T) {
	c := shell(t)
	h, s, _ := dial(t, c)
	s.SetFault(sshtest.Fault{Exec: 1, When: sshtest.MidRun})
	_, err := h.Run(t.Context(), ssh.Script{Name: "slow", Body: "sleep 600"})
	require.ErrorIs(t, err, ssh.ErrClosed)
	s.Wait()
	_, err = h.Run(t.Context(), ssh.Script{Name: "again", Body: "true"})
	require.ErrorIs(t, err, ssh.ErrClosed, "a handle does not reconnect in silence")
}

func TestACutTransferRunsNothing(t *testing.T) {
	for _, when := range []sshtest.When{sshtest.BeforeExec, sshtest.MidTransfer} {
		root := t.TempDir()
		h, s, _ := dial(t, sshtest.Config{Handler: sshtest.Shell{Root: root}})
		s.SetFault(sshtest.Fault{Exec: 1, When: when})
		body := "touch \"$PAICTL_ROOT/done\"\n" + strings.Repeat("# padding\n", 5000)
		_, err := h.Run(t.Context(), ssh.Script{Name: "big", Body: body})
		require.ErrorIs(t, err, ssh.ErrClosed)
		s.Wait()
		assert.NoFileExists(t, root+"/done")
	}
}

func TestTheClientDialsAgainAfterALoss(t *testing.T) {
	s := sshtest.NewServer(t, shell(t))
	c := sshtest.Dialer(t, s)
	first, err := c.Dial(t.Context(), s.Target())
	require.NoError(t, err)
	same, err := c.Dial(t.Context(), s.Target())
	require.NoError(t, err)
	assert.Equal(t, 1, s.Dials(), "one connection per host")
	require.NoError(t, same.Close())
	s.Drop()
	_, err = first.Run(t.Context(), ssh.Script{Name: "test", Body: "true"})
	require.ErrorIs(t, err, ssh.ErrClosed)
	next, err := c.Dial(t.Context(), s.Target())
	require.NoError(t, err)
	_, err = next.Run(t.Context(), ssh.Script{Name: "test", Body: "true"})
	require.NoError(t, err)
	assert.Equal(t, 2, s.Dials())
}

func TestOutputIsLimited(t *testing.T) {
	s := sshtest.NewServer(t, shell(t))
	o := sshtest.Options(t, s)
	o.MaxOutput = 1000
	h, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	_, err = h.Run(t.Context(), ssh.Script{Name: "chatty", Body: "while :; do echo 0123456789; done"})
	require.ErrorContains(t, err, "more than 1000 bytes")
	s.Wait()
}

func TestADryRunSendsNothingThatMutates(t *testing.T) {
	s := sshtest.NewServer(t, shell(t))
	o := sshtest.Options(t, s)
	o.Gate = ssh.DryRunGate{}
	h, err := sshtest.NewClient(t, o).Dial(t.Context(), s.Target())
	require.NoError(t, err)
	mutating := ssh.Script{Name: "apply", Body: "true", Mutates: true}
	_, err = h.Run(t.Context(), mutating)
	require.ErrorIs(t, err, ssh.ErrDryRun)
	_, err = h.Hold(t.Context(), mutating)
	require.ErrorIs(t, err, ssh.ErrDryRun)
	_, err = h.Upload(t.Context(), []ssh.File{file("/etc/x", "x", 0o644)}, nil)
	require.ErrorIs(t, err, ssh.ErrDryRun)
	assert.Empty(t, s.Execs())
	_, err = h.Run(t.Context(), ssh.Script{Name: "detect", Body: "true"})
	require.NoError(t, err)
}

func TestHoldKeepsASessionUntilItIsClosed(t *testing.T) {
	h, s, counter := dial(t, shell(t))
	sess, err := h.Hold(t.Context(), ssh.Script{Name: "lock", Body: "echo locked by me; cat >/dev/null; echo bye >\"$PAICTL_ROOT/bye\""})
	require.NoError(t, err)
	assert.Equal(t, "locked by me", sess.FirstLine())
	select {
	case <-sess.Done():
		t.Fatal("the session has ended")
	default:
	}
	require.NoError(t, sess.Close())
	<-sess.Done()
	s.Wait()
	assert.Equal(t, 1, counter.Host("node1").RoundTrips)
}

func TestHoldEndsWithTheConnection(t *testing.T) {
	h, s, _ := dial(t, shell(t))
	sess, err := h.Hold(t.Context(), ssh.Script{Name: "lock", Body: "echo locked; cat >/dev/null"})
	require.NoError(t, err)
	s.Drop()
	<-sess.Done()
	require.ErrorIs(t, sess.Close(), ssh.ErrClosed)
	s.Wait()
}

func TestAHeldScriptThatHangsEndsWithTheConnection(t *testing.T) {
	tier.More(t, "it waits five seconds")
	t.Parallel()
	h, s, _ := dial(t, shell(t))
	_, err := h.Hold(t.Context(), ssh.Script{Name: "lock", Body: "echo locked; sleep 600"})
	require.NoError(t, err)
	s.Drop()
	start := time.Now()
	s.Wait()
	assert.Less(t, time.Since(start), time.Minute)
}

func TestHoldExplainsAScriptThatSaysNothing(t *testing.T) {
	h, _, _ := dial(t, shell(t))
	_, err := h.Hold(t.Context(), ssh.Script{Name: "lock", Body: "echo sorry >&2; exit 4"})
	require.ErrorContains(t, err, "exit code 4: sorry")
	sess, err := h.Hold(t.Context(), ssh.Script{Name: "lock", Body: "echo busy; exit 5"})
	require.NoError(t, err)
	assert.Equal(t, "busy", sess.FirstLine())
	<-sess.Done()
}

func TestSessionsStayBelowTheServersLimit(t *testing.T) {
	for _, limit := range []int{10, 3, 1} {
		c := shell(t)
		c.MaxSessions = limit
		h, _, _ := dial(t, c)
		errs := make(chan error)
		for range 40 {
			go func() {
				_, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: "true"})
				errs <- err
			}()
		}
		for range 40 {
			assert.NoError(t, <-errs, "MaxSessions %d", limit)
		}
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	h, s, _ := dial(t, shell(t))
	_, err := h.Run(t.Context(), ssh.Script{Name: "bad", Body: "echo \x00"})
	require.ErrorContains(t, err, "NUL")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	for range 20 {
		_, err = h.Run(ctx, ssh.Script{Name: "test", Body: "true"})
		require.ErrorIs(t, err, stop)
		_, err = h.Hold(ctx, ssh.Script{Name: "test", Body: "echo held; cat"})
		require.ErrorIs(t, err, stop)
	}
	s.Wait()
	assert.Empty(t, s.Execs(), "nothing begins that nobody waits for")
}

// limited is a writer that accepts at most `most` bytes, and then fails.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > l.most {
		return 0, errors.New("the disk is full")
	}
	return l.Buffer.Write(b)
}

func TestWhatAScriptPrintsMayGoElsewhereHoweverMuch(t *testing.T) {
	c := shell(t)
	c.User, c.Password = "pai", "s3cret"
	c.Sudo = &sshtest.Sudo{Password: "s3cret"}
	h, _, counter := dial(t, c, func(o *ssh.Options) { o.MaxOutput = 1000 })
	for _, user := range []bool{true, false} {
		var out bytes.Buffer
		r, err := h.Run(t.Context(), ssh.Script{Name: "test", User: user, Stdout: &out, Body: "head -c 300000 /dev/zero; echo lost >&2; exit 3"})
		require.NoError(t, err)
		assert.Equal(t, 300000, out.Len())
		assert.Empty(t, r.Stdout)
		assert.Equal(t, "lost\n", string(r.Stderr))
		assert.Equal(t, 3, r.ExitCode)
	}
	assert.EqualValues(t, 600010, counter.Host("node1").BytesIn)
}

func TestAScriptWhoseOutputCannotBeKeptIsEnded(t *testing.T) {
	h, _, _ := dial(t, shell(t))
	_, err := h.Run(t.Context(), ssh.Script{Name: "test", Stdout: &limited{most: 100000}, Body: "cat /dev/zero", Timeout: time.Minute})
	require.ErrorContains(t, err, "its output can't be stored: the disk is full")
	r, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: "echo again"})
	require.NoError(t, err)
	assert.Equal(t, "again\n", string(r.Stdout))
}
