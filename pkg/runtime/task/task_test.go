package task_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/test/tier"
)

func TestATaskThatSucceedsLeavesOnlyItsOutput(t *testing.T) {
	c := newContainer(t, "echo out\necho err >&2\necho $PAI_JOB_NAME $PAI_JOB_ATTEMPT_ID $PAI_CURRENT_TASK_ROLE_NAME $FC_TASKROLE_NAME")
	assert.Equal(t, 0, c.run())
	assert.Equal(t, "out\nalice~job 2 Main_Role mainrole\n", c.out())
	assert.Equal(t, "err\n", c.errors(), "nothing of the runtime's where nothing is wrong")
	assert.NoFileExists(t, c.path(spec.TerminationLog))
}

func TestTheProgramCanReadItsEnvironmentFromAFile(t *testing.T) {
	c := newContainer(t, "")
	c.role().Command = "env -i sh -c '. " + c.path(env.ScriptFile) + "; echo $PAI_TASKS_NUM $PAI_CHECKPOINT_DIR'; test -d " + c.path("/mnt/ckpt")
	c.spec.CheckpointDir = "/mnt/ckpt"
	assert.Equal(t, 0, c.run(), c.errors())
	assert.Equal(t, "1 /mnt/ckpt\n", c.out())
}

func TestAProgramRunsWithoutAnyShell(t *testing.T) {
	c := newContainer(t, "")
	c.role().Exec = []string{"/bin/echo", "$HOME", "a b", "'"}
	assert.Equal(t, 0, c.run())
	assert.Equal(t, "$HOME a b '\n", c.out())
}

func TestAnImageWithoutAShellIsToldSo(t *testing.T) {
	c := newContainer(t, "echo hello")
	c.env[0] = "PATH=/nowhere"
	assert.Equal(t, 195, c.run())
	assert.Contains(t, c.errors(), "its image has neither bash nor sh")
	assert.Equal(t, 127, c.report().UserExitCode)
}

func TestCommandsAreStrictAndKeepTheirLineNumbers(t *testing.T) {
	for name, commands := range map[string]string{
		"a command fails":            "false\necho NOT",
		"a variable is missing":      "echo $NOT_SET\necho NOT",
		"a part of a pipe fails":     "false | cat\necho NOT",
		"a command that isn't there": "no-such-command\necho NOT",
	} {
		c := newContainer(t, commands)
		assert.NotEqual(t, 0, c.run(), name)
		assert.NotContains(t, c.out(), "NOT", name)
	}
	c := newContainer(t, "true\ntrue\nno-such-command")
	assert.Equal(t, 220, c.run())
	assert.Contains(t, c.errors(), "user.sh: line 3: no-such-command: command not found")
}

func TestAnImageWithoutBashUsesSh(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sh", "cat", "sleep", "true"} {
		require.NoError(t, os.Symlink("/bin/"+name, filepath.Join(dir, name)))
	}
	c := newContainer(t, "echo hello\ncat /nonexistent\necho NOT")
	c.env[0] = "PATH=" + dir
	assert.NotEqual(t, 0, c.run())
	assert.Equal(t, "hello\n", c.out())
}

func TestTheJobsOwnShellGetsTheScript(t *testing.T) {
	c := newContainer(t, "import os\nprint(os.environ['PAI_TASK_INDEX'])")
	c.role().Shell = []string{"python3", "-u"}
	assert.Equal(t, 0, c.run(), c.errors())
	assert.Equal(t, "0\n", c.out())
}

func TestFailuresAreClassifiedAndReported(t *testing.T) {
	for name, c := range map[string]struct {
		commands   string
		code, user int
	}{
		"a syntax error":       {"python3 -c 'a b c'", 231, 1},
		"a missing module":     {"python3 -c 'import no_such_module'", 232, 1},
		"any failure":          {"exit 9", 255, 9},
		"killed":               {"kill -9 $$", 137, 137},
		"a segmentation fault": {"kill -SEGV $$", 139, 139},
	} {
		t.Run(name, func(t *testing.T) {
			k := newContainer(t, c.commands)
			assert.Equal(t, c.code, k.run(), k.errors())
			r := k.report()
			assert.Equal(t, c.code, r.ExitCode)
			assert.Equal(t, c.user, r.UserExitCode)
			assert.Contains(t, k.errors(), fmt.Sprintf("[pai-runtime] failed with exit code %d", c.code))
			assert.FileExists(t, k.path(spec.Home+"/logs/pai-termination-log"))
		})
	}
}

