package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type cgroups struct {
	v1      []string // mount points of the version 1 hierarchies
	unified string   // mount point of version 2, or ""
	systemd bool     // systemd manages the groups, and creates the guests' groups itself
}

func machineCgroups() (cgroups, error) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return cgroups{}, fmt.Errorf("read the mounts: %w", err)
	}
	c := parseCgroups(string(mounts))
	c.systemd = exists("/run/systemd/system")
	return c, nil
}

func parseCgroups(mounts string) cgroups {
	var c cgroups
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		switch f[2] {
		case "cgroup":
			c.v1 = append(c.v1, f[1])
		case "cgroup2":
			if c.unified == "" {
				c.unified = f[1]
			}
		}
	}
	return c
}

// isV1 reports whether the machine uses cgroup version 1. The kubelet rejects version 1 by default.
func (c cgroups) isV1() bool { return len(c.v1) > 0 }

func (c cgroups) groups(name string) []string {
	var dirs []string
	for _, point := range c.v1 {
		dirs = append(dirs, filepath.Join(point, name))
	}
	if c.unified != "" {
		dirs = append(dirs, filepath.Join(c.unified, name))
	}
	return dirs
}

// create creates a group for a guest in each hierarchy, and returns the group's directories. Guests in the same group would end each other's
// processes. If systemd manages the groups, create does nothing, because systemd-nspawn requests a scope with delegation.
func (c cgroups) create(name string) ([]string, error) {
	if c.systemd {
		return nil, nil
	}
	dirs := c.groups(name)
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make a cgroup: %w", err)
		}
		if err := inheritCpuset(dir); err != nil {
			return nil, fmt.Errorf("set up the cgroup %s: %w", dir, err)
		}
	}
	if !c.isV1() && c.unified != "" {
		delegate(c.unified)
	}
	return dirs, nil
}

// inheritCpuset sets the values that a new cpuset group of version 1 needs before its first process.
func inheritCpuset(dir string) error {
	if !exists(filepath.Join(dir, "cpuset.cpus")) || !exists(filepath.Join(dir, "cgroup.clone_children")) {
		return nil
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), b, 0); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0)
}

// delegate enables the version 2 controllers that the kubelet needs for guests. It ignores errors, because the kubelet reports missing controllers.
func delegate(root string) {
	for _, controller := range []string{"cpu", "cpuset", "io", "memory", "pids"} {
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+"+controller), 0)
	}
}

// remove removes a guest's groups. It retries for a while, because groups can be busy after the guest's last process has ended.
func (c cgroups) remove(ctx context.Context, name string) error {
	for _, dir := range c.groups(name) {
		if !exists(dir) {
			continue
		}
		var last error
		ok, err := pollFor(ctx, 5*time.Second, func() (bool, error) {
			last = removeGroups(dir)
			return last == nil, nil
		})
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("remove the cgroup %s: %w", dir, last)
		}
	}
	return nil
}

// removeGroups removes a group and all groups below it, the deepest groups first.
func removeGroups(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeGroups(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
