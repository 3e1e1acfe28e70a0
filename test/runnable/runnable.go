// Package runnable writes programs that a test runs, and looks for those of the machine.
package runnable

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Write writes a program. While it is open no process of this one is started, which would hold it open until it has become
// another program: Linux refuses to run a file that is open for writing ("text file busy").
func Write[T string | []byte](t testing.TB, file string, content T) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(file, []byte(content), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// Need returns the path of a program of the machine, and skips the test without it. hack/packages.sh installs those that the
// gate needs, which fails if one of its tests is skipped.
func Need(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("this machine has no " + name)
	}
	return path
}
