package target_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/test/tier"
)

// onOpenSSH starts an sshd with OpenSSH's SFTP server, and returns a target in a folder of this machine.
func onOpenSSH(t *testing.T) kept {
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
	dir := t.TempDir()
	backups := filepath.Join(dir, "backups")
	require.NoError(t, os.Mkdir(backups, 0o755))
	for _, key := range []string{"host", "id"} {
		require.NoError(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().(*net.TCPAddr)
	require.NoError(t, l.Close())
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nPidFile none\nUsePAM no\nStrictModes no\nAuthorizedKeysFile %s/id.pub\nPermitRootLogin yes\nSubsystem sftp internal-sftp -u 0022\n",
		address.Port, dir, dir)
	require.NoError(t, os.WriteFile(dir+"/sshd_config", []byte(config), 0o600))
	var log bytes.Buffer
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", dir+"/sshd_config")
	cmd.Stderr, cmd.WaitDelay = &log, 5*time.Second // its children hold the log open
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
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
	public, err := os.ReadFile(dir + "/host.pub")
	require.NoError(t, err)
	host, _, _, _, err := cssh.ParseAuthorizedKey(public)
	require.NoError(t, err)
	o := sshtest.Options(t)
	require.NoError(t, os.WriteFile(o.KnownHosts, []byte(knownhosts.Line([]string{address.String()}, host)+"\n"), 0o600))
	to := ssh.Target{Address: "127.0.0.1", Port: address.Port, KeyFile: dir + "/id"}
	return open(t, fmt.Sprintf("ssh://root@%s%s", address, backups), backups, target.Options{Dial: dialling(ssh.NewClient(o), to)})
}

func TestAMachineWhoseKeyIsUnknownIsRefused(t *testing.T) {
	_, server := onServer(t)
	o := sshtest.Options(t) // knows no host
	to, err := target.Open("ssh://keeper@"+server.Addr()+"/x", target.Options{Dial: dialling(ssh.NewClient(o), server.Target())})
	require.NoError(t, err)
	_, err = to.List(t.Context(), "")
	require.ErrorIs(t, err, ssh.ErrHostKey)
	assert.NoError(t, to.Close())
}
