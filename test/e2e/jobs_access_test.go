package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// reachable is a job with two tasks to which people connect. It runs a web server and an SSH server. Its barrier lets the commands begin only when
// each task has logged in to the other task.
const reachable = `
protocolVersion: 2
name: reachable
type: job
prerequisites: [{name: python, type: dockerimage, uri: "docker.io/openpai/examples-python:3"}]
taskRoles:
  web:
    instances: 2
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0, ports: {http: 1, ssh: 1}}
    commands:
      - mkdir -p /tmp/site && cd /tmp/site && echo "from task $PAI_TASK_INDEX" > index.html
      - echo ready
      - exec python3 -m http.server "$PAI_CONTAINER_HOST_PORT"
extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters: {jobssh: true, sshbarrier: true, sshbarrierTimeout: 2, userssh: {type: custom, value: %q}}
`

// isReachable connects to the tasks of a job in every way that paictl offers, through a real kubelet.
func (j *jobs) isReachable(t *testing.T) {
	const name = "reachable"
	signer := newSigner(t)
	j.forget(t, name)
	j.submit(t, jobFile(t, fmt.Sprintf(reachable, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))))))
	defer j.forget(t, name)
	eventually(t, 2*time.Minute, "both tasks run", func() bool { return strings.Count(j.log(t, name), "ready") == 2 })

	t.Run("a shell on a terminal", func(t *testing.T) { j.hasAShell(t, name) })
	t.Run("files go in and out", func(t *testing.T) { j.takesFiles(t, name) })
	t.Run("a port of each task", func(t *testing.T) {
		for task := range 2 {
			at := j.forwards(t, name, "0:http", "--task", fmt.Sprint(task))
			for range 3 { // each on a new connection
				res, err := http.Get("http://" + at + "/")
				require.NoError(t, err)
				body, err := io.ReadAll(res.Body)
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
				assert.Equal(t, fmt.Sprintf("from task %d\n", task), string(body))
			}
		}
	})
	t.Run("the ssh server of a task", func(t *testing.T) { acceptsLogins(t, j.forwards(t, name, "0:ssh", "--task", "1"), signer) })
}

func newSigner(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return s
}

// hasAShell uses "job shell" as a person does. The task must get the size and type of the terminal. Ctrl-C must end the program in the task, but not
// the shell. paictl must return the exit code of the shell.
func (j *jobs) hasAShell(t *testing.T, name string) {
	cmd := exec.CommandContext(t.Context(), paictl, j.job("shell", name, "--task", "1")...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "PAICTL_BUNDLE="+bundle)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 121})
	require.NoError(t, err)
	defer tty.Close()
	seen := make(chan string, 1000)
	go func() {
		defer close(seen)
		for r := bufio.NewReader(tty); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				seen <- strings.TrimSpace(line)
			}
			if err != nil {
				return // reading from a closed terminal returns an error
			}
		}
	}()
	// expectBy types a line, and waits for another line. If again is set, it types the line repeatedly. The terminal echoes the typed line, so that
	// line must not contain the expected text.
	expectBy := func(typed, want string, again time.Duration) {
		t.Helper()
		_, err := tty.WriteString(typed)
		require.NoError(t, err)
		var all []string
		tick := time.NewTicker(again)
		defer tick.Stop()
		for limit := time.After(time.Minute); ; {
			select {
			case <-tick.C:
				_, err := tty.WriteString(typed)
				require.NoError(t, err)
			case line, more := <-seen:
				all = append(all, line)
				if strings.Contains(line, want) {
					return
				}
				if !more {
					t.Fatalf("the shell ended before %q: %q", want, all)
				}
			case <-limit:
				t.Fatalf("no %q after %q: %q", want, typed, all)
			}
		}
	}
	expect := func(typed, want string) {
		t.Helper()
		expectBy(typed, want, time.Hour)
	}
	expect("echo task=$PAI_TASK_INDEX term=$TERM\n", "task=1 term=xterm-256color")
	expect("stty size | tr ' ' x\n", "33x121")
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Rows: 44, Cols: 99}))
	expect("until stty size | tr ' ' x | grep 44x9''9; do sleep 0.1; done\n", "44x99")
	// Ctrl-C discards lines that were typed before a program has read them. So the program must be running in the foreground of the terminal, which
	// isn't the case while bash starts it.
	expect("sh -c 'echo begun=$((100+1)); sleep 1000'\n", "begun=101")
	// The test doesn't wait for an echo, because the kernel discards the output of bash from before it has handled the key.
	_, err = tty.WriteString("\x03")
	require.NoError(t, err)
	// Lines that are typed before bash reads again may be discarded, too.
	expectBy("echo status=$((1000+$?))\n", "status=1130", 5*time.Second)
	_, err = tty.WriteString("exit 7\n")
	require.NoError(t, err)
	stuck := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	stuck.Stop()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 7, exit.ExitCode())
}

