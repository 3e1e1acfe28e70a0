package sandbox

import "syscall"

// The namespaces in which the script of a host starts. For a full host, systemd-nspawn creates the other namespaces.
const (
	cloneFull  = syscall.CLONE_NEWNS
	cloneLight = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS
)

// detached returns the attributes of a process in new namespaces that continues to run after this process and its terminal have ended.
func detached(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Cloneflags: flags}
}

// attached returns attributes that make a process end with the thread that started it, so that the process doesn't continue to write if this process
// ends suddenly.
func attached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
