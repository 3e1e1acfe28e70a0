package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Remove deletes the content of the folder name below root. Remove also deletes the folder itself unless keepFolder is set. Remove returns nil if the
// folder doesn't exist. Remove returns an error for a mount point. Remove stops at a mount point inside the folder, because the mounted files don't
// belong to the volume.
func Remove(root *os.Root, name string, keepFolder bool) error {
	parts, err := split(name)
	if err != nil {
		return err
	}
	last := len(parts) - 1
	parent, err := descend(root, parts[:last], false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	defer parent.Close()
	switch err := removeDir(parent, parts[last], keepFolder); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// removeDir empties a folder, and removes it unless keepFolder is set.
func removeDir(parent *os.Root, name string, keepFolder bool) error {
	dir, err := step(parent, name, false)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := refuseMount(dir); err != nil {
		return err
	}
	for {
		names, err := someNames(dir)
		if err != nil {
			return cause(err)
		}
		if len(names) == 0 {
			break
		}
		for _, name := range names {
			if err := removeEntry(dir, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if keepFolder {
		return nil
	}
	return cause(parent.Remove(name))
}

// someNames returns the first names in a folder. someNames opens the folder for each call, because a reader may skip entries while other entries are
// deleted.
func someNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(1000)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	return names, err
}

// removeEntry removes an entry of a volume. removeEntry removes a link without following it.
func removeEntry(dir *os.Root, name string) error {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return cause(err)
	case info.IsDir():
		return removeDir(dir, name, false)
	}
	return cause(dir.Remove(name))
}

// refuseMount returns an error if an open folder is a mount point. refuseMount queries the kernel, because a folder that is mounted from the same
// file system has the same device number.
func refuseMount(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return cause(err)
	}
	defer f.Close()
	var st unix.Statx_t
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st)
	switch {
	case err != nil:
		return fmt.Errorf("ask whether it is a mount point: %w", err)
	case st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0:
		return errors.New("this kernel can't say whether it is a mount point (Linux 5.8 can)")
	case st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return errors.New("is a mount point; unmount it first")
	}
	return nil
}
