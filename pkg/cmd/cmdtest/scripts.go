// Package cmdtest runs command lines in tests as a user would type them.
// In: txtar scripts in testdata/script. Out: a test per script. Scripts can use an additional command, "exits CODE COMMAND ARGS...".
package cmdtest

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Main makes the test binary behave as paictl in scripts, and runs the tests. The function paictl is a parameter, because the packages of the
// commands can't import the package that assembles the commands.
func Main(m testscript.TestingM, paictl func()) {
	testscript.Main(m, map[string]func(){"paictl": paictl})
}

// Run runs the scripts in testdata/script, each in a separate folder and with a separate home.
func Run(t *testing.T) {
	t.Helper()
	RunIn(t, "testdata/script", nil)
}

// RunIn runs the scripts in the folder dir. env contains additional environment variables.
func RunIn(t *testing.T, dir string, env map[string]string) {
	t.Helper()
	run(t, testscript.Params{Dir: dir}, env)
}

// RunFiles runs the given scripts. env contains additional environment variables.
func RunFiles(t *testing.T, files []string, env map[string]string) {
	t.Helper()
	run(t, testscript.Params{Files: files}, env)
}

// run runs scripts. The condition [signed-in] is true if the environment sets a server.
func run(t *testing.T, p testscript.Params, env map[string]string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:   p.Dir,
		Files: p.Files,
		Condition: func(cond string) (bool, error) {
			if cond != "signed-in" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return env["PAICTL_SERVER"] != "", nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_CONFIG_HOME", "")
			e.Setenv("SSH_AUTH_SOCK", "")
			for name, value := range env {
				e.Setenv(name, value)
			}
			return nil
		},
	})
}

// exits implements "exits CODE COMMAND ARGS...". The test fails unless the command exits with this code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("run %s: %v", args[1], err)
		}
		got = ended.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
