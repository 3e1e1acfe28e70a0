package services

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Process identifies a process on a host, so that another process on the same host can check whether it still runs.
type Process struct {
	User string `json:"user"`
	Host string `json:"host"`
	// Boot and Namespace distinguish hosts with the same name, and containers with separate PIDs.
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	PID       int    `json:"pid"`
	// Started is the start time of the process according to the kernel. It distinguishes processes that had the same PID.
	Started string `json:"started,omitempty"`
}

// ThisProcess returns the current process.
func ThisProcess() Process {
	p := Process{User: "unknown", Host: "unknown", PID: os.Getpid()}
	if u, err := user.Current(); err == nil {
		p.User = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		p.Host = h
	}
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		p.Boot = strings.TrimSpace(string(b))
	}
	p.Namespace, _ = os.Readlink("/proc/self/ns/pid")
	p.Started, _ = startTime(procFolder, p.PID)
	return p
}

func (p Process) String() string { return fmt.Sprintf("%s@%s, pid %d", p.User, p.Host, p.PID) }

// deadSeenFrom reports whether p has certainly exited. Only a process o of the same boot and the same PID namespace can determine that.
func (p Process) deadSeenFrom(o Process) bool {
	if p.Boot == "" || p.Boot != o.Boot || p.Host != o.Host || p.Namespace == "" || p.Namespace != o.Namespace || p.Started == "" {
		return false
	}
	started, known := startTime(procFolder, p.PID)
	return known && started != p.Started
}

const procFolder = "/proc"

// startTime returns the start time of a process in clock ticks since boot, or "" if the process doesn't exist. A zombie counts as exited. known is
// false if /proc hides the process because it belongs to another user (hidepid).
func startTime(proc string, pid int) (ticks string, known bool) {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	// The name of the program is in parentheses and may contain any character.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", true
	}
	return fields[19], true
}
