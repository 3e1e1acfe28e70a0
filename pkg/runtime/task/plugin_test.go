package task_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/runtime/sshd"
	"github.com/openpai/paictl/test/tier"
)

func keyPair(t *testing.T) (private string, signer xssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := xssh.MarshalPrivateKey(key, "job")
	require.NoError(t, err)
	private = string(pem.EncodeToMemory(block))
	signer, err = xssh.ParsePrivateKey([]byte(private))
	require.NoError(t, err)
	return private, signer
}

func sshParameters(t *testing.T, more map[string]any, private string) string {
	t.Helper()
	p := map[string]any{"jobssh": true, "jobKey": map[string]any{"privateKey": private, "authorizedKeys": []string{}}}
	for k, v := range more {
		p[k] = v
	}
	data, err := json.Marshal(p)
	require.NoError(t, err)
	return string(data)
}

// freeUID returns a UID whose ports on the host network are all free.
func freeUID(t *testing.T) string {
	t.Helper()
	for range 1000 {
		uid := "uid-" + strings.ToLower(rand.Text())
		var open []net.Listener
		for _, label := range []string{"ssh", "http", peers.MasterLabel} {
			if l, err := net.Listen("tcp", fmt.Sprintf(":%d", peers.HostPort(uid, label, 0, 20000, 32000))); err == nil {
				open = append(open, l)
			}
		}
		for _, l := range open {
			_ = l.Close()
		}
		if len(open) == 3 {
			return uid
		}
	}
	require.FailNow(t, "no free ports")
	return ""
}

// sshHost returns a task with the ssh plugin. The program of the task waits for a file. On the host network, the port is
// random, so tests can run in parallel.
func sshHost(t *testing.T, parameters string) (*container, string) {
	t.Helper()
	c := newContainer(t, "")
	done := c.path("done")
	c.role().Command = "echo ready; until [ -e " + done + " ]; do sleep 0.05; done"
	uid := freeUID(t)
	c.env = append(c.env, "FC_POD_UID="+uid)
	c.spec.HostNetwork, c.spec.PortStart, c.spec.PortEnd = true, 20000, 32000
	c.plugin("ssh", parameters)
	c.start()
	c.await("ready")
	port := peers.HostPort(uid, "ssh", 0, 20000, 32000)
	return c, fmt.Sprintf("127.0.0.1:%d", port)
}

func hostKey(t *testing.T, private string) xssh.HostKeyCallback {
	t.Helper()
	text, err := sshd.HostKey(private)
	require.NoError(t, err)
	s, err := sshd.ParseKey(text)
	require.NoError(t, err)
	return xssh.FixedHostKey(s.PublicKey())
}

