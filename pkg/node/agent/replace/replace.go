// Package replace writes files atomically. A concurrent reader gets either the complete new content or the previous content. In: a name and its
// content. Out: the file, or an error and the previous file.
package replace

import (
	"os"
	"path/filepath"
)

// File writes a file atomically, with the permissions in mode. An interrupted write leaves a file whose name begins with ".new-".
func File(name string, data []byte, mode os.FileMode) error { return write(name, data, mode, false) }

// Durably is like File, but returns only after the new content would survive a power failure.
func Durably(name string, data []byte, mode os.FileMode) error { return write(name, data, mode, true) }

func write(name string, data []byte, mode os.FileMode, durable bool) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err == nil {
		err = f.Chmod(mode)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil || !durable {
		return err
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return folder.Sync()
}
