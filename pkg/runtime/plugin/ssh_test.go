package plugin

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/sshd"
)

func jobKey(t *testing.T) (string, xssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := xssh.MarshalPrivateKey(key, "job")
	require.NoError(t, err)
	signer, err := xssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(block)), signer
}

func sshParameters(t *testing.T, key string, more map[string]any) string {
	t.Helper()
	p := map[string]any{"jobKey": map[string]any{"privateKey": key, "authorizedKeys": []string{}}}
	for k, v := range more {
		p[k] = v
	}
	data, err := json.Marshal(p)
	require.NoError(t, err)
	return string(data)
}

// freePort returns a free port below the range that the kernel allocates.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 12_000 + mathrand.IntN(8000)
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.FailNow(t, "no free port")
	return 0
}

func sshRun(t *testing.T) (*Run, *said, string) {
	t.Helper()
	r, log := newRun(t)
	port := freePort(t)
	r.Layout.Tasks[0].Ports = map[string][]int{"ssh": {port}}
	r.Layout.Tasks[0].Address = "127.0.0.1"
	return r, log, fmt.Sprintf("127.0.0.1:%d", port)
}

func login(address, key string, signer xssh.Signer) error {
	text, err := sshd.HostKey(key)
	if err != nil {
		return err
	}
	host, err := sshd.ParseKey(text)
	if err != nil {
		return err
	}
	c, err := xssh.Dial("tcp", address, &xssh.ClientConfig{Auth: []xssh.AuthMethod{xssh.PublicKeys(signer)}, HostKeyCallback: xssh.FixedHostKey(host.PublicKey()), Timeout: patience})
	if err == nil {
		err = c.Close()
	}
	return err
}

// servers returns the PIDs of the children that are SSH servers.
func servers(t *testing.T) []int {
	t.Helper()
	var out []int
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, name := range list {
		data, err := os.ReadFile(name)
		var pid int
		_, _ = fmt.Sscanf(name, "/proc/%d/", &pid)
		status, serr := os.ReadFile(filepath.Join(filepath.Dir(name), "status"))
		if err == nil && serr == nil && strings.HasSuffix(string(data), "\x00sshd\x00") && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			out = append(out, pid)
		}
	}
	return out
}

func TestTheServerRunsAndIsStartedAgainSoManyTimes(t *testing.T) {
	key, signer := jobKey(t)
	r, log, address := sshRun(t)
	require.NoError(t, plugins(t, r, named("ssh", sshParameters(t, key, nil))).Pre(t.Context()))
	config := filepath.Join(r.Home, "ssh", "config")
	include, err := os.ReadFile(filepath.Join(r.UserHome, ".ssh", "config"))
	require.NoError(t, err)
	assert.Equal(t, "Include "+config+"\n", string(include))
	for range restarts + 1 {
		require.NoError(t, login(address, key, signer))
		pids := servers(t)
		require.Len(t, pids, 1)
		require.NoError(t, unix.Kill(pids[0], unix.SIGKILL))
		require.Eventually(t, func() bool { now := servers(t); return len(now) != 1 || now[0] != pids[0] }, patience, 5*time.Millisecond)
		if strings.Count(log.String(), "starting it again") < restarts {
			require.Eventually(t, func() bool { return len(servers(t)) == 1 }, patience, 5*time.Millisecond)
		}
	}
	log.await(t, "6 times in a row: it is not started again")
	require.Eventually(t, func() bool { return login(address, key, signer) != nil }, patience, 10*time.Millisecond, "and the port is closed")
	assert.NotContains(t, log.String(), "PRIVATE KEY")
}

func TestAHomeWhoseConfigurationCannotBeWrittenIsToldAndNoMore(t *testing.T) {
	key, signer := jobKey(t)
	r, log, address := sshRun(t)
	require.NoError(t, os.WriteFile(filepath.Join(r.UserHome, ".ssh"), nil, 0o600)) // as one that is mounted
	require.NoError(t, plugins(t, r, named("ssh", sshParameters(t, key, nil))).Pre(t.Context()))
	assert.Contains(t, log.String(), "only with -F "+filepath.Join(r.Home, "ssh", "config"))
	require.NoError(t, login(address, key, signer))
}

