package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

// WriteFolder writes either all files into dir or no file. It first writes and syncs temporary files beside their targets, and then renames them.
// If a rename fails, it undoes the earlier renames. If force isn't set and a file exists, it returns an error with the existing files. private
// reports whether only the owner may read a file.
func WriteFolder(dir string, files map[string][]byte, private func(name string) bool, force bool) error {
	if existing := existingFiles(dir, files); len(existing) > 0 && !force {
		return hint.Errorf("give -f to replace them, or -o another folder; nothing was written",
			"%s: %s", alreadyExist(len(existing)), strings.Join(existing, ", "))
	}
	write := writeInto
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		write = writeFresh
	}
	if err := write(dir, files, private); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// writeFresh creates a folder with all its files atomically. It uses a single rename.
func writeFresh(dir string, files map[string][]byte, private func(string) bool) error {
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, ".paictl-")
	if err != nil {
		return err
	}
	err = errors.Join(os.Chmod(temp, 0o755), writeTemporary(temp, files, private), syncFolder(temp))
	if err == nil {
		err = os.Rename(temp, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return syncFolder(parent)
}

func writeTemporary(temp string, files map[string][]byte, private func(string) bool) error {
	for _, name := range sortedKeys(files) {
		mode := fs.FileMode(0o644)
		if private(name) {
			mode = 0o600
		}
		if err := writeSynced(filepath.Join(temp, name), files[name], mode); err != nil {
			return err
		}
	}
	return nil
}

func alreadyExist(n int) string {
	if n == 1 {
		return "one file already exists"
	}
	return fmt.Sprintf("%d files already exist", n)
}

func existingFiles(dir string, files map[string][]byte) []string {
	var out []string
	for _, name := range sortedKeys(files) {
		p := filepath.Join(dir, name)
		if _, err := os.Lstat(p); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// writeInto writes files into an existing folder. After an error, it restores the previous files.
func writeInto(dir string, files map[string][]byte, private func(string) bool) (err error) {
	temp, err := os.MkdirTemp(dir, ".paictl-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := writeTemporary(temp, files, private); err != nil {
		return err
	}
	names := sortedKeys(files)
	var done []string
	defer func() {
		if err != nil {
			restore(dir, temp, done)
		}
	}()
	for _, name := range names {
		target := filepath.Join(dir, name)
		if err := keepOld(target, filepath.Join(temp, name+".old")); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(temp, name), target); err != nil {
			restore(dir, temp, []string{name})
			return err
		}
		done = append(done, name)
	}
	return syncFolder(dir)
}

// keepOld preserves the old file for a restore. It creates a second link to the file, or a copy if the file system doesn't support links.
func keepOld(target, backup string) error {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder", target)
	}
	if os.Link(target, backup) == nil {
		return nil
	}
	old, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	return writeSynced(backup, old, info.Mode().Perm())
}

func restore(dir, temp string, names []string) {
	for _, name := range names {
		target, backup := filepath.Join(dir, name), filepath.Join(temp, name+".old")
		if _, err := os.Lstat(backup); err == nil {
			_ = os.Rename(backup, target)
			continue
		}
		_ = os.Remove(target)
	}
}

func writeSynced(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
