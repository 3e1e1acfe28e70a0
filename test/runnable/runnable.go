// Package runnable writes programs that a test runs.
package runnable

import (
	"os"
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
