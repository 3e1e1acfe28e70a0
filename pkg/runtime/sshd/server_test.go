package sshd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/test/tier"
)

const patience = time.Minute

func TestMain(m *testing.M) {
	// With nohup, the shells of sessions would inherit that SIGHUP is ignored.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
	os.Exit(m.Run())
}

// host is a server in this process, with a key for logins.
type host struct {
	address string
	key     string // the job's
	signer  xssh.Signer
	ended   chan error
	stop    context.CancelFunc
}

func serve(t *testing.T, change func(*Config)) *host {
	t.Helper()
	h := &host{ended: make(chan error, 1)}
	h.key, h.signer = newKey(t, "")
	hostKey, err := HostKey(h.key)
	require.NoError(t, err)
	c := &Config{HostKey: hostKey, Authorized: []string{AuthorizedKey(h.signer)}, Environ: os.Environ(), Dir: t.TempDir(), delay: outputDelay}
	if change != nil {
		change(c)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h.address = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	h.stop = cancel
	go func() { h.ended <- Serve(ctx, l, c, t.Logf) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-h.ended)
	})
	return h
}

func (h *host) config(t *testing.T, methods ...xssh.AuthMethod) *xssh.ClientConfig {
	t.Helper()
	c, err := clientConfig(h.key)
	require.NoError(t, err)
	c.Auth = methods
	return c
}

func (h *host) dial(t *testing.T) *xssh.Client {
	t.Helper()
	c, err := xssh.Dial("tcp", h.address, h.config(t, xssh.PublicKeys(h.signer)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newSession(t *testing.T, c *xssh.Client) *xssh.Session {
	t.Helper()
	s, err := c.NewSession()
	require.NoError(t, err)
	return s
}

func (h *host) run(t *testing.T, command string) (stdout, stderr string, code int) {
	t.Helper()
	s := newSession(t, h.dial(t))
	var out, errs bytes.Buffer
	s.Stdout, s.Stderr = &out, &errs
	err := s.Run(command)
	var ended *xssh.ExitError
	if err == nil {
		return out.String(), errs.String(), 0
	}
	require.ErrorAs(t, err, &ended)
	return out.String(), errs.String(), ended.ExitStatus()
}

func appears(t *testing.T, name string) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(name); return err == nil }, patience, 10*time.Millisecond)
}

func TestOnlyKeysThatAreAuthorizedLogIn(t *testing.T) {
	_, stranger := newKey(t, "")
	_, mine := newKey(t, "")
	h := serve(t, func(c *Config) { c.Authorized = append(c.Authorized, "# another\n"+AuthorizedKey(mine)) })
	for name, c := range map[string]struct {
		methods []xssh.AuthMethod
		in      bool
	}{
		"the job's":             {[]xssh.AuthMethod{xssh.PublicKeys(h.signer)}, true},
		"a person's":            {[]xssh.AuthMethod{xssh.PublicKeys(mine)}, true},
		"an agent with several": {[]xssh.AuthMethod{xssh.PublicKeys(stranger, mine)}, true},
		"a stranger's":          {[]xssh.AuthMethod{xssh.PublicKeys(stranger)}, false},
		"a password":            {[]xssh.AuthMethod{xssh.Password("")}, false},
		"nothing":               {nil, false},
	} {
		client, err := xssh.Dial("tcp", h.address, h.config(t, c.methods...))
		if !c.in {
			require.Error(t, err, name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, client.Close())
	}
}

func TestWithoutKeysNobodyLogsIn(t *testing.T) {
	h := serve(t, func(c *Config) { c.Authorized = nil })
	_, err := xssh.Dial("tcp", h.address, h.config(t, xssh.PublicKeys(h.signer)))
	require.Error(t, err)
	_, err = xssh.Dial("tcp", h.address, h.config(t))
	require.Error(t, err)
}

func TestACrowdThatDoesNotLogInIsTurnedAway(t *testing.T) {
	h := serve(t, nil)
	in := h.dial(t) // who is in takes no place
	var crowd []net.Conn
	for range maxLogins {
		conn, err := net.Dial("tcp", h.address)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Read(make([]byte, 4)) // the server's greeting: it has its place
		require.NoError(t, err)
		crowd = append(crowd, conn)
	}
	one, err := net.Dial("tcp", h.address)
	require.NoError(t, err)
	defer one.Close()
	require.NoError(t, one.SetDeadline(time.Now().Add(patience)))
	_, err = one.Read(make([]byte, 4))
	require.ErrorIs(t, err, io.EOF)
	out, err := newSession(t, in).Output("echo still here")
	require.NoError(t, err)
	assert.Equal(t, "still here\n", string(out))
	require.NoError(t, crowd[0].Close())
	require.Eventually(t, func() bool {
		c, err := xssh.Dial("tcp", h.address, h.config(t, xssh.PublicKeys(h.signer)))
		return err == nil && c.Close() == nil
	}, patience, 10*time.Millisecond, "a place that is free again is given")
}

func TestCodesAreThoseOfShells(t *testing.T) {
	h := serve(t, nil)
	for command, want := range map[string]int{"true": 0, "exit 7": 7, "kill -9 $$": 137, "kill -TERM $$": 143, "no-such-program": 127} {
		_, _, code := h.run(t, command)
		assert.Equal(t, want, code, command)
	}
}

func TestInputAndBothOutputsComeThroughAsTheyAre(t *testing.T) {
	h := serve(t, nil)
	s := newSession(t, h.dial(t))
	in := bytes.Repeat([]byte("\x00\r\n\xff no line end"), 100_000)
	var out, errs bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = bytes.NewReader(in), &out, &errs
	require.NoError(t, s.Run("tee /dev/stderr"))
	assert.True(t, bytes.Equal(in, out.Bytes()))
	assert.True(t, bytes.Equal(in, errs.Bytes()))
}

func TestAClientThatIsSlowGetsAllThatWasWritten(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		h := serve(t, func(c *Config) { c.delay = time.Nanosecond })
		mark := filepath.Join(t.TempDir(), "written")
		s := newSession(t, h.dial(t))
		out, err := s.StdoutPipe()
		require.NoError(t, err)
		// The output is larger than a client's receive window (2 MiB). The pipe (1 MiB) or the terminal (some KB) holds the
		// rest.
		size := 2<<20 + 900<<10
		if terminal {
			size = 2<<20 + 4<<10
			require.NoError(t, s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}))
		}
		require.NoError(t, s.Start(fmt.Sprintf("head -c %d /dev/zero; touch %s", size, mark)))
		appears(t, mark)
		got, err := io.ReadAll(out)
		require.NoError(t, err)
		assert.Len(t, got, size)
		require.NoError(t, s.Wait())
	}
}

