package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/notice"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

const (
	// maxNamed is the maximum number of GPUs that a message names. maxReason is the maximum length of each reason, in bytes.
	// The exit report contains only one line for all GPUs.
	maxNamed  = 3
	maxReason = 100
)

// told returns the agent's notice about the container's GPUs. ok is false if the machine has no agent, or the notice is
// unreadable.
func (t *task) told() ([]notice.GPU, bool) {
	folder := t.GPUs
	if folder == "" {
		folder = notice.Folder
	}
	told, ok, err := notice.Read(t.path(folder))
	if err != nil {
		t.journal.Printf("the machine's report on the task's GPUs can't be read: %v", err)
	}
	return told.GPUs, ok
}

const (
	// settle is how long the runtime waits for a notice about a fault after a program has failed. The program and the agent
	// detect a broken GPU at about the same time.
	settle = 1500 * time.Millisecond
	// settleLook is how often the runtime reads the notice during this time.
	settleLook = 50 * time.Millisecond
)

// toldAtLast waits for a notice with a fault and returns it. After the time limit, it returns the last notice.
func (t *task) toldAtLast() ([]notice.GPU, bool) {
	limit := settle
	if t.Settle > 0 {
		limit = t.Settle
	}
	for end := time.Now().Add(limit); ; time.Sleep(settleLook) {
		gpus, ok := t.told()
		wrong := slices.ContainsFunc(gpus, func(g notice.GPU) bool { return g.Reason != "" || g.Uncorrected })
		if !ok || wrong || time.Now().After(end) {
			return gpus, ok
		}
	}
}

// gpuFacts adds the agent's notice to the facts about the program's exit.
func (t *task) gpuFacts(e *rules.Exit, gpus []notice.GPU) {
	for _, g := range gpus {
		e.GPUECC = e.GPUECC || g.Uncorrected
	}
	e.GPUFault = named(gpus, func(g notice.GPU) string { return g.Reason })
	if e.GPUFault != "" {
		t.journal.Printf("the machine reports sick GPUs: %s", e.GPUFault)
	}
	// Xids 13, 31 and 43 are errors of programs. If the agent reports no fault, the machine isn't the cause.
	if xids := named(gpus, programXIDs); xids != "" {
		t.journal.Printf("the driver has reported errors of healthy GPUs: %s", xids)
	}
}

// programXIDs returns the Xids of a healthy GPU as text, or "".
func programXIDs(g notice.GPU) string {
	if g.Reason != "" || len(g.XIDs) == 0 {
		return ""
	}
	return "XID " + strings.Trim(strings.ReplaceAll(fmt.Sprint(g.XIDs), " ", ", "), "[]")
}

// named describes the first few GPUs for which say returns a text. It adds the number of other such GPUs.
func named(gpus []notice.GPU, say func(notice.GPU) string) string {
	var out []string
	more := 0
	for _, g := range gpus {
		text := short(say(g))
		switch {
		case text == "":
		case len(out) == maxNamed:
			more++
		default:
			out = append(out, fmt.Sprintf("GPU %d (%s): %s", g.Index, short(g.UUID), text))
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// short shortens a text to one line of at most maxReason bytes.
func short(s string) string {
	if s = strings.Join(strings.Fields(s), " "); len(s) > maxReason {
		return strings.ToValidUTF8(s[:maxReason-3], "") + "..."
	}
	return s
}