// takesFiles copies a folder into a task, checks the folder there, and copies it back.
func (j *jobs) takesFiles(t *testing.T, name string) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	require.NoError(t, os.MkdirAll(filepath.Join(in, "deep"), 0o700))
	large := make([]byte, 20<<20)
	_, _ = rand.Read(large)
	require.NoError(t, os.WriteFile(filepath.Join(in, "deep", "large"), large, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(in, "run.sh"), []byte("#!/bin/sh\necho I ran\n"), 0o700))
	ok(t, j.job("cp", in, name+":/tmp/copied", "--task", "1")...)
	assert.Equal(t, "I ran\n", ok(t, j.job("exec", name, "--task", "1", "--", "/tmp/copied/run.sh")...).stdout)
	out := filepath.Join(dir, "out")
	ok(t, j.job("cp", name+":/tmp/copied", out, "--task", "1")...)
	back, err := os.ReadFile(filepath.Join(out, "deep", "large"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(large, back), "20 MB come back as they were")
	// Only the selected task contains the files.
	r := run(t, j.job("cp", name+":/tmp/copied", filepath.Join(dir, "none"), "--task", "0")...)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "/tmp/copied")
	assert.NoDirExists(t, filepath.Join(dir, "none"))
	// Data is piped through exec, as with tar.
	cmd, stdout, stderr := command(t.Context(), t, j.job("exec", name, "--task", "0", "-i", "--", "sh", "-c", "wc -c; echo to stderr >&2; exit 3")...)
	cmd.Stdin = bytes.NewReader(large)
	require.Error(t, cmd.Run())
	assert.Equal(t, 3, cmd.ProcessState.ExitCode())
	assert.Equal(t, fmt.Sprint(len(large)), strings.TrimSpace(stdout.String()))
	assert.Equal(t, "to stderr", strings.TrimSpace(stderr.String()))
}

// forwards runs "job port-forward" until the test ends, and returns the address at which it listens.
func (j *jobs) forwards(t *testing.T, name, port string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // until it gets the signal to end
	cmd, _, stderr := command(ctx, t, j.job("port-forward", append([]string{name, port}, flags...)...)...)
	cmd.Stdout = nil
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		assert.Equal(t, 0, cmd.ProcessState.ExitCode(), "Ctrl-C is how one leaves: %s", stderr)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", stderr)
	at, _, found := strings.Cut(line, " -> ")
	require.True(t, found, line)
	return at
}

// acceptsLogins logs in with the user's key and runs a command. It also checks that a login with another key fails.
func acceptsLogins(t *testing.T, at string, signer ssh.Signer) {
	config := &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, Timeout: 20 * time.Second,
		HostKeyCallback: ssh.InsecureIgnoreHostKey()} // the connection goes through the API server
	c, err := ssh.Dial("tcp", at, config)
	require.NoError(t, err)
	defer c.Close()
	s, err := c.NewSession()
	require.NoError(t, err)
	out, err := s.Output("echo task $PAI_TASK_INDEX of $PAI_JOB_NAME; exit 5")
	var exit *ssh.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 5, exit.ExitStatus())
	assert.Equal(t, "task 1 of ann~reachable", strings.TrimSpace(string(out)))
	config.Auth = []ssh.AuthMethod{ssh.PublicKeys(newSigner(t))}
	_, err = ssh.Dial("tcp", at, config)
	require.ErrorContains(t, err, "unable to authenticate")
}