func TestPeopleLogInToATaskByKeyOnly(t *testing.T) {
	private, job := keyPair(t)
	_, user := keyPair(t)
	_, stranger := keyPair(t)
	c, address := sshHost(t, sshParameters(t, map[string]any{
		"userssh": map[string]string{"type": "custom", "value": "# mine\n" + sshd.AuthorizedKey(user)},
	}, private))
	dial := func(methods ...xssh.AuthMethod) (*xssh.Client, error) {
		return xssh.Dial("tcp", address, &xssh.ClientConfig{User: "anybody", Auth: methods, HostKeyCallback: hostKey(t, private), Timeout: time.Minute})
	}
	for _, s := range []xssh.Signer{job, user} {
		client, err := dial(xssh.PublicKeys(s))
		require.NoError(t, err)
		session, err := client.NewSession()
		require.NoError(t, err)
		out, err := session.Output("echo $PAI_JOB_NAME $SSH_CONNECTION; pwd")
		require.NoError(t, err)
		assert.Contains(t, string(out), "alice~job 127.0.0.1")
		require.NoError(t, client.Close())
	}
	_, err := dial(xssh.PublicKeys(stranger))
	require.Error(t, err)
	_, err = dial(xssh.Password(""), xssh.Password("root"))
	require.Error(t, err)
	_, err = dial()
	require.Error(t, err)

	client, err := dial(xssh.PublicKeys(user))
	require.NoError(t, err)
	defer client.Close()
	t.Run("exit codes, input and both outputs come through", func(t *testing.T) {
		s, err := client.NewSession()
		require.NoError(t, err)
		var out, errs bytes.Buffer
		s.Stdin, s.Stdout, s.Stderr = strings.NewReader("in"), &out, &errs
		err = s.Run("cat; echo err >&2; exit 7")
		var exit *xssh.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 7, exit.ExitStatus())
		assert.Equal(t, "in", out.String())
		assert.Equal(t, "err\n", errs.String())
	})
	t.Run("a terminal has its size and takes another", func(t *testing.T) {
		s, err := client.NewSession()
		require.NoError(t, err)
		require.NoError(t, s.RequestPty("xterm", 33, 77, xssh.TerminalModes{}))
		out, err := s.Output("stty size; echo $TERM; tty")
		require.NoError(t, err)
		assert.Contains(t, string(out), "33 77")
		assert.Contains(t, string(out), "xterm")
		assert.Contains(t, string(out), "/dev/pts/")
	})
	t.Run("an interactive shell", func(t *testing.T) {
		s, err := client.NewSession()
		require.NoError(t, err)
		require.NoError(t, s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}))
		in, err := s.StdinPipe()
		require.NoError(t, err)
		var out bytes.Buffer
		s.Stdout = &out
		require.NoError(t, s.Shell())
		_, err = io.WriteString(in, "echo task $((PAI_TASKS_NUM+41))\nexit 3\n")
		require.NoError(t, err)
		var exit *xssh.ExitError
		require.ErrorAs(t, s.Wait(), &exit)
		assert.Equal(t, 3, exit.ExitStatus())
		assert.Contains(t, out.String(), "task 42")
	})
	t.Run("a session ends though a child of its lives on", func(t *testing.T) {
		s, err := client.NewSession()
		require.NoError(t, err)
		began := time.Now()
		out, err := s.Output("sleep 1000 & echo started")
		require.NoError(t, err)
		assert.Equal(t, "started\n", string(out))
		assert.Less(t, time.Since(began), 100*time.Second)
	})
	t.Run("what a client leaves is hung up", func(t *testing.T) {
		own, err := dial(xssh.PublicKeys(user))
		require.NoError(t, err)
		s, err := own.NewSession()
		require.NoError(t, err)
		mark := c.path("hup")
		pipe, err := s.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, s.Start("trap 'touch "+mark+"; exit' HUP; echo up; while :; do sleep 0.05; done"))
		_, err = io.ReadFull(pipe, make([]byte, 3))
		require.NoError(t, err)
		require.NoError(t, own.Close())
		require.Eventually(t, func() bool { _, err := os.Stat(mark); return err == nil }, time.Minute, 20*time.Millisecond)
	})
	t.Run("files go both ways", func(t *testing.T) {
		f, err := sftp.NewClient(client)
		require.NoError(t, err)
		defer f.Close()
		w, err := f.Create(c.path("up"))
		require.NoError(t, err)
		_, err = w.Write([]byte("uploaded"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		assert.Equal(t, "uploaded", c.read("up"))
	})
	t.Run("ports are forwarded", func(t *testing.T) {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "inside") }))
		defer web.Close()
		through := http.Client{Transport: &http.Transport{DialContext: client.DialContext}}
		res, err := through.Get(web.URL)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, "inside", string(body))
	})
	c.write("/done", "")
	assert.Equal(t, 0, c.wait())
	assert.NotContains(t, c.errors()+c.out(), "PRIVATE KEY")
}

func TestTheServerIsStartedAgainWhenItEnds(t *testing.T) {
	private, job := keyPair(t)
	c, address := sshHost(t, sshParameters(t, nil, private))
	login := func() error {
		client, err := xssh.Dial("tcp", address, &xssh.ClientConfig{Auth: []xssh.AuthMethod{xssh.PublicKeys(job)}, HostKeyCallback: hostKey(t, private), Timeout: time.Minute})
		if err == nil {
			_ = client.Close()
		}
		return err
	}
	require.NoError(t, login())
	out, err := exec.Command("pgrep", "-P", fmt.Sprint(c.cmd.Process.Pid), "-f", "sshd").Output()
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(string(out), &pid)
	require.NoError(t, err)
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	c.await("starting it again")
	require.NoError(t, login())
}

