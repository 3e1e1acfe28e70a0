package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/node/agent/repair"
	"github.com/openpai/paictl/pkg/node/agent/replace"
)

// ledger is a file that records requests and their results. The agent records a request before carrying out the request. If the agent is killed
// during a reset, the next agent must not reset the GPU again, because a job may already use the GPU.
type ledger struct {
	file string
	// entries lists the requests in start order.
	entries []entry
}

type entry struct {
	ID string `json:"id"`
	// Boot identifies the machine's boot before the requested restart. Boot is "" for requests about GPUs.
	Boot string `json:"boot,omitempty"`
	// Began is the time when a restart of the machine began.
	Began time.Time `json:"began,omitzero"`
	// Answer is the result. Answer is nil while the request is in progress.
	Answer *repair.Answer `json:"answer,omitempty"`
}

// mostEntries limits the size of the file. A Node has far fewer requests at the same time.
const mostEntries = 256

// interrupted is the answer to a request if the agent was stopped before the result was known.
const interrupted = "the agent was stopped while it did this, so the result is unknown: check the GPU, and order it again"

// openLedger reads the requests that earlier agents recorded. An unfinished request about a GPU gets the answer interrupted. An unfinished restart of
// the machine continues.
func openLedger(file string) (*ledger, error) {
	l := &ledger{file: file}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &l.entries); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it; orders on the Node may then be executed a second time", file, err)
	}
	for i := range l.entries {
		if e := &l.entries[i]; e.Answer == nil && e.Boot == "" {
			e.Answer = &repair.Answer{ID: e.ID, Message: interrupted}
		}
	}
	return l, nil
}

// answer returns the recorded answer to a request. ok is false if no answer is recorded.
func (l *ledger) answer(id string) (repair.Answer, bool) {
	i := l.find(id)
	if i < 0 || l.entries[i].Answer == nil {
		return repair.Answer{}, false
	}
	return *l.entries[i].Answer, true
}

// restart returns the entry of a restart of the machine. restart returns an empty entry if the restart hasn't begun.
func (l *ledger) restart(id string) entry {
	if i := l.find(id); i >= 0 {
		return l.entries[i]
	}
	return entry{}
}

func (l *ledger) find(id string) int {
	return slices.IndexFunc(l.entries, func(e entry) bool { return e.ID == id })
}

// begin records that a request is in progress. The caller must not carry out the request if begin fails.
func (l *ledger) begin(e entry) error {
	l.entries = append(l.entries, e)
	if n := len(l.entries) - mostEntries; n > 0 {
		l.entries = slices.Delete(l.entries, 0, n)
	}
	return l.write()
}

// end records the result of a request. If the write fails, the result is only in this process's memory.
func (l *ledger) end(a repair.Answer) error {
	if i := l.find(a.ID); i >= 0 {
		l.entries[i].Answer = &a
	}
	return l.write()
}

func (l *ledger) write() error {
	data, err := json.Marshal(l.entries)
	if err != nil {
		return err
	}
	return replace.Durably(l.file, data, 0o600)
}
