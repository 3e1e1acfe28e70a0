package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine describes this machine, but doesn't contain its name.
type machine struct {
	System string `json:"system"`
	Kernel string `json:"kernel"`
	// Devices maps the PCI addresses of NVIDIA's GPUs to their NUMA nodes. The node is -1 if the machine has only one.
	Devices map[string]int64 `json:"devices"`
	// XIDs holds the lines of the kernel's log about errors of GPUs.
	XIDs []string `json:"xids,omitempty"`
	// LogRead reports whether the kernel's log could be read.
	LogRead bool `json:"logRead"`
}

// noneError is the error if the machine has no GPU that can be checked. It contains the reason.
type noneError struct{ why string }

func (e *noneError) Error() string { return e.why }

// inspect finds the NVIDIA GPUs among the kernel's PCI devices, and returns the description of the machine.
func inspect(root string) (*machine, error) {
	m := &machine{Devices: map[string]int64{}, System: system(root)}
	folders, err := filepath.Glob(filepath.Join(root, "sys/bus/pci/devices/*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range folders {
		const nvidia, display = "0x10de", "0x03" // vendor, and the class of display controllers
		if word(dir, "vendor") != nvidia || !strings.HasPrefix(word(dir, "class"), display) {
			continue
		}
		node, err := strconv.ParseInt(word(dir, "numa_node"), 10, 64)
		if err != nil {
			node = -1
		}
		m.Devices[filepath.Base(dir)] = node
	}
	_, noDriver := os.Stat(filepath.Join(root, "proc/driver/nvidia/version"))
	switch {
	case len(m.Devices) == 0 && noDriver != nil:
		return nil, &noneError{"no NVIDIA device found: no PCI device of vendor 10de is a display controller"}
	case noDriver != nil:
		return nil, &noneError{fmt.Sprintf("%d NVIDIA devices found, but the driver isn't loaded: /proc/driver/nvidia doesn't exist; see dmesg, and modprobe nvidia", len(m.Devices))}
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err == nil {
		m.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	m.XIDs, err = xids(filepath.Join(root, "dev/kmsg"))
	m.LogRead = err == nil
	return m, nil
}

// word returns the content of a small file without surrounding spaces, or "" if the file can't be read.
func word(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// system returns the name of the distribution, or "unknown".
func system(root string) string {
	for line := range strings.Lines(word(root, "etc/os-release")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	return "unknown"
}

var xidLine = regexp.MustCompile(`NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)`)

// mostLines limits the number of lines that are read from the kernel's log. The kernel keeps fewer lines.
const mostLines = 1 << 20

// xids returns the errors of GPUs in the kernel's log, as "BUS XID". Each read of the file returns one line. A read at the end of the log doesn't
// wait for further lines.
func xids(file string) (out []string, err error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	buf := make([]byte, 8192)
	for range mostLines {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EPIPE): // the kernel has overwritten lines
			continue
		case errors.Is(err, unix.EAGAIN) || err == nil && n == 0:
			return slices.Compact(out), nil
		case err != nil:
			return out, err
		}
		for _, found := range xidLine.FindAllStringSubmatch(string(buf[:n]), -1) {
			out = append(out, bus(found[1])+" "+found[2])
		}
	}
	return slices.Compact(out), nil
}

// bus converts a PCI address to the spelling of Linux. nvidia-smi writes eight digits for the domain, and capital letters. The kernel's log leaves
// out the function.
func bus(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if domain, rest, ok := strings.Cut(text, ":"); ok && len(domain) > 4 {
		text = domain[len(domain)-4:] + ":" + rest
	}
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
