package servertest

import (
	"errors"
	"os/exec"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/test/programs"
)

// RuntimeCommand returns the arguments of the job runtime if the command first sets the environment of the task. An example is: runtime exec --
// runtime cp-in FOLDER. It returns nil for other commands.
func RuntimeCommand(p *jobtest.Process) []string {
	if at := slices.Index(p.Args, "--"); at >= 0 && len(p.Args) > at+2 {
		return p.Args[at+2:]
	}
	return nil
}

// RunRuntime returns a function that runs the real pai-runtime in a folder, like the container of a task.
func RunRuntime(t testing.TB, dir string) func(*jobtest.Process) *metav1.Status {
	t.Helper()
	runtime := programs.Program(t, "pai-runtime")
	return func(p *jobtest.Process) *metav1.Status {
		c := exec.CommandContext(t.Context(), runtime, RuntimeCommand(p)...)
		c.Dir, c.Stdout, c.Stderr = dir, p.Stdout, p.Stderr
		if p.Query.Get("stdin") == "true" {
			c.Stdin = p.Stdin
		}
		err := c.Run()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return jobtest.Exited(failed.ExitCode())
		}
		if err != nil {
			return jobtest.NotStarted(err.Error())
		}
		return jobtest.Exited(0)
	}
}
