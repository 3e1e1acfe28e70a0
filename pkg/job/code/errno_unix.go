//go:build unix

package code

import "syscall"

// errNotFolder is the error for opening .git/info in a git worktree, where .git is a file.
const errNotFolder = syscall.ENOTDIR
