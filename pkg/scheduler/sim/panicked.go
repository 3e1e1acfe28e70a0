package sim

import (
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// maxFrames is the maximum number of reported frames of a panic. Four frames are enough to find the panic, and fit on one line.
const maxFrames = 4

// panicked returns an error with a panic of the scheduler and its position in the code. It must be called during the recovery
// from the panic.
func panicked(p any) error {
	var at []string
	for line := range strings.Lines(string(debug.Stack())) {
		line = strings.TrimSpace(line)
		if place, _, ok := strings.Cut(line, " +0x"); ok && strings.Contains(place, "/pkg/scheduler/") && !strings.HasSuffix(filepath.Dir(place), "/sim") {
			at = append(at, filepath.Base(filepath.Dir(place))+"/"+filepath.Base(place))
		}
	}
	return fmt.Errorf("the scheduler panicked, which is a bug: %v (%s)", p, strings.Join(at[:min(len(at), maxFrames)], ", "))
}
