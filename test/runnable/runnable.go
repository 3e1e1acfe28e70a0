// Package runnable writes programs that a test runs, and finds programs of the machine.
package runnable

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Write writes a program. While the file is open, this process starts no other process. A new process would hold the file open until it has become
// another program: Linux doesn't run a file that is open for writing ("text file busy").
func Write[T string | []byte](t testing.TB, file string, content T) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(file, []byte(content), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// Need returns the path of a program of the machine, and skips the test without it. hack/packages.sh installs the programs for the gate, which
// fails if one of its tests is skipped.
func Need(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("this machine has no " + name)
	}
	return path
}
