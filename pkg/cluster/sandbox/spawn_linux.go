package sandbox

import "syscall"

// These are the namespaces of a host's first script. systemd-nspawn makes the other namespaces of a full host.
const (
	cloneFull  = syscall.CLONE_NEWNS
	cloneLight = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS
)

// detached returns the attributes of a process in new namespaces that outlives this one and its terminal.
func detached(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
}

// attached returns attributes that end a program with the thread that started it, so that the program doesn't continue to write if this process
// ends suddenly.
func attached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