func TestATerminalsOutputIsNotChanged(t *testing.T) {
	h := serve(t, nil)
	s := newSession(t, h.dial(t))
	require.NoError(t, s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}))
	out, err := s.Output(`echo cooked; stty raw; printf 'down\nonly'`)
	require.NoError(t, err)
	assert.Equal(t, "cooked\r\ndown\nonly", string(out), "programs that draw move the cursor down by it")
}

func TestATerminalTakesTheSizesOfItsWindow(t *testing.T) {
	h := serve(t, nil)
	s := newSession(t, h.dial(t))
	require.NoError(t, s.RequestPty("vt220", 33, 77, xssh.TerminalModes{}))
	out, err := s.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start(`stty size; echo $TERM; until [ "$(stty size)" = "50 100" ]; do sleep 0.02; done; echo larger; tty`))
	first := make([]byte, len("33 77\r\nvt220\r\n"))
	_, err = io.ReadFull(out, first)
	require.NoError(t, err)
	assert.Equal(t, "33 77\r\nvt220\r\n", string(first))
	for i := range 40 {
		require.NoError(t, s.WindowChange(10+i, 20+i))
	}
	require.NoError(t, s.WindowChange(50, 100))
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	assert.Contains(t, string(rest), "larger\r\n/dev/pts/")
}

func TestSizesOfAWindowThatNobodyAsksForHoldNothingUp(t *testing.T) {
	h := serve(t, nil)
	c := h.dial(t)
	s := newSession(t, c)
	require.NoError(t, s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}))
	require.NoError(t, s.RequestSubsystem("sftp"))
	for i := range 200 {
		require.NoError(t, s.WindowChange(20+i, 80))
	}
	out, err := newSession(t, c).Output("echo another session")
	require.NoError(t, err)
	assert.Equal(t, "another session\n", string(out))
}

func TestSignalsOfTheClientReachTheProgram(t *testing.T) {
	h := serve(t, nil)
	s := newSession(t, h.dial(t))
	out, err := s.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start("trap 'echo got it; exit 4' USR1; echo up; while :; do sleep 0.02; done"))
	_, err = io.ReadFull(out, make([]byte, 3))
	require.NoError(t, err)
	require.NoError(t, s.Signal("NONSENSE"))
	require.NoError(t, s.Signal(xssh.SIGUSR1))
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	assert.Equal(t, "got it\n", string(rest))
	var ended *xssh.ExitError
	require.ErrorAs(t, s.Wait(), &ended)
	assert.Equal(t, 4, ended.ExitStatus())
}

