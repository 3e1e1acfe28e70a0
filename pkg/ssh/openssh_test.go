package ssh_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/test/tier"
)

// openssh is a real sshd on loopback with users for the test.
type openssh struct {
	target ssh.Target // as root, by key
	root   string     // the root of the host's file system, see PAICTL_ROOT
	known  string
}

// startOpenSSH starts sshd. startOpenSSH requires root, because only root can log in other users.
func startOpenSSH(t *testing.T, settings ...string) *openssh {
	t.Helper()
	tier.More(t, "a real sshd")
	for _, program := range []string{"/usr/sbin/sshd", "/usr/bin/ssh-keygen"} {
		if _, err := os.Stat(program); err != nil {
			t.Skipf("needs %s: apt-get install openssh-server", program)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root: sshd logs users in")
	}
	require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	// Don't use t.TempDir, because only the owner may enter its folder, and other users log in here.
	dir, err := os.MkdirTemp("", "paictl-sshd-") //nolint:usetesting // see above
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	root := filepath.Join(dir, "root")
	require.NoError(t, os.Mkdir(root, 0o755))
	require.NoError(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir+"/host").Run())
	public := writeKey(t, dir+"/id", "ed25519", "")
	require.NoError(t, os.WriteFile(dir+"/authorized", cssh.MarshalAuthorizedKey(public), 0o644))
	address := freeAddress(t)
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nPidFile none\nUsePAM no\nStrictModes no\n"+
		"AuthorizedKeysFile %s/authorized\nPermitRootLogin yes\nPasswordAuthentication yes\nSubsystem sftp internal-sftp\n"+
		"SetEnv PAICTL_ROOT=%s\n%s\n", address.Port, dir, dir, root, strings.Join(settings, "\n"))
	require.NoError(t, os.WriteFile(dir+"/sshd_config", []byte(config), 0o600))
	var log bytes.Buffer
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", dir+"/sshd_config")
	cmd.Stderr = &log
	cmd.WaitDelay = 5 * time.Second // its children hold the log open
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // a shell that runs tests in the background has SIGINT ignored
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address.String())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	text, err := os.ReadFile(dir + "/host.pub")
	require.NoError(t, err)
	host, _, _, _, err := cssh.ParseAuthorizedKey(text)
	require.NoError(t, err)
	return &openssh{
		target: ssh.Target{Name: "node1", Address: "127.0.0.1", Port: address.Port, User: "root", KeyFile: dir + "/id"},
		root:   root,
		known:  knownhosts.Line([]string{address.String()}, host) + "\n",
	}
}

// freeAddress returns a free address. The port is below the range from which the kernel allocates ports, so other processes are unlikely to use it.
func freeAddress(t *testing.T) *net.TCPAddr {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(10_000)))
		if err == nil {
			require.NoError(t, l.Close())
			return l.Addr().(*net.TCPAddr)
		}
	}
	t.Fatal("no free port")
	return nil
}

func (s *openssh) options(t *testing.T) ssh.Options {
	t.Helper()
	o := sshtest.Options(t)
	require.NoError(t, os.WriteFile(o.KnownHosts, []byte(s.known), 0o600))
	return o
}

// user creates a login user for the test. rule is the right-hand side of the user's line in sudoers, or "".
func (s *openssh) user(t *testing.T, name, password, rule string) ssh.Target {
	t.Helper()
	for _, program := range []string{"sudo", "useradd", "chpasswd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: apt-get install sudo passwd", program)
		}
	}
	run := func(stdin string, args ...string) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", args, out)
	}
	run("", "useradd", "--no-create-home", "--shell", "/bin/bash", name)
	sudoers := "/etc/sudoers.d/" + name
	t.Cleanup(func() {
		_ = os.Remove(sudoers)
		_ = exec.Command("userdel", "--force", name).Run()
	})
	run(name+":"+password+"\n", "chpasswd")
	if rule != "" {
		lines := fmt.Sprintf("%s %s\nDefaults:%s env_keep += PAICTL_ROOT\n", name, rule, name)
		require.NoError(t, os.WriteFile(sudoers, []byte(lines), 0o440))
	}
	target := s.target
	target.User, target.Password, target.KeyFile = name, secret.String(password), ""
	return target
}