func TestTheSystemsClientKnowsTasksByName(t *testing.T) {
	tier.More(t, "OpenSSH")
	for _, name := range []string{"ssh", "scp"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("this machine has no %s", name)
		}
	}
	private, _ := keyPair(t)
	c, _ := sshHost(t, sshParameters(t, nil, private))
	config := c.path(spec.Home + "/ssh/config")
	include := c.read("/home/.ssh/config")
	assert.Equal(t, "Include "+config+"\n", include)
	for _, alias := range []string{"mainrole-0", "Main_Role-0"} {
		out, err := exec.Command("ssh", "-F", config, "-o", "BatchMode=yes", alias, "echo $PAI_TASK_INDEX; exit 5").CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", out)
		assert.Equal(t, 5, exit.ExitCode())
		assert.Equal(t, "0\n", string(out), "no warning, no question: the host's key is known")
	}
	local := filepath.Join(t.TempDir(), "local")
	require.NoError(t, os.WriteFile(local, []byte("by scp"), 0o600))
	out, err := exec.Command("scp", "-F", config, "-o", "BatchMode=yes", "-s", local, "mainrole-0:"+c.path("copied")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "by scp", c.read("copied"))
	info, err := os.Stat(c.path(spec.Home + "/ssh/id"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestTheSSHBarrierWaitsForAllServers(t *testing.T) {
	private, _ := keyPair(t)
	a := newAPI(t)
	p := &peers.Peers{Attempt: 2, Roles: []peers.Role{{Name: "mainrole"}}}
	var all []*container
	for i := range 2 {
		uid := freeUID(t)
		p.Roles[0].PodIPs = append(p.Roles[0].PodIPs, "127.0.0.1")
		p.Roles[0].HostIPs = append(p.Roles[0].HostIPs, "127.0.0.1")
		p.Roles[0].PodUIDs = append(p.Roles[0].PodUIDs, uid)
		c := newContainer(t, "echo main")
		c.role().Instances = 2
		c.spec.HostNetwork, c.spec.PortStart, c.spec.PortEnd = true, 20000, 32000
		c.env = append(c.env, fmt.Sprintf(spec.TaskVariable+"=mainrole/%d/2/0", i), "FC_POD_UID="+uid)
		c.plugin("ssh", sshParameters(t, map[string]any{"sshbarrier": "true"}, private))
		a.join(c)
		all = append(all, c)
	}
	// The program of each task keeps its server running until the other task has passed the barrier.
	for i, c := range all {
		c.role().Command = fmt.Sprintf("touch %s; until [ -e %s ]; do sleep 0.05; done; echo main", c.path("passed"), all[1-i].path("passed"))
		c.start()
	}
	a.release(p)
	for _, c := range all {
		assert.Equal(t, 0, c.wait(), c.errors())
		assert.Equal(t, "main\n", c.out())
	}
}

func TestAnSSHBarrierThatTimesOutHasItsCode(t *testing.T) {
	private, _ := keyPair(t)
	a := newAPI(t)
	c := newContainer(t, "echo NOT")
	c.role().Instances = 2
	c.spec.HostNetwork, c.spec.PortStart, c.spec.PortEnd = true, 20000, 32000
	uid := freeUID(t)
	c.env = append(c.env, "FC_POD_UID="+uid)
	c.plugin("ssh", sshParameters(t, map[string]any{"sshbarrier": true, "sshbarrierTimeout": 0.02}, private))
	a.join(c)
	c.start()
	a.release(&peers.Peers{Attempt: 2, Roles: []peers.Role{{Name: "mainrole", PodIPs: []string{"127.0.0.1", "127.0.0.1"}, HostIPs: []string{"", ""}, PodUIDs: []string{uid, "nobody"}}}})
	assert.Equal(t, 249, c.wait(), c.errors())
	assert.Contains(t, c.errors(), "SSH barrier reaches max retry count")
	assert.Contains(t, c.errors(), "mainrole-1")
	assert.Equal(t, 249, c.report().ExitCode)
}

func TestMistakesInTheSSHPluginAreNamedWithoutTheKey(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"jobKey":{"privateKey":"s3cret"}}`:                     "isn't a PEM block",
		`{"userssh":{"type":"custom","value":"ssh-rsa s3cret"}}`: "not a public key",
		`{"userssh":{"type":"custom","value":"command=\"x\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me"}}`: "has options",
		`{"sshbarrierTimeout":-3}`: "number of minutes",
		`{"jobssh":"maybe"}`:       "parameters can't be read",
	} {
		c := newContainer(t, "echo NOT")
		c.plugin("ssh", parameters)
		assert.Equal(t, 247, c.run())
		assert.Contains(t, c.errors(), want)
		if want != "not a public key" {
			assert.NotContains(t, c.errors(), "s3cret")
		}
	}
}

// gitServer serves a repository to clients that log in. It rejects the first fail requests.
func gitServer(t *testing.T, fail int) (string, string) {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", dir + "/work"}, {"-C", dir + "/work", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "first"},
		{"clone", "-q", "--bare", dir + "/work", dir + "/repo.git"}, {"-C", dir + "/repo.git", "update-server-info"},
	} {
		out, err := exec.Command("git", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	path, err := exec.Command("git", "--exec-path").Output()
	require.NoError(t, err)
	var left atomic.Int32
	left.Store(int32(fail))
	backend := &cgi.Handler{Path: strings.TrimSpace(string(path)) + "/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "alice" || password != "s3cret!" {
			w.Header().Set("WWW-Authenticate", "Basic realm=x")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if left.Add(-1) >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	host := strings.TrimPrefix(s.URL, "http://")
	return "http://alice:s3cret%21@" + host + "/repo.git", host
}

func TestARepositoryIsClonedAndItsPasswordShownNowhere(t *testing.T) {
	repo, _ := gitServer(t, 1) // the first try fails
	c := newContainer(t, "")
	dir := c.path("/clones/mine")
	c.role().Command = "cd " + dir + "; git log --format=%s; git remote get-url origin; cat .git/config"
	c.plugin("git", fmt.Sprintf(`{"repo_uri":%q,"options":["--depth=1"],"clone_dir":%q}`, repo, dir))
	assert.Equal(t, 0, c.run(), c.errors())
	assert.True(t, strings.HasPrefix(c.out(), "first\n"), c.out())
	assert.Contains(t, c.errors(), "attempt 1 of 10 failed")
	for _, text := range []string{c.out(), c.errors(), c.log()} {
		assert.NotContains(t, text, "s3cret")
	}
	left, err := os.ReadDir(c.path("/clones"))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestACloneNeedsAnEmptyFolderAndGit(t *testing.T) {
	c := newContainer(t, "echo NOT")
	c.write("/full/file", "x")
	c.plugin("git", fmt.Sprintf(`{"repo_uri":"http://127.0.0.1:1/x","clone_dir":%q}`, c.path("/full")))
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), "isn't empty")

	c = newContainer(t, "echo NOT")
	c.env[0] = "PATH=/nowhere"
	c.plugin("git", `{"repo_uri":"http://127.0.0.1:1/x"}`)
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), "the image has no git")

	c = newContainer(t, "echo NOT")
	c.plugin("git", `{}`)
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), "repo_uri is missing")
}

// fakeTensorboard adds a program tensorboard that prints its arguments.
func fakeTensorboard(t *testing.T, c *container, version string) {
	t.Helper()
	c.write("/bin/tensorboard", "#!/bin/sh\nif [ \"$1\" = --version ]; then echo "+version+"; exit; fi\necho called \"$@\"; exec sleep 1000\n")
	require.NoError(t, os.Chmod(c.path("/bin/tensorboard"), 0o755))
	c.env[0] = "PATH=" + c.path("/bin") + ":" + os.Getenv("PATH")
}

func TestTensorboardRunsBesideTheFirstTask(t *testing.T) {
	for _, k := range []struct{ version, parameters, want string }{
		{"2.15.1", `{"port":10101,"logdir":{"run":"/logs"}}`, "called --logdir=/logs --port=10101 --bind_all"},
		{"2.15.1", `{"port":"10101","logdir":{"b":"/b","a":"/a"}}`, "called --logdir_spec=a:/a,b:/b --port=10101 --bind_all"},
		{"1.15.0+nv", `{"port":10101,"logdir":{"b":"/b","a":"/a"}}`, "called --logdir=a:/a,b:/b --port=10101"},
	} {
		c := newContainer(t, "")
		done := c.path("done")
		c.role().Command = "until [ -e " + done + " ]; do sleep 0.05; done"
		fakeTensorboard(t, c, k.version)
		c.plugin("tensorboard", k.parameters)
		c.start()
		c.await("called ")
		assert.Contains(t, c.errors(), "[pai-runtime] "+k.want+"\n")
		c.write("/done", "")
		assert.Equal(t, 0, c.wait())
	}
	c := newContainer(t, "echo main")
	c.plugin("tensorboard", `{"port":0}`)
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), "parameter port")
}

func TestTensorboardIsInstalledWhereItIsMissing(t *testing.T) {
	c := newContainer(t, "true")
	c.write("/bin/python3", "#!/bin/sh\necho python \"$@\"; exit 1\n")
	require.NoError(t, os.Chmod(c.path("/bin/python3"), 0o755))
	for _, name := range []string{"sh", "true"} {
		require.NoError(t, os.Symlink("/bin/"+name, c.path("/bin/"+name)))
	}
	c.env[0] = "PATH=" + c.path("/bin")
	c.plugin("tensorboard", `{"port":10101,"logdir":{"a":"/a"}}`)
	c.role().Plugins[0].IgnoreFailure = true
	assert.Equal(t, 0, c.run(), c.errors())
	assert.Contains(t, c.errors(), "python -m pip install --quiet tensorboard")
	assert.Contains(t, c.errors(), "because of its failurePolicy")
}

func TestThePortOfTheSSHServerMayBeTaken(t *testing.T) {
	tier.More(t, "a port that no other program has")
	private, _ := keyPair(t)
	c := newContainer(t, "echo NOT")
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", peers.PodPorts(c.role().Ports)["ssh"][0]))
	if err != nil {
		t.Skipf("the port that pods have is taken on this machine: %v", err)
	}
	defer l.Close()
	c.plugin("ssh", sshParameters(t, nil, private))
	assert.Equal(t, 253, c.run())
}