func TestWithoutJobSSHThereIsNoKeyInTheTask(t *testing.T) {
	key, signer := jobKey(t)
	_, mine := jobKey(t)
	r, log, address := sshRun(t)
	require.NoError(t, plugins(t, r, named("ssh", sshParameters(t, key, map[string]any{
		"jobssh": "false", "sshbarrier": false, "userssh": map[string]string{"type": "custom", "value": sshd.AuthorizedKey(mine)},
	}))).Pre(t.Context()))
	assert.NoDirExists(t, filepath.Join(r.Home, "ssh"))
	assert.NoFileExists(t, filepath.Join(r.UserHome, ".ssh", "config"))
	log.await(t, "listens on port")
	require.Error(t, login(address, key, signer), "neither the job's key nor its host key are used")
}

func TestWhyThereIsNoServer(t *testing.T) {
	key, _ := jobKey(t)
	t.Run("no port", func(t *testing.T) {
		r, _, _ := sshRun(t)
		r.Layout.Tasks[0].Ports = nil
		require.ErrorContains(t, plugins(t, r, named("ssh", sshParameters(t, key, nil))).Pre(t.Context()), "no port with the label ssh")
	})
	t.Run("its port is taken", func(t *testing.T) {
		r, _, address := sshRun(t)
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		l, err := net.Listen("tcp", ":"+port)
		require.NoError(t, err)
		defer l.Close()
		err = plugins(t, r, named("ssh", sshParameters(t, key, nil))).Pre(t.Context())
		assert.Equal(t, exit.PortConflict, exit.Code(err), err)
	})
	t.Run("a port that can't be", func(t *testing.T) {
		r, _, _ := sshRun(t)
		r.Layout.Tasks[0].Ports["ssh"][0] = 70_000
		err := plugins(t, r, named("ssh", sshParameters(t, key, nil))).Pre(t.Context())
		require.ErrorContains(t, err, "can't listen")
		assert.Equal(t, exit.Setup, exit.Code(err), "another attempt would have it too")
	})
	t.Run("a key that is none", func(t *testing.T) {
		r, _, _ := sshRun(t)
		err := plugins(t, r, named("ssh", sshParameters(t, "s3cret", nil))).Pre(t.Context())
		require.ErrorContains(t, err, "PEM block")
		assert.NotContains(t, err.Error(), "s3cret")
	})
}

func TestTheBarrierOfSSH(t *testing.T) {
	key, _ := jobKey(t)
	t.Run("needs the job's key", func(t *testing.T) {
		r, _, _ := sshRun(t)
		r.Layout.Tasks = append(r.Layout.Tasks, env.Task{Object: "worker", Index: 1})
		require.ErrorContains(t, plugins(t, r, named("ssh", sshParameters(t, key, map[string]any{"jobssh": false, "sshbarrier": true}))).Pre(t.Context()), "sshbarrier needs jobssh")
	})
	t.Run("is left out where nobody waits for anybody", func(t *testing.T) {
		r, log, _ := sshRun(t)
		r.Layout.Tasks = append(r.Layout.Tasks, env.Task{Object: "worker", Index: 1})
		r.Layout.Spec.Gang = false
		require.NoError(t, plugins(t, r, named("ssh", sshParameters(t, key, map[string]any{"sshbarrier": true}))).Pre(t.Context()))
		assert.Contains(t, log.String(), "sshbarrier is left out")
	})
	t.Run("ends after its time", func(t *testing.T) {
		r, _, _ := sshRun(t)
		r.Layout.Tasks = append(r.Layout.Tasks, env.Task{Object: "worker", Index: 1, Address: "127.0.0.1", Ports: map[string][]int{"ssh": {1}}})
		err := plugins(t, r, named("ssh", sshParameters(t, key, map[string]any{"sshbarrier": true, "sshbarrierTimeout": "0.002"}))).Pre(t.Context())
		assert.Equal(t, exit.SSHBarrierTimeout, exit.Code(err), err)
	})
}
