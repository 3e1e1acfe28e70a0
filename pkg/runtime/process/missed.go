package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// child is a process that existed when its process group received the first signal.
type child struct {
	pid   int
	start uint64 // in clock ticks since the machine started; a later process with the same PID has a different value
}

// ticks is the duration of a clock tick in ns. USER_HZ is 100 on all machines.
const ticks = uint64(time.Second / 100)

// stop sends a signal to the process group.
//
// A shell with a trap may have forked a child that hasn't executed its program yet. In this child, the shell's handler receives
// the signal, and the signal is lost when the program starts. The shell then waits for a program that received no signal.
// Therefore, stop records the shell's children that haven't executed their programs yet. resend sends the signal to these children
// after they have. Programs that start later receive no signal, because a trap of the user may run them at the end. If a shell
// forks a program in the microseconds between the signal and the scan, that program runs for the whole grace period.
func (p *Process) stop(s unix.Signal) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return err
	}
	if err := p.Signal(s); err != nil {
		return err
	}
	p.asked = s
	p.program = program(p.PID)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID, p.PID))
	if err != nil || p.program == "" {
		return nil //nolint:nilerr // the program no longer exists, or the kernel doesn't report it
	}
	for field := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			continue
		}
		if start, ok := startTime(pid); ok && start <= uint64(now.Nano())/ticks && program(pid) == p.program {
			p.children = append(p.children, child{pid, start})
		}
	}
	return nil
}

// resend sends the signal again to recorded children that missed it. Such a child has executed a program, doesn't handle the
// signal, and still runs.
func (p *Process) resend() {
	left := p.children[:0]
	for _, c := range p.children {
		start, ok := startTime(c.pid)
		if !ok || start != c.start {
			continue
		}
		left = append(left, c)
		if now := program(c.pid); now != "" && now != p.program && byDefault(c.pid, p.asked) {
			_ = unix.Kill(c.pid, p.asked) // it may already have exited
		}
	}
	p.children = left
}

// program returns the path of a process's executable, or "" if it can't be read.
func program(pid int) string {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return name
}

// startTime returns when a process started, in clock ticks. ok is false if the process doesn't exist or has exited.
func startTime(pid int) (uint64, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The second field is the program's name in parentheses. It may contain any bytes.
	_, rest, ok := cutLast(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" {
		return 0, false
	}
	n, err := strconv.ParseUint(fields[19], 10, 64)
	return n, err == nil
}

// byDefault reports whether a process doesn't handle, ignore or block a signal.
func byDefault(pid int, s unix.Signal) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	found := 0
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigBlk" && name != "SigIgn" && name != "SigCgt" {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil || mask&(1<<(uint(s)-1)) != 0 {
			return false
		}
		found++
	}
	return found == 3
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
