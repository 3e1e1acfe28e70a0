//go:build !linux

package sandbox

import "syscall"

// Hosts need Linux, and Up says so before these are used.
const cloneFull, cloneLight = 0, 0

func detached(uintptr) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func attached() *syscall.SysProcAttr { return nil }