func TestRulesOfTheClusterAreUsedAndBadOnesAreNot(t *testing.T) {
	c := newContainer(t, "echo my special failure; exit 3")
	c.write(spec.Rules, strings.Join([]string{
		"- code: 77", "  phrase: MySpecialFailure", "  issuer: USER_CONTAINER", "  causer: USER_CONTAINER", "  type: USER_FAILURE", "  stage: RUNNING", "  behavior: PERMANENT", "  reaction: NEVER_RETRY", "  reason: it is special", "  repro: [x]", "  solution: [y]",
		"  pattern:", "    runtimeContainerPatterns:", "    - userLogRegex: special failure", "",
	}, "\n"))
	code := c.run()
	if strings.Contains(c.errors(), "can't be used") {
		require.Equal(t, 255, code, "a set that lacks required codes is not used")
	} else {
		require.Equal(t, 77, code)
	}

	c = newContainer(t, "exit 3")
	c.write(spec.Rules, "- code: [")
	assert.Equal(t, 255, c.run())
	assert.Contains(t, c.errors(), "the built-in ones")
}

func TestPluginsRunBeforeInOrderAndAfterInReverse(t *testing.T) {
	c := newContainer(t, "echo main")
	c.plugin("cmd", `{"preCommands":["echo pre1","echo pre1b"],"postCommands":["echo post1"]}`)
	c.plugin("teamwise_storage", `{"storageConfigNames":["x"]}`)
	c.plugin("cmd", `{"callbacks":[{"event":"taskStarts","commands":["echo pre2"]},{"event":"taskSucceeds","commands":["echo post2"]}]}`)
	assert.Equal(t, 0, c.run(), c.errors())
	assert.Equal(t, "main\n", c.out(), "what plugins print is the runtime's")
	var said []string
	for line := range strings.Lines(c.errors()) {
		said = append(said, strings.TrimSpace(line))
	}
	assert.Equal(t, []string{
		"[pai-runtime] pre1", "[pai-runtime] pre1b",
		"[pai-runtime] teamwise_storage does nothing: the job's storages are mounted as volumes",
		"[pai-runtime] pre2", "[pai-runtime] post2", "[pai-runtime] post1",
	}, said)
}

func TestTheFailurePolicyOfAPluginDecides(t *testing.T) {
	c := newContainer(t, "echo main")
	c.plugin("cmd", `{"preCommands":["false"]}`)
	assert.Equal(t, 247, c.run())
	assert.Empty(t, c.out())

	c = newContainer(t, "echo main")
	c.plugin("cmd", `{"preCommands":["false"],"postCommands":["false"]}`)
	c.role().Plugins[0].IgnoreFailure = true
	assert.Equal(t, 0, c.run())
	assert.Equal(t, "main\n", c.out())

	c = newContainer(t, "echo main; exit 4")
	c.plugin("cmd", `{"postCommands":["echo NOT"]}`)
	assert.Equal(t, 255, c.run())
	assert.NotContains(t, c.errors(), "NOT", "nothing follows a program that failed")

	c = newContainer(t, "echo main")
	c.plugin("cmd", `{"postCommands":["exit 3"]}`)
	assert.Equal(t, 255, c.run())
	assert.Equal(t, 3, c.report().UserExitCode)
}

func TestAMistakeInAPluginIsFoundBeforeAnyRuns(t *testing.T) {
	for parameters, want := range map[string]string{
		`{"callbacks":[{"event":"onMonday"}]}`:                       `no event "onMonday"`,
		`{"preCommands":["a"],"callbacks":[{"event":"taskStarts"}]}`: "either callbacks",
		`{"preCommands":"s3cret"}`:                                   "preCommands",
	} {
		c := newContainer(t, "echo main")
		c.plugin("cmd", `{"preCommands":["echo NOT"]}`)
		c.plugin("cmd", parameters)
		assert.Equal(t, 247, c.run())
		assert.Contains(t, c.errors(), want)
		assert.NotContains(t, c.errors(), "NOT")
		assert.NotContains(t, c.errors(), "s3cret")
	}
}

func TestWhatAPluginLeavesInTheBackgroundRunsOn(t *testing.T) {
	c := newContainer(t, "")
	mark := c.path("mark")
	c.role().Command = "until [ -e " + mark + " ]; do sleep 0.05; done"
	c.plugin("cmd", `{"preCommands":["(until [ -e `+mark+`.go ]; do sleep 0.05; done; touch `+mark+`) &"]}`)
	c.role().Command = "touch " + mark + ".go\n" + c.role().Command
	assert.Equal(t, 0, c.run(), c.errors())
}