func TestASessionThatIsClosedHangsUpAndTheOthersGoOn(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		h := serve(t, nil)
		c := h.dial(t)
		dir := t.TempDir()
		s := newSession(t, c)
		if terminal {
			require.NoError(t, s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}))
		}
		// The terminal sends another SIGHUP after the server's SIGHUP. This must not end the program touch.
		require.NoError(t, s.Start("trap 'trap \"\" HUP; touch "+dir+"/hup; exit' HUP; touch "+dir+"/up; while :; do sleep 0.02; done"))
		appears(t, dir+"/up")
		require.NoError(t, s.Close())
		appears(t, dir+"/hup")
		out, err := newSession(t, c).Output("echo on")
		require.NoError(t, err)
		assert.Equal(t, "on\n", string(out))
	}
}

func TestAProgramThatIgnoresTheHangUpGoesOn(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		h := serve(t, func(c *Config) { c.delay = time.Millisecond })
		c := h.dial(t)
		dir := t.TempDir()
		s := newSession(t, c)
		if terminal {
			require.NoError(t, s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}))
		}
		require.NoError(t, s.Start("trap '' HUP; touch "+dir+"/up; until [ -e "+dir+"/go ]; do sleep 0.02; done; touch "+dir+"/done"))
		appears(t, dir+"/up")
		require.NoError(t, c.Close())
		// When the second session ends, the server has noticed that the first client is gone.
		_, _, code := h.run(t, "sleep 1.2")
		require.Zero(t, code)
		require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
		appears(t, dir+"/done")
	}
}

func TestASessionEndsThoughWhatItLeftBehindLivesOn(t *testing.T) {
	h := serve(t, nil)
	for _, terminal := range []bool{false, true} {
		s := newSession(t, h.dial(t))
		if terminal {
			require.NoError(t, s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}))
		}
		began := time.Now()
		out, err := s.Output("trap '' HUP; sleep 60 & echo started")
		require.NoError(t, err)
		assert.Equal(t, "started", strings.TrimSpace(string(out)))
		assert.Less(t, time.Since(began), 30*time.Second)
	}
}

func TestALoginShellReadsWhatIsTyped(t *testing.T) {
	h := serve(t, nil)
	s := newSession(t, h.dial(t))
	require.NoError(t, s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}))
	in, err := s.StdinPipe()
	require.NoError(t, err)
	var out bytes.Buffer
	s.Stdout = &out
	require.NoError(t, s.Shell())
	_, err = io.WriteString(in, "echo $((40+2))\nexit 3\n")
	require.NoError(t, err)
	var ended *xssh.ExitError
	require.ErrorAs(t, s.Wait(), &ended)
	assert.Equal(t, 3, ended.ExitStatus())
	assert.Contains(t, out.String(), "42\r\n")
}

func TestWhatASessionIsTold(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, func(c *Config) { c.Environ, c.Dir = append(c.Environ, "PAI_TASK_INDEX=3"), dir })
	s := newSession(t, h.dial(t))
	require.NoError(t, s.Setenv("LC_ALL", "C.UTF-8"))
	require.NoError(t, s.Setenv("LD_PRELOAD", "/evil.so"))
	out, err := s.Output(`pwd; echo $PAI_TASK_INDEX $LC_ALL "[$LD_PRELOAD]"; echo $SSH_CONNECTION`)
	require.NoError(t, err)
	lines := strings.Split(string(out), "\n")
	assert.Equal(t, []string{dir, "3 C.UTF-8 []"}, lines[:2])
	assert.Regexp(t, `^127\.0\.0\.1 \d+ 127\.0\.0\.1 \d+$`, lines[2])
}

func TestAHomeThatIsNotThereIsNoReasonToRefuse(t *testing.T) {
	h := serve(t, func(c *Config) { c.Dir, c.Environ = "", append(c.Environ, "HOME=/no/such/folder") })
	out, errs, code := h.run(t, "pwd")
	assert.Equal(t, 0, code, errs)
	own, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, own+"\n", out)
}