func TestOpenSSHAnswersRootScriptsAndUploads(t *testing.T) {
	s := startOpenSSH(t, "MaxSessions 4")
	o := s.options(t)
	counter := &ssh.Counter{}
	o.Tracer = counter
	c := sshtest.NewClient(t, o)
	h, err := c.Dial(t.Context(), s.target)
	require.NoError(t, err)

	r, err := h.Run(t.Context(), ssh.Script{Name: "id", Body: "id -u; cat; echo err >&2; exit 5"})
	require.NoError(t, err)
	assert.Equal(t, "0\n", string(r.Stdout))
	assert.Equal(t, "err\n", string(r.Stderr))
	assert.Equal(t, 5, r.ExitCode)

	sess, err := h.Hold(t.Context(), ssh.Script{Name: "lock", Body: "exec 9>\"$PAICTL_ROOT/lock\"; flock -n 9 || exit 5; echo locked; cat >/dev/null"})
	require.NoError(t, err)
	second, err := h.Run(t.Context(), ssh.Script{Name: "lock", Body: "exec 9>\"$PAICTL_ROOT/lock\"; flock -n 9"})
	require.NoError(t, err)
	assert.Equal(t, 1, second.ExitCode, "the lock is held")
	require.NoError(t, sess.Close())

	counter.Reset()
	files := []ssh.File{file("/etc/a b", "x\n", 0o600), file("/opt/big", noise(3<<20), 0o755)}
	up, err := h.Upload(t.Context(), files, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, up.Sent)
	assert.Equal(t, 3, counter.Host("node1").RoundTrips)
	up, err = h.Upload(t.Context(), files, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, up.Skipped)
	assert.Equal(t, 4, counter.Host("node1").RoundTrips)
	assert.FileExists(t, s.root+"/etc/a b")
	assert.FileExists(t, s.root+"/var/lib/paictl/sums")

	errs := make(chan error)
	for range 16 {
		go func() {
			_, err := h.Run(t.Context(), ssh.Script{Name: "test", Body: "sleep 0.05"})
			errs <- err
		}()
	}
	for range 16 {
		assert.NoError(t, <-errs, "sessions adapt to MaxSessions 4")
	}
}

func TestOpenSSHEndsScriptsThatNobodyWaitsFor(t *testing.T) {
	s := startOpenSSH(t)
	c := sshtest.NewClient(t, s.options(t))
	root, err := c.Dial(t.Context(), s.target)
	require.NoError(t, err)
	name := fmt.Sprintf("paictl-c%d", os.Getpid())
	target := s.user(t, name, "pw", "ALL=(ALL) NOPASSWD:ALL")
	user, err := c.Dial(t.Context(), target)
	require.NoError(t, err)
	name += "y"
	targetPTY := s.user(t, name, "pw", "ALL=(ALL) NOPASSWD:ALL\nDefaults:"+name+" use_pty")
	userPTY, err := c.Dial(t.Context(), targetPTY)
	require.NoError(t, err)
	targets := map[string]ssh.Target{"root": s.target, "sudo": target, "sudo with use_pty": targetPTY}
	for name, h := range map[string]ssh.Host{"root": root, "sudo": user, "sudo with use_pty": userPTY} {
		for how, cut := range map[string]func(context.CancelFunc){
			"cancelled":      func(cancel context.CancelFunc) { cancel() },
			"connection cut": func(context.CancelFunc) { _ = c.Close() },
		} {
			h := h
			if how == "connection cut" {
				own := sshtest.NewClient(t, s.options(t))
				cut = func(context.CancelFunc) { _ = own.Close() }
				h, err = own.Dial(t.Context(), targets[name])
				require.NoError(t, err)
			}
			pidFile := filepath.Join(s.root, name+how)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := h.Run(ctx, ssh.Script{Name: "slow", Body: fmt.Sprintf("sleep 600 & echo $! >'%s.tmp'; mv '%s.tmp' '%s'; wait", pidFile, pidFile, pidFile)})
				ended <- err
			}()
			waitFor(t, pidFile)
			cut(cancel)
			require.Error(t, <-ended)
			cancel()
			pid, err := os.ReadFile(pidFile)
			require.NoError(t, err)
			assert.Eventually(t, func() bool {
				_, err := os.Stat("/proc/" + strings.TrimSpace(string(pid)))
				return os.IsNotExist(err)
			}, time.Minute, 10*time.Millisecond, "%s, %s: the sleep lives on", name, how)
		}
	}
}

