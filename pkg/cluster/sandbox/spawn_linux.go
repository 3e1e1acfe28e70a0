package sandbox

import "syscall"

// The namespaces in which the script of a host starts. For a full host, systemd-nspawn creates the remaining namespaces.
const (
	cloneFull  = syscall.CLONE_NEWNS
	cloneLight = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS
)

// detached returns the attributes of a process in new namespaces. The process survives the end of this process and of its terminal.
func detached(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
}

// attached returns the attributes of a process that ends with the thread that has started it. Such a process doesn't continue to write files after
// a sudden end of this process.
func attached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