func TestTheLoginShellIsTheUsersOrOneThatIsThere(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"bash", "sh", "zsh"} {
		require.NoError(t, os.Symlink("/bin/sh", filepath.Join(bin, name)))
	}
	uid := fmt.Sprint(os.Getuid())
	for name, c := range map[string]struct {
		passwd, path string
		environ      []string
		want         string
	}{
		"the user's":              {"me:x:" + uid + ":0::/root:" + bin + "/zsh\n", bin, nil, bin + "/zsh"},
		"an account of a service": {"me:x:" + uid + ":0::/:/usr/sbin/nologin\n", bin, nil, bin + "/bash"},
		"no shell named":          {"me:x:" + uid + ":0::/:\n", bin, nil, bin + "/bash"},
		"one that isn't there":    {"me:x:" + uid + ":0::/:/no/shell\n", bin, nil, bin + "/bash"},
		"a user that isn't there": {"other:x:4711:0::/:" + bin + "/zsh\ngarbage\n", bin, []string{"SHELL=" + bin + "/sh"}, bin + "/sh"},
		"an image without any":    {"", "/no/path", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			passwd := filepath.Join(t.TempDir(), "passwd")
			require.NoError(t, os.WriteFile(passwd, []byte(c.passwd), 0o600))
			got, err := loginShell(c.environ, passwd)
			if c.want == "" {
				require.ErrorContains(t, err, "no shell")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestRequestsThatAreNotUnderstoodAreRefused(t *testing.T) {
	h := serve(t, nil)
	c := h.dial(t)
	for _, kind := range []string{"x11-req", "auth-agent-req@openssh.com", "signal", "window-change", "no-such"} {
		s := newSession(t, c)
		ok, err := s.SendRequest(kind, true, []byte{1})
		require.NoError(t, err, kind)
		assert.False(t, ok, kind)
		require.NoError(t, s.Close())
	}
	require.Error(t, newSession(t, c).RequestSubsystem("netconf"))
	_, _, err := c.OpenChannel("x11", nil)
	require.Error(t, err)
	_, _, err = c.OpenChannel("direct-tcpip", []byte("short"))
	require.Error(t, err)
	out, err := newSession(t, c).Output("echo on")
	require.NoError(t, err)
	assert.Equal(t, "on\n", string(out))
}

func TestFilesGoBothWays(t *testing.T) {
	h := serve(t, nil)
	dir := t.TempDir()
	f, err := sftp.NewClient(h.dial(t))
	require.NoError(t, err)
	defer f.Close()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	w, err := f.Create(dir + "/up")
	require.NoError(t, err)
	_, err = w.ReadFrom(bytes.NewReader(data))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, f.Symlink("up", dir+"/link"))
	target, err := os.Readlink(dir + "/link")
	require.NoError(t, err)
	assert.Equal(t, "up", target)
	r, err := f.Open(dir + "/link")
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data, got))
	_, err = f.Open(dir + "/none")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAForwardedRequestGetsTheAnswerThatComesAfterItsEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			question, _ := io.ReadAll(conn)
			fmt.Fprintf(conn, "you said %s", question)
			_ = conn.Close()
		}
	}()
	h := serve(t, nil)
	c := h.dial(t)
	conn, err := c.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "hello")
	require.NoError(t, err)
	half, ok := conn.(interface{ CloseWrite() error })
	require.True(t, ok)
	require.NoError(t, half.CloseWrite())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, "you said hello", string(answer))

	require.NoError(t, l.Close())
	_, err = c.Dial("tcp", l.Addr().String())
	require.ErrorContains(t, err, "refused")
}

func TestTheServerEndsWithItsConnections(t *testing.T) {
	h := serve(t, nil)
	c := h.dial(t)
	require.NoError(t, newSession(t, c).Run("true")) // the server knows of the connection
	h.stop()
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case <-done:
	case <-time.After(patience):
		require.FailNow(t, "the connection is open still")
	}
}

func TestAConfigurationThatCannotBeIsRefused(t *testing.T) {
	_, err := ReadConfig(strings.NewReader(`{"hostKey":`))
	require.ErrorContains(t, err, "the server's configuration")
	_, err = ReadConfig(io.MultiReader(strings.NewReader(`{"dir":"`), strings.NewReader(strings.Repeat("x", 17<<20))))
	require.Error(t, err, "more than any job's")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	err = Serve(t.Context(), l, &Config{HostKey: "s3cret"}, t.Logf)
	require.ErrorContains(t, err, "key can't be read")
	assert.NotContains(t, err.Error(), "s3cret")
	key, err := HostKey("")
	require.NoError(t, err)
	require.ErrorContains(t, Serve(t.Context(), l, &Config{HostKey: key, Authorized: []string{"x"}}, t.Logf), "not a public key")
}

func FuzzRequest(f *testing.F) {
	f.Add("window-change", xssh.Marshal(struct{ W, H, X, Y uint32 }{80, 24, 0, 0}))
	f.Add("signal", xssh.Marshal(struct{ Name string }{"TERM"}))
	f.Add("signal", []byte{0xff, 0xff, 0xff, 0xff})
	f.Add("auth-agent-req@openssh.com", []byte{})
	f.Fuzz(func(t *testing.T, kind string, payload []byte) {
		c := newChannel(t.Context(), nil, 0)
		for range 20 {
			c.take(&xssh.Request{Type: kind, Payload: payload})
		}
		assert.LessOrEqual(t, len(c.sizes), 1)
	})
}

// system returns the path of a program on this machine, for tests with the real client.
func system(t *testing.T, name string) string {
	t.Helper()
	tier.More(t, "OpenSSH")
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("this machine has no %s", name)
	}
	return path
}
