package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// git runs git in the current folder, and returns its output without the last newline.
func git(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !gitsOwn(name) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, owned()...), env...)
	out, err := cmd.Output()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(ended.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// owned returns environment variables that make git accept a checkout that belongs to another user, as on some CI systems.
func owned() []string {
	n, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT")) // 0 if it is not set
	return []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", n+1), fmt.Sprintf("GIT_CONFIG_KEY_%d=safe.directory", n), fmt.Sprintf("GIT_CONFIG_VALUE_%d=*", n)}
}

// gitsOwn reports whether git sets a variable for its hooks. With such a variable, git in a test would use this checkout.
func gitsOwn(name string) bool {
	return slices.Contains([]string{"GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}, name)
}

// treeOf returns git's hash of all files in the checkout, committed or not. It leaves out files that git ignores.
func treeOf(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "paictl-tier-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	index := filepath.Join(dir, "index")
	// With a copy of the index, git doesn't need to read all files.
	if own, err := git(ctx, nil, "rev-parse", "--git-path", "index"); err == nil {
		b, err := os.ReadFile(own)
		if err == nil {
			err = os.WriteFile(index, b, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	env := []string{"GIT_INDEX_FILE=" + index}
	if _, err := git(ctx, env, "add", "--all", "."); err != nil {
		return "", err
	}
	return git(ctx, env, "write-tree")
}

// existing returns those of the files that exist, because git also lists files that are deleted but not committed.
func existing(files []string) ([]string, error) {
	var out []string
	for _, file := range files {
		_, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, nil
}
