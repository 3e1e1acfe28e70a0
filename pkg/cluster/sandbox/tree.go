package sandbox

import (
	"fmt"
	"os"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

// removeTree removes a directory and its content. It returns an error if a file system is mounted in the directory, because the mounted files belong
// to another program.
func removeTree(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read the mounts: %w", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1]+"/", dir+"/") {
			return hint.Errorf("unmount it (umount "+f[1]+"), then run the command again", "something is mounted at %s", f[1])
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}
