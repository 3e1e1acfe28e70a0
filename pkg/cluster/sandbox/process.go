package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markVar is the environment variable that marks the processes of a sandbox. The mark survives a crash of paictl. Unlike a process id in a file, it
// can't refer to another program.
const markVar = "PAICTL_SANDBOX"

// pollInterval is the time between two checks of a state whose changes can't be watched.
const pollInterval = 20 * time.Millisecond

func mark(dir, name string) string { return markVar + "=" + dir + ":" + name }

// findProcesses returns the ids of the sandbox's processes, by the name of the host or program. It excludes processes inside of a host, because
// they end with the host.
func findProcesses(dir string) (map[string][]int, error) {
	found := map[string][]int{}
	err := eachProcess(func(pid int) {
		if name, ok := markOf(pid, dir); ok {
			found[name] = append(found[name], pid)
		}
	})
	return found, err
}

// findUsers returns the directories of sandboxes whose hosts run on an image in the cache.
func findUsers(cache string) ([]string, error) {
	var dirs []string
	err := eachProcess(func(pid int) {
		base, _ := variable(pid, "BASE=")
		owner, marked := variable(pid, markVar+"=")
		if dir, _, _ := strings.Cut(owner, ":"); marked && filepath.Dir(base) == filepath.Clean(cache) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	})
	return dirs, err
}

func eachProcess(f func(pid int)) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("look for the sandbox's processes: %w", err)
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			f(pid)
		}
	}
	return nil
}

// markOf returns the host or program name in the mark of a living process. It returns false if the process doesn't belong to the sandbox in dir.
func markOf(pid int, dir string) (name string, ok bool) { return variable(pid, mark(dir, "")) }

// variable returns the rest of the first environment variable of a process that begins with prefix. It returns false if no variable has the prefix.
// It also returns false if the process has ended or belongs to another user.
func variable(pid int, prefix string) (value string, ok bool) {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", false
	}
	for v := range strings.SplitSeq(string(env), "\x00") {
		if value, ok := strings.CutPrefix(v, prefix); ok {
			return value, true
		}
	}
	return "", false
}

// signalMarked sends a signal to a process that belongs to the sandbox. It opens a handle of the process before it reads the mark, so that the
// signal can't reach another process with the same id.
func signalMarked(pid int, dir, name string, sig syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil // the process has ended
	}
	defer func() { _ = p.Release() }()
	if have, ok := markOf(pid, dir); !ok || have != name {
		return nil
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to process %d: %w", sig, pid, err)
	}
	return nil
}

func children(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var out []int
	for _, path := range stats {
		if f := statOf(path); len(f) < 2 || f[1] != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			out = append(out, child)
		}
	}
	return out
}

// statOf returns the fields of /proc/PID/stat after the process name: state, parent, and so on. The name is in parentheses and may contain any
// character.
func statOf(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// alive reports whether a process exists and isn't a zombie, because a zombie holds no resources.
func alive(pid int) bool {
	f := statOf(fmt.Sprintf("/proc/%d/stat", pid))
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
}

// poll calls done until done returns true or an error, or until ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

// pollFor is like poll, but with a time limit. It returns false after the limit.
func pollFor(ctx context.Context, limit time.Duration, done func() (bool, error)) (bool, error) {
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := poll(inner, done)
	if err != nil && inner.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}
