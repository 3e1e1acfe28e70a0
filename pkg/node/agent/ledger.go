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

// ledger records the orders that were begun, and their results. It is a file, written before an order is carried out: an agent that is killed
// between a reset and its answer doesn't reset again, because the GPU may have a job by then.
type ledger struct {
	file string
	// entries are in the order in which they were begun.
	entries []entry
}

// entry is a request that was begun.
type entry struct {
	ID string `json:"id"`
	// Boot is the boot of the machine that a request to restart it ends; "" for requests for GPUs.
	Boot string `json:"boot,omitempty"`
	// Began is when a restart began.
	Began time.Time `json:"began,omitzero"`
	// Answer is the result; nil while the order is in progress.
	Answer *repair.Answer `json:"answer,omitempty"`
}

// mostEntries limits the file: a Node has far fewer orders.
const mostEntries = 256

// interrupted is the result of an order during which the agent stopped.
const interrupted = "the agent was stopped while it did this, so the result is unknown: check the GPU, and order it again"

// openLedger reads the orders of earlier agents. It answers those for GPUs that were in progress with interrupted; a restart of the machine continues.
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

// answer returns the result of an order, if it has one.
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

// begin records that an order is in progress. If it fails, the caller must not carry out the order.
func (l *ledger) begin(e entry) error {
	l.entries = append(l.entries, e)
	if n := len(l.entries) - mostEntries; n > 0 {
		l.entries = slices.Delete(l.entries, 0, n)
	}
	return l.write()
}

// end records the result of an order that was begun. If the file can't be written, only this agent knows the result, and the next one doesn't.
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
