package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/test/tier"
)

// inContainer is a script that runs in separate mount and PID namespaces. It mounts the folders of the runtime at their paths in a container. Then
// the command becomes PID 1.
const inContainer = `set -e
mount -t tmpfs tmpfs /usr/local
mkdir -p /usr/local/pai /usr/local/pai-spec
mount --bind "$ROOT/pai" /usr/local/pai
mount --bind "$ROOT/spec" /usr/local/pai-spec
mount --bind "$ROOT/termination" "$TERMINATION"
mount -t proc proc /proc
[ -z "$READONLY" ] || mount --bind -o ro "$ROOT/hosts" /etc/hosts
exec "$@"`

// pid1 returns a command that runs the built program as the first process of a container.
func pid1(t *testing.T, commands string, more ...string) (*exec.Cmd, string) {
	t.Helper()
	tier.More(t, "namespaces")
	if err := exec.Command("unshare", "--pid", "--fork", "--mount", "true").Run(); err != nil {
		t.Skipf("no namespaces can be made here: %v", err)
	}
	root := t.TempDir()
	for dir := root; strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o777))
	}
	for _, dir := range []string{"pai", "spec"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o777))
		require.NoError(t, os.Chmod(filepath.Join(root, dir), 0o777))
	}
	data, err := json.Marshal(spec.Spec{
		Version: 1, Framework: "f", User: "alice", Job: "job", GracePeriodSec: 30,
		Roles: []spec.Role{{Name: "main", Object: "main", Instances: 1, Command: commands}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "spec", "spec.json"), data, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "hosts"), []byte("127.0.0.1 localhost\n"), 0o644))
	// The kubelet mounts a file at the path of the report. Here, the mount needs an existing file at that path.
	require.NoError(t, os.WriteFile(filepath.Join(root, "termination"), nil, 0o666))
	require.NoError(t, os.Chmod(filepath.Join(root, "termination"), 0o666))
	if _, err := os.Stat(spec.TerminationLog); err != nil {
		require.NoError(t, os.WriteFile(spec.TerminationLog, nil, 0o666))
		t.Cleanup(func() { os.Remove(spec.TerminationLog) })
	}
	runtime := filepath.Join(root, "pai", "runtime")
	out, err := exec.Command(build(t), "install", filepath.Dir(runtime)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	args := append([]string{"--pid", "--fork", "--mount", "--kill-child=KILL", "sh", "-c", inContainer, "sh"}, more...)
	cmd := exec.Command("unshare", append(args, spec.Home+"/runtime", "run")...)
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "ROOT=" + root, "TERMINATION=" + spec.TerminationLog, "HOME=/tmp",
		"FC_TASKROLE_NAME=main", "FC_TASK_INDEX=0", "FC_FRAMEWORK_ATTEMPT_ID=0", "FC_TASK_ATTEMPT_ID=0", "PAI_POD_IP=10.0.0.1",
	}
	return cmd, root
}

func TestItIsPID1AndReapsWhatIsLeftToIt(t *testing.T) {
	cmd, _ := pid1(t, `cat /proc/1/cmdline | tr '\0' ' '; echo
for i in 1 2 3 4 5 6 7 8 9 10; do (sh -c 'sleep 0.1' &) ; done
sleep 1
for i in $(seq 200); do
  left=$(grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l) || true
  [ "$left" -gt 0 ] || break
  sleep 0.1 # the machine may be busy
done
echo "$left"
`+spec.Home+`/runtime exec -- sh -c 'echo exec $PAI_JOB_NAME'`)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s", errs.String())
	assert.Equal(t, "/usr/local/pai/runtime run \n0\nexec alice~job\n", string(out))
	assert.Empty(t, errs.String())
}

func TestTheContainerEndsThoughProcessesAreLeft(t *testing.T) {
	cmd, root := pid1(t, "setsid sleep 1000 &\n(trap '' TERM; sleep 1000) &\necho main\nexit 6")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	began := time.Now()
	out, err := cmd.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 255, exit.ExitCode())
	assert.Equal(t, "main\n", string(out))
	assert.Less(t, time.Since(began), 60*time.Second)
	report, err := os.ReadFile(filepath.Join(root, "termination"))
	require.NoError(t, err)
	assert.Contains(t, string(report), "originUserExitCode: 6", "written into the file that is mounted there")
}

func TestSIGTERMToTheContainerReachesItsProgram(t *testing.T) {
	cmd, _ := pid1(t, "trap 'echo saved; exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, 6)
	_, err = out.Read(line)
	require.NoError(t, err)
	assert.Equal(t, "ready\n", string(line))
	// The test sends the signal from outside the PID namespace, as a container runtime does. The only child of unshare is PID 1.
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(string(data), &pid)
	require.NoError(t, err)
	require.NoError(t, unix.Kill(pid, unix.SIGTERM))
	var rest bytes.Buffer
	_, err = rest.ReadFrom(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	assert.Equal(t, "saved\n", rest.String())
}

func TestAnybodyMayBeTheUserOfTheContainer(t *testing.T) {
	cmd, root := pid1(t, "id -u\n"+spec.Home+"/runtime exec -- sh -c 'echo $PAI_TASK_INDEX'\nexit 3", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
	cmd.Env = append(cmd.Env, "READONLY=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", errs.String())
	assert.Equal(t, 255, exit.ExitCode())
	assert.Equal(t, "65534\n0\n", string(out))
	report, err := os.ReadFile(filepath.Join(root, "termination"))
	require.NoError(t, err)
	assert.Contains(t, string(report), "originUserExitCode: 3")
}
