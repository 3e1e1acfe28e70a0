//go:build !linux

package sandbox

import "syscall"

// Hosts require Linux. On other systems, Up returns an error before it uses these constants.
const cloneFull, cloneLight = 0, 0

func detached(uintptr) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func attached() *syscall.SysProcAttr { return nil }