func TestOpenSSHAndSudoWithAPassword(t *testing.T) {
	// Newer versions of sudo run all commands in a new terminal (use_pty).
	for _, setting := range []string{"!use_pty", "use_pty"} {
		t.Run(setting, func(t *testing.T) { sudoWithAPassword(t, setting) })
	}
}

func sudoWithAPassword(t *testing.T, setting string) {
	s := startOpenSSH(t)
	const password = "p4ss w0rd'\"$"
	name := fmt.Sprintf("paictl-p%d", os.Getpid())
	target := s.user(t, name, password, "ALL=(ALL) ALL\nDefaults:"+name+" "+setting)
	o := s.options(t)
	counter := &ssh.Counter{}
	var log bytes.Buffer
	o.Tracer = ssh.Tracers{counter, ssh.SlogTracer{Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}}
	c := sshtest.NewClient(t, o)
	h, err := c.Dial(t.Context(), target)
	require.NoError(t, err)

	for range 2 {
		r, err := h.Run(t.Context(), ssh.Script{Name: "secrets", Body: `id -u
for f in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do tr '\0' ' ' <$f; echo; done 2>/dev/null`})
		require.NoError(t, err)
		out := string(r.Stdout)
		assert.True(t, strings.HasPrefix(out, "0\n"), out[:20])
		assert.Contains(t, out, "sudo -k -S -p paictl-sudo-")
		assert.NotContains(t, out, password)
		assert.Empty(t, string(r.Stderr))
	}
	assert.Equal(t, 2, counter.Host("node1").RoundTrips)

	r, err := h.Run(t.Context(), ssh.Script{Name: "id", Body: "id -un", User: true})
	require.NoError(t, err)
	assert.Equal(t, target.User+"\n", string(r.Stdout))

	up, err := h.Upload(t.Context(), []ssh.File{file("/root only/x", noise(100_000), 0o600)}, nil)
	require.NoError(t, err)
	assert.Equal(t, 1, up.Sent)
	info, err := os.Stat(s.root + "/root only/x")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	wrong := target
	wrong.SudoPassword = "Wr0ng"
	h2, err := sshtest.NewClient(t, o).Dial(t.Context(), wrong)
	require.NoError(t, err)
	_, err = h2.Run(t.Context(), ssh.Script{Name: "id", Body: "id -u"})
	require.ErrorIs(t, err, ssh.ErrSudo)
	require.ErrorContains(t, err, "the password was refused")
	assert.NotContains(t, log.String()+err.Error(), password)
	assert.NotContains(t, log.String()+err.Error(), "Wr0ng")
	assert.Contains(t, log.String(), `"script":"secrets"`)
}

func TestOpenSSHAndSudoThatRefuses(t *testing.T) {
	t.Parallel()
	s := startOpenSSH(t)
	target := s.user(t, fmt.Sprintf("paictl-n%d", os.Getpid()), "pw", "")
	h, err := sshtest.NewClient(t, s.options(t)).Dial(t.Context(), target)
	require.NoError(t, err)
	_, err = h.Run(t.Context(), ssh.Script{Name: "id", Body: "id -u"})
	require.ErrorIs(t, err, ssh.ErrSudo)
	require.ErrorContains(t, err, "may not become root")

	name := fmt.Sprintf("paictl-t%d", os.Getpid())
	target = s.user(t, name, "pw", "ALL=(ALL) NOPASSWD:ALL\nDefaults:"+name+" requiretty")
	h, err = sshtest.NewClient(t, s.options(t)).Dial(t.Context(), target)
	require.NoError(t, err)
	_, err = h.Run(t.Context(), ssh.Script{Name: "id", Body: "id -u"})
	require.ErrorIs(t, err, ssh.ErrSudo)
	require.ErrorContains(t, err, "it requires a terminal")
	assert.Contains(t, hint.Of(err), "!requiretty")
}

func TestOpenSSHDropsDialsAndWeComeBack(t *testing.T) {
	s := startOpenSSH(t, "MaxStartups 2:50:4")
	c := sshtest.NewClient(t, s.options(t))
	errs := make(chan error)
	for i := range 8 {
		target := s.target
		target.KnownHosts = filepath.Join(t.TempDir(), fmt.Sprint("known", i)) // a separate connection
		require.NoError(t, os.WriteFile(target.KnownHosts, []byte(s.known), 0o600))
		go func() {
			_, err := c.Dial(t.Context(), target)
			errs <- err
		}()
	}
	for range 8 {
		require.NoError(t, <-errs)
	}
}
