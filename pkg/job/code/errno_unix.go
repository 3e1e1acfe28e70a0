//go:build unix

package code

import "syscall"

// errNotFolder is met at .git/info in a worktree, where .git is a file.
const errNotFolder = syscall.ENOTDIR
