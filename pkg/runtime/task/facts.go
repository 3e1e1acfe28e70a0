package task

import (
	"context"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// memoryEvents are where the kernel counts what it killed in this container: control groups of
// version 2 and 1.
var memoryEvents = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// oomKills is the number of processes of this container that the kernel killed for want of memory.
func oomKills() int {
	for _, name := range memoryEvents {
		if data, err := os.ReadFile(name); err == nil {
			return parseKills(string(data))
		}
	}
	return 0
}

func parseKills(text string) int {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			n, err := strconv.Atoi(f[1])
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// smiLimit is what the driver's tool may take: on a broken GPU it hangs.
const smiLimit = time.Second

// gpuErrors tells whether a GPU of this task counts memory errors that can't be corrected.
func gpuErrors(ctx context.Context, environ []string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), smiLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nvidia-smi", "-q", "-x") // the reaper has stopped
	cmd.Env = environ
	cmd.WaitDelay = smiLimit
	out, err := cmd.Output()
	return err == nil && parseECC(string(out))
}

// parseECC sums the counters below volatile that are of errors which can't be corrected. Older
// drivers call them double_bit with a total, newer ones by where they were: dram_uncorrectable,
// sram_uncorrectable and parts of it.
func parseECC(text string) bool {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = false // a doctype that isn't there to be read
	var path []string
	for {
		token, err := d.Token()
		if err == io.EOF || err != nil { //nolint:errorlint // the end, as it comes
			return false
		}
		switch e := token.(type) {
		case xml.StartElement:
			path = append(path, e.Name.Local)
		case xml.EndElement:
			path = path[:max(0, len(path)-1)]
		case xml.CharData:
			if n, err := strconv.Atoi(strings.TrimSpace(string(e))); err == nil && n > 0 && uncorrectable(path) {
				return true
			}
		}
	}
}

func uncorrectable(path []string) bool {
	volatile, double := false, false
	for _, p := range path {
		volatile = volatile || p == "volatile"
		double = double || p == "double_bit" || strings.Contains(p, "uncorrectable")
	}
	return volatile && double
}
