// Package runnable writes programs that a test runs, and finds programs of the machine.
package runnable

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Write writes an executable file. While the file is open, Write keeps this process from starting another process. The other process would inherit
// the open file until it executes its program, and Linux doesn't run a file that is open for writing ("text file busy").
func Write[T string | []byte](t testing.TB, file string, content T) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(file, []byte(content), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// Need returns the path of a program of the machine. If the machine doesn't have the program, it skips the test. For the gate, which fails if a test
// is skipped, hack/packages.sh installs the programs.
func Need(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("this machine has no " + name)
	}
	return path
}
