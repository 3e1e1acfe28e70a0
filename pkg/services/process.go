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

// Process identifies a program on a host, so that another program on that host can check whether it
// still runs.
type Process struct {
	User string `json:"user"`
	Host string `json:"host"`
	// Boot and Namespace distinguish hosts with the same name, and containers with their own pids.
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	PID       int    `json:"pid"`
	// Started is the kernel's start time of the process: pids are reused.
	Started string `json:"started,omitempty"`
}

// ThisProcess returns the running program.
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

// deadSeenFrom reports whether p has certainly exited. Only a process of the same boot and the same PID namespace can
// determine that.
func (p Process) deadSeenFrom(o Process) bool {
	if p.Boot == "" || p.Boot != o.Boot || p.Host != o.Host || p.Namespace == "" || p.Namespace != o.Namespace || p.Started == "" {
		return false
	}
	started, known := startTime(procFolder, p.PID)
	return known && started != p.Started
}

const procFolder = "/proc"

// startTime returns the start time of a process in clock ticks since boot, or "" if it doesn't exist. A zombie counts as exited. known
// is false for another user's process if /proc hides those (hidepid).
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
