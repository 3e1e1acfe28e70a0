// Package catalogue runs the built-in job templates on the platform, with stand-ins for the programs in their images.
// In: etcd and an API server, and pai-controller, pai-scheduler, pai-server, pai-runtime and paictl as processes; only the kubelet is simulated.
// Out: the logs of the jobs, in which the stand-ins write their arguments and environment.
package catalogue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/test/platform"
	"github.com/openpai/paictl/test/programs"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) { os.Exit(platform.Run(m)) }

// patience is how long one command may take on a busy machine.
const patience = 3 * time.Minute

// machines is the configuration of two nodes with four GPUs each.
const machines = `physicalCluster:
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: test-1}
    - {cellType: NODE, cellAddress: test-2}
virtualClusters:
  default:
    virtualCells: [{cellType: NODE, cellNumber: 2}]
`

// world is a platform with two users. The operator has a kubeconfig, and ann is signed in.
type world struct {
	*platform.Platform
	t             *testing.T
	operator, ann []string // their environments
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tier.More(t, "a control plane with all of our programs")
	w := &world{t: t, Platform: platform.Start(t, platform.Options{Nodes: []string{"test-1", "test-2"}, Machines: machines, Host: "127.77.255.1"})}
	w.operator = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + w.Kubeconfig, "PAICTL_USER=operator"}
	home := t.TempDir()
	w.ann = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + home}
	const password = "correct horse battery"
	for _, args := range [][]string{{"group", "add", "team", "--vc", "default"}, {"user", "add", "ann", "--group", "team", "--password-stdin"}} {
		w.does(w.operator, password, args...)
	}
	w.does(w.ann, password, "login", w.URL, "--user", "ann", "--ca", w.CA)
	require.NoError(t, os.CopyFS(w.Gates, os.DirFS("testdata")))
	return w
}

// runs runs paictl, and returns its exit code and all of its output.
func (w *world) runs(who []string, input string, args ...string) (code int, out string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, programs.Program(w.t, "paictl"), args...)
	cmd.Env, cmd.Stdin = who, strings.NewReader(input)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	require.NoError(w.t, ctx.Err(), "paictl %v doesn't end: %s", args, &text)
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		require.NoError(w.t, err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// does runs paictl, which must succeed, and returns its output.
func (w *world) does(who []string, input string, args ...string) string {
	w.t.Helper()
	code, out := w.runs(who, input, args...)
	require.Zero(w.t, code, "paictl %v: %s", args, out)
	return out
}

// secret is a text that a person writes in place of a masked secret.
const secret = `it's <"$HOME"> & more`

// file writes the job file of a template as a person would change it. The file contains secrets instead of masks, and doesn't contain the storage,
// which this cluster doesn't have. In addition, its commands find the stand-ins before other programs. more holds lines that are added to extras.
func (w *world) file(t *testing.T, name string, more ...string) string {
	t.Helper()
	code, text := w.runs(w.ann, "", "job", "template", "show", name, "--config")
	require.Zero(t, code, text)
	if before, warned := strings.CutSuffix(text, "its secrets are masked: write them into the file before it is submitted\n"); warned {
		text = strings.ReplaceAll(before, `"`+protocol.Masked+`"`, `"`+strings.ReplaceAll(secret, `"`, `\"`)+`"`)
	}
	text = strings.Replace(text, "  storages:\n    - name: team\n      mountPath: /data\n", "  gangAllocation: true\n", 1)
	if len(more) > 0 {
		text = strings.Replace(text, "\nextras:\n", "\nextras:\n  "+strings.Join(more, "\n  ")+"\n", 1)
	}
	parsed, findings := protocol.Parse(name, []byte(text))
	require.NoError(t, findings.Err())
	text += "deployments:\n  - name: test\n    taskRoles:\n"
	for _, role := range parsed.Roles {
		text += fmt.Sprintf("      %s: {preCommands: [%q]}\n", role.Name, "PATH="+w.Gates+"/bin:$PATH")
	}
	file := filepath.Join(t.TempDir(), name+".yaml")
	require.NoError(t, os.WriteFile(file, []byte(text+"defaults: {deployment: test}\n"), 0o600))
	return file
}

// succeeds submits a job, and waits until it has succeeded.
func (w *world) succeeds(t *testing.T, who []string, name string, args ...string) {
	t.Helper()
	w.does(who, "", append([]string{"job", "submit"}, args...)...)
	if code, out := w.runs(who, "", "job", "wait", name); code != 0 {
		_, log := w.runs(who, "", "job", "logs", name)
		require.Fail(t, "the job failed", "%s: %s%s", name, out, log)
	}
}

// log returns the lines in a task's log that the job runtime hasn't written.
func (w *world) log(who []string, name, task string) []string {
	w.t.Helper()
	lines := strings.Split(strings.TrimSpace(w.does(who, "", "job", "logs", name, "--task", task)), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "[pai-runtime]") })
}

// says asserts that the logs of a job's tasks contain exactly the given lines.
func (w *world) says(t *testing.T, who []string, name string, want map[string][]string) {
	t.Helper()
	for task, lines := range want {
		assert.Equal(t, lines, w.log(who, name, task), "%s %s", name, task)
	}
}
