package runnable

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// TestOthersMayStartProgramsMeanwhile would fail in most runs if Write didn't use the lock.
func TestOthersMayStartProgramsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 25 {
				file := filepath.Join(dir, strconv.Itoa(i)+"-"+strconv.Itoa(j))
				Write(t, file, "#!/bin/sh\n")
				if err := exec.CommandContext(t.Context(), file).Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
