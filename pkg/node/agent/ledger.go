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

// ledger records requests that were begun, and their results. It is a file that is written before a request is carried out: if the agent is
// killed between a reset and its answer, the next agent must not reset the GPU again, because a job may have the GPU by then.
type ledger struct {
	file string
	// entries are in the order in which the requests began.
	entries []entry
}

// entry is a request that was begun.
type entry struct {
	ID string `json:"id"`
	// Boot is the boot ID of the machine before a restart that was requested; "" for requests for GPUs.
	Boot string `json:"boot,omitempty"`
	// Began is when a restart began.
	Began time.Time `json:"began,omitzero"`
	// Answer is the result; nil while the request is in progress.
	Answer *repair.Answer `json:"answer,omitempty"`
}

// mostEntries limits the file: a Node has far fewer requests.
const mostEntries = 256

// interrupted is the result of a request during which the agent stopped.
const interrupted = "the agent was stopped while it did this, so the result is unknown: check the GPU, and order it again"

// openLedger reads the requests of earlier agents. A request for a GPU that was in progress gets the answer interrupted. A restart of the
// machine continues.
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

// answer returns the answer to a request, if the ledger has it.
func (l *ledger) answer(id string) (repair.Answer, bool) {
	i := l.find(id)
	if i < 0 || l.entries[i].Answer == nil {
		return repair.Answer{}, false
	}
	return *l.entries[i].Answer, true
}

// restart returns the entry of a restart of the machine, or an empty one if it wasn't begun.
func (l *ledger) restart(id string) entry {
	if i := l.find(id); i >= 0 {
		return l.entries[i]
	}
	return entry{}
}

func (l *ledger) find(id string) int {
	return slices.IndexFunc(l.entries, func(e entry) bool { return e.ID == id })
}

// begin records that a request is in progress. If it fails, the caller must not carry out the request.
func (l *ledger) begin(e entry) error {
	l.entries = append(l.entries, e)
	if n := len(l.entries) - mostEntries; n > 0 {
		l.entries = slices.Delete(l.entries, 0, n)
	}
	return l.write()
}

// end records the result of a request that was begun. If the file can't be written, only this process knows the result.
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