func TestCodeThatWasSubmittedAlongIsTheWorkingFolder(t *testing.T) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "main.sh", Mode: 0o755, Size: 11, Typeflag: tar.TypeReg}))
	_, err := w.Write([]byte("echo $PWD$1"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of the code" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write(buf.Bytes())
	}))
	defer s.Close()
	sum := sha256.Sum256(buf.Bytes())
	c := newContainer(t, "sh main.sh !")
	c.env = append(c.env, spec.CodeTokenVariable+"=of the code")
	c.spec.Code = &spec.Code{URL: s.URL, SHA256: hex.EncodeToString(sum[:]), Size: int64(buf.Len()), Dir: "/code"}
	assert.Equal(t, 0, c.run(), c.errors())
	assert.Equal(t, c.path("/code")+"!\n", c.out())

	c = newContainer(t, "echo NOT")
	c.env = append(c.env, spec.CodeTokenVariable+"=of the code")
	c.spec.Code = &spec.Code{URL: s.URL, SHA256: hex.EncodeToString(sum[:]), Size: 3, Dir: "/code"}
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), "more than the 3 bytes")

	c = newContainer(t, "echo NOT")
	c.spec.Code = &spec.Code{URL: s.URL, SHA256: hex.EncodeToString(sum[:]), Size: int64(buf.Len()), Dir: "/code"}
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), "refuses the job's token")
}

func TestAHundredMegabytesComeThroughUnchanged(t *testing.T) {
	c := newContainer(t, "head -c 50000000 /dev/zero | tr '\\0' '\\377'; head -c 50000000 /dev/zero; printf 'last line without an end'; exit 5")
	assert.Equal(t, 255, c.run())
	out := c.stdout.Bytes()
	require.Len(t, out, 100_000_000+24)
	assert.True(t, bytes.Equal(out[:50_000_000], bytes.Repeat([]byte{0xff}, 50_000_000)))
	assert.True(t, bytes.Equal(out[50_000_000:100_000_000], make([]byte, 50_000_000)))
	assert.True(t, strings.HasSuffix(string(out), "last line without an end"))
	usage, ok := c.cmd.ProcessState.SysUsage().(*unix.Rusage)
	if ok {
		assert.Less(t, usage.Maxrss, int64(150<<10), "KiB: bounded, whatever the program prints")
	}
	c.report()
}

func TestTheOrderWithinAStreamIsKept(t *testing.T) {
	c := newContainer(t, "for i in $(seq 2000); do echo $i; echo $i >&2; done")
	assert.Equal(t, 0, c.run())
	var want strings.Builder
	for i := 1; i <= 2000; i++ {
		fmt.Fprintln(&want, i)
	}
	assert.Equal(t, want.String(), c.out())
	assert.Equal(t, want.String(), c.errors())
}

func TestASpecThatCannotBeReadIsReported(t *testing.T) {
	c := newContainer(t, "echo")
	c.write(spec.File, `{"version":9}`)
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), "the spec has version 9")
	assert.Equal(t, 247, c.report().ExitCode)
}

func TestOutsideAFrameworkThereIsNoTask(t *testing.T) {
	c := newContainer(t, "echo")
	c.env = append(c.env, spec.TaskVariable+"=")
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), "doesn't say which task of a job this is")
	c = newContainer(t, "echo")
	c.env = append(c.env, spec.TaskVariable+"=mainrole/one/0/0")
	assert.Equal(t, 247, c.run())
	assert.Contains(t, c.errors(), `"one" isn't a number`)
}

// This runtime must also run in pods of an earlier paictl.
func TestATaskIsToldWhichItIsByItsOldNames(t *testing.T) {
	c := newContainer(t, "echo $FC_TASKROLE_NAME $FC_TASK_INDEX $PAI_JOB_ATTEMPT_ID $PAI_TASK_ATTEMPT_ID")
	c.env = append(c.env, spec.TaskVariable+"=", "FC_TASKROLE_NAME=mainrole", "FC_TASK_INDEX=0", "FC_FRAMEWORK_ATTEMPT_ID=7", "FC_TASK_ATTEMPT_ID=1")
	assert.Equal(t, 0, c.run())
	assert.Equal(t, "mainrole 0 7 1\n", c.out())
}

// The tokens for the job's addresses and code are only for the runtime.
func TestAProgramDoesNotGetWhatTheRuntimeIsTold(t *testing.T) {
	c := newContainer(t, "env | grep -c -e PAI_TASK= -e PAI_PEERS_TOKEN -e PAI_CODE_TOKEN || true; echo $PAI_TASK_INDEX")
	c.env = append(c.env, spec.PeersTokenVariable+"=token", spec.CodeTokenVariable+"=token")
	assert.Equal(t, 0, c.run())
	assert.Equal(t, "0\n0\n", c.out())
}

