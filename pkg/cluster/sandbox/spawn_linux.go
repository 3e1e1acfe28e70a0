package sandbox

import "syscall"

// The namespaces of a host's first script. A full host gets the others from systemd-nspawn.
const (
	cloneFull  = syscall.CLONE_NEWNS
	cloneLight = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS
)

// detached makes a process that outlives ours and its terminal, in new namespaces.
func detached(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
}

// attached makes a program end with the thread that started it, so that it doesn't
// continue to write after our own sudden end.
func attached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
