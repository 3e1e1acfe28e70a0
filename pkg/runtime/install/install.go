// Package install makes the runtime available to the user's container. In: the running program. Out: a copy of the
// program in a folder, or a link to the program.
package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Name is the file name of the runtime in its folder.
const Name = "runtime"

// Into copies the program at the path self to dir/runtime, and replaces an existing copy atomically. All users may execute the
// copy, because the user's container may run as any user.
func Into(self, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	in, err := os.Open(self)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := renameio.NewPendingFile(filepath.Join(dir, Name), renameio.WithPermissions(0o755), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Cleanup()) }()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("copy the runtime into %s: %w", dir, err)
	}
	return out.CloseAtomicallyReplace()
}

// Link makes dir/runtime a link to the program at the path self. It does nothing if dir/runtime exists.
func Link(self, dir string) error {
	if err := os.Symlink(self, filepath.Join(dir, Name)); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
