package task

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// memoryEvents lists the files in which the kernel counts OOM kills of this container. The first is for version 2 of control
// groups, the second for version 1.
var memoryEvents = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// oomKills returns how many processes of this container the kernel killed because memory was exhausted.
func oomKills(files []string) int {
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil {
			return parseKills(string(data))
		}
	}
	return 0
}

// parseKills returns the number in the line oom_kill. Kernels before 4.13 don't write this line. Other lines count different
// events: oom is how often memory was short, and oom_group_kill is how often a whole group was killed. oom_kill_disable is a
// setting.
func parseKills(text string) int {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			n, err := strconv.Atoi(f[1])
			if err == nil {
				return max(0, n)
			}
		}
	}
	return 0
}

// facts adds facts about the machine that may explain the program's exit.
func (t *task) facts(e *rules.Exit) {
	if n := oomKills(memoryEvents); n > t.oomKills {
		e.OOMKilled = true
		t.journal.Printf("the kernel killed %s of this container: the memory limit of %d MB was reached", plural.Of(n-t.oomKills, "process"), t.role.MemoryMB)
	}
	if t.role.GPU == 0 {
		return
	}
	if gpus, ok := t.toldAtLast(); ok {
		t.gpuFacts(e, gpus)
		return // nvidia-smi doesn't know more, isn't in every image, and hangs on a broken GPU
	}
	s, ok := waitSMI(smiLimit, func(ctx context.Context) smi { return askSMI(ctx, t.environ) })
	if !ok {
		t.journal.Printf("nvidia-smi didn't answer for %s", smiLimit)
	}
	if s.complaints != "" {
		t.journal.Printf("%s", s.complaints) // the failure rules match its messages about lost GPUs
	}
	e.GPUECC = parseECC(s.document)
}
