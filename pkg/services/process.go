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

// Process identifies a process on a host. Another process on the same host can use it to check whether the process still runs.
type Process struct {
	User string `json:"user"`
	Host string `json:"host"`
	// Boot distinguishes hosts with the same name. Namespace distinguishes containers with separate PIDs.
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	PID       int    `json:"pid"`
	// Started is the start time that the kernel reports. Started distinguishes processes with the same PID.
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

// deadSeenFrom reports whether p has exited. deadSeenFrom returns false if o belongs to another boot or another PID namespace, because o can't see p.
func (p Process) deadSeenFrom(o Process) bool {
	if p.Boot == "" || p.Boot != o.Boot || p.Host != o.Host || p.Namespace == "" || p.Namespace != o.Namespace || p.Started == "" {
		return false
	}
	started, known := startTime(procFolder, p.PID)
	return known && started != p.Started
}

const procFolder = "/proc"

// startTime returns the start time of a process in clock ticks since boot, or "" if the process doesn't exist. A zombie counts as exited. known is
// false if /proc hides the process of another user (hidepid).
func startTime(proc string, pid int) (ticks string, known bool) {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	// The program's name is in parentheses and may contain any character.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", true
	}
	return fields[19], true
}
