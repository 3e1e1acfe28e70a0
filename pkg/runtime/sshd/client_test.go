package sshd

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// layout returns a job with a task for each address. The first task is this task.
func layout(t *testing.T, addresses ...string) *env.Layout {
	t.Helper()
	l := &env.Layout{Spec: &spec.Spec{Gang: true, HostNetwork: true}}
	for i, a := range addresses {
		host, port, err := net.SplitHostPort(a)
		require.NoError(t, err)
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		l.Tasks = append(l.Tasks, env.Task{Role: "Worker", Object: "worker", Index: i, Address: host, Ports: map[string][]int{"ssh": {n}}})
	}
	return l
}

func TestTheFilesOfSSHAreForTheUserOnly(t *testing.T) {
	key, _ := newKey(t, "")
	f := Files{Dir: filepath.Join(t.TempDir(), "ssh"), Key: key}
	l := layout(t, "10.0.0.1:22", "10.0.0.2:2222")
	l.Tasks = append(l.Tasks, env.Task{Role: "ps", Object: "ps"}) // nothing is known of it
	for range 2 {                                                 // a container may be started again
		require.NoError(t, f.Write(l))
	}
	info, err := os.Stat(f.Dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for _, name := range []string{"id", "known_hosts", "config"} {
		info, err := os.Stat(filepath.Join(f.Dir, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), name)
	}
	text, err := os.ReadFile(f.Config())
	require.NoError(t, err)
	assert.Contains(t, string(text), "Host worker-1 Worker-1\n  HostName 10.0.0.2\n  Port 2222\n")
	assert.NotContains(t, string(text), "Host ps-0")
	assert.NotContains(t, string(text), "PRIVATE KEY")
}

func TestTheUsersConfigurationIsKeptBehindOurs(t *testing.T) {
	home := t.TempDir()
	f := Files{Dir: "/usr/local/pai/ssh"}
	name := filepath.Join(home, ".ssh", "config")
	want := "Include /usr/local/pai/ssh/config\n"
	require.NoError(t, f.Include(home))
	assert.Equal(t, want, read(t, name))

	require.NoError(t, os.WriteFile(name, []byte("Host mine\n"), 0o600))
	for range 2 {
		require.NoError(t, f.Include(home))
		assert.Equal(t, want+"Host mine\n", read(t, name))
	}
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	t.Run("a link stays one", func(t *testing.T) {
		home := t.TempDir()
		elsewhere := filepath.Join(t.TempDir(), "dotfile")
		require.NoError(t, os.WriteFile(elsewhere, []byte("Host linked\n"), 0o600))
		require.NoError(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(home, ".ssh", "config")))
		require.NoError(t, f.Include(home))
		assert.Equal(t, want+"Host linked\n", read(t, elsewhere))
		info, err := os.Lstat(filepath.Join(home, ".ssh", "config"))
		require.NoError(t, err)
		assert.NotZero(t, info.Mode()&os.ModeSymlink)
	})
	t.Run("many tasks share a home", func(t *testing.T) {
		home := t.TempDir()
		name := filepath.Join(home, ".ssh", "config")
		require.NoError(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
		old := strings.Repeat("Host mine\n", 10_000)
		require.NoError(t, os.WriteFile(name, []byte(old), 0o600))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { assert.NoError(t, f.Include(home)) })
		}
		wg.Wait()
		assert.Equal(t, want+old, read(t, name))
		left, err := os.ReadDir(filepath.Join(home, ".ssh"))
		require.NoError(t, err)
		assert.Len(t, left, 1)
	})
	t.Run("a home that can't be written is an error", func(t *testing.T) {
		home := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(home, ".ssh"), nil, 0o600))
		require.Error(t, f.Include(home))
	})
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

func TestTheSystemsClientsTakeWhatIsWrittenForThem(t *testing.T) {
	h := serve(t, nil)
	f := Files{Dir: filepath.Join(t.TempDir(), "ssh"), Key: h.key}
	require.NoError(t, f.Write(layout(t, h.address)))
	dir := t.TempDir()
	options := []string{"-F", f.Config(), "-o", "BatchMode=yes"}
	t.Run("ssh", func(t *testing.T) {
		cmd := exec.Command(system(t, "ssh"), append(options, "Worker-0", "cat; exit 5")...)
		cmd.Stdin = strings.NewReader("typed")
		out, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		require.ErrorAs(t, err, &ended, "%s", out)
		assert.Equal(t, 5, ended.ExitCode())
		assert.Equal(t, "typed", string(out), "no warning, no question: the host's key is known")
	})
	t.Run("ssh with a terminal", func(t *testing.T) {
		out, err := exec.Command(system(t, "ssh"), append(options, "-tt", "worker-0", "tty; stty raw; printf 'a\\nb'")...).Output()
		require.NoError(t, err, "%s", out)
		assert.Regexp(t, `^/dev/pts/\d+\r\na\nb$`, string(out))
	})
	t.Run("ssh -W", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		go func() {
			conn, err := l.Accept()
			if err == nil {
				_, _ = fmt.Fprint(conn, "answer")
				_ = conn.Close()
			}
		}()
		out, err := exec.Command(system(t, "ssh"), append(options, "-W", l.Addr().String(), "worker-0")...).Output()
		require.NoError(t, err)
		assert.Equal(t, "answer", string(out))
	})
	t.Run("scp", func(t *testing.T) {
		local := filepath.Join(dir, "local")
		require.NoError(t, os.WriteFile(local, []byte("by scp"), 0o640))
		out, err := exec.Command(system(t, "scp"), append(options, "-s", "-p", local, "worker-0:"+dir+"/copied")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, "by scp", read(t, dir+"/copied"))
	})
	t.Run("sftp", func(t *testing.T) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "far"), []byte("by sftp"), 0o600))
		cmd := exec.Command(system(t, "sftp"), append(options, "-b", "-", "worker-0")...)
		cmd.Stdin = strings.NewReader("get " + dir + "/far " + dir + "/near\nls " + dir + "\n")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, "by sftp", read(t, dir+"/near"))
	})
	t.Run("another host's key is refused", func(t *testing.T) {
		other := serve(t, nil)
		f := Files{Dir: filepath.Join(t.TempDir(), "ssh"), Key: h.key}
		require.NoError(t, f.Write(layout(t, other.address)))
		out, err := exec.Command(system(t, "ssh"), "-F", f.Config(), "-o", "BatchMode=yes", "worker-0", "true").CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(out), "verification failed")
	})
}