func TestAPortOfTheMachineThatIsTakenIsFound(t *testing.T) {
	c := newContainer(t, "echo NOT")
	c.spec.HostNetwork, c.spec.PortStart, c.spec.PortEnd = true, 21000, 39000
	port := peers.HostPort("some-uid", "http", 0, 21000, 39000)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer l.Close()
	assert.Equal(t, 253, c.run())
	assert.Contains(t, c.errors(), fmt.Sprintf("port %d (http) is in use", port))
	assert.Equal(t, 253, c.report().ExitCode)
}

func TestTwoOwnPortsThatWereDrawnEqualAreFound(t *testing.T) {
	c := newContainer(t, "echo NOT")
	c.spec.HostNetwork, c.spec.PortStart, c.spec.PortEnd = true, 21000, 21001
	assert.Equal(t, 253, c.run())
	assert.Contains(t, c.errors(), "was chosen for both")
}

func TestATaskOfNobodyRunsWhereItMayNotWriteHosts(t *testing.T) {
	tier.More(t, "root")
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	c := newContainer(t, "id -u; cat "+"$PAI_HOSTFILE >/dev/null || true")
	require.NoError(t, os.Chmod(c.path("/etc/hosts"), 0o644))
	c.spec.Roles = append(c.spec.Roles, spec.Role{Name: "other", Object: "other", Instances: 1, Command: "x"})
	c.spec.Gang = false
	c.prefix = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	c.env = append(c.env, "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1")
	// Only root may read the temporary folder of the tests.
	for dir := c.root; dir != "/" && strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o777))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for dir := filepath.Dir(self); strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	assert.Equal(t, 0, c.run(), c.errors())
	assert.Equal(t, "65534\n", c.out())
	assert.Contains(t, c.log(), "come from DNS only")
	assert.Equal(t, "127.0.0.1 localhost\n", c.read("/etc/hosts"))
}

func TestAGPUThatIsLostIsSeenThoughTheProgramSaysNothing(t *testing.T) {
	c := newContainer(t, "exit 1")
	c.role().GPU = 1
	c.write("/bin/nvidia-smi", "#!/bin/sh\necho 'Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU'; exit 15\n")
	require.NoError(t, os.Chmod(c.path("/bin/nvidia-smi"), 0o755))
	c.env[0] = "PATH=" + c.path("/bin") + ":" + os.Getenv("PATH")
	assert.Equal(t, 118, c.run(), c.errors())
	assert.Contains(t, c.errors(), "[pai-runtime] Unable to determine the device handle")
}

func TestASickGPUIsReportedAndTheTaskIsToBeTriedAgain(t *testing.T) {
	c := newContainer(t, "exit 1")
	c.role().GPU = 1
	c.write(notice.Folder+"/"+notice.File, `{"gpus": [{"index": 3, "uuid": "GPU-1a2b", "reason": "XID 79: it has fallen off the bus"}]}`)
	assert.Equal(t, 116, c.run(), c.errors())
	r := c.report()
	assert.Equal(t, 116, r.ExitCode)
	assert.Equal(t, 1, r.UserExitCode)
	assert.Equal(t, "GPU 3 (GPU-1a2b): XID 79: it has fallen off the bus", r.GPUFault)
	assert.Contains(t, c.errors(), "[pai-runtime] failed with exit code 116, container GPU fault: ")
}

func TestASickGPUIsReportedThoughTheClustersRulesDoNotKnowIt(t *testing.T) {
	c := newContainer(t, "exit 1")
	c.role().GPU = 1
	c.write(notice.Folder+"/"+notice.File, `{"gpus": [{"index": 3, "uuid": "GPU-1a2b", "reason": "XID 79: it has fallen off the bus"}]}`)
	c.write(spec.Rules, "- {code: 77, phrase: Mine, pattern: {runtimeContainerPatterns: [{exitCode: 1}]}}\n")
	assert.Equal(t, 77, c.run(), c.errors())
	assert.Equal(t, "GPU 3 (GPU-1a2b): XID 79: it has fallen off the bus", c.report().GPUFault)
}

func TestATaskThatSucceedsOnASickGPUSucceeds(t *testing.T) {
	c := newContainer(t, "exit 0")
	c.role().GPU = 1
	c.write(notice.Folder+"/"+notice.File, `{"gpus": [{"index": 3, "uuid": "GPU-1a2b", "reason": "XID 79", "uncorrected": true}]}`)
	assert.Equal(t, 0, c.run(), c.errors())
	assert.Empty(t, c.errors())
}
