package backup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// history is the name of the job history in the list of missing parts of a manifest.
const history = "the history of jobs"

// noHistory is the value of NoteHistory for a cluster whose backups have never contained the job history.
const noHistory = "never"

// Reasons why a backup is complete without the job history.
var (
	// ErrHistoryElsewhere means that the job history is in a database server.
	ErrHistoryElsewhere = errors.New("it is in PostgreSQL, which is backed up separately")
	// ErrNoController means that the cluster has no job controller. Earlier backups may contain a history.
	ErrNoController = errors.New("there is no job controller")
)

// NoHistoryError means that the job history couldn't be read.
type NoHistoryError struct{ Err error }

// Error implements error.
func (e *NoHistoryError) Error() string { return history + ": " + e.Err.Error() }

// Unwrap returns the error of reading the job history.
func (e *NoHistoryError) Unwrap() error { return e.Err }

// LacksHistory records in the manifest that the job history couldn't be read.
func (w *Writer) LacksHistory(why error) { w.Lacks(history, why) }

// Notes returns a merge patch that records a backup in the cluster's notes. The argument before contains the notes before the backup. The argument
// without is the reason why the backup doesn't contain the job history, or nil.
func Notes(before map[string]string, at time.Time, without error) ([]byte, error) {
	made := at.Format(time.RFC3339)
	data := map[string]any{Note: made}
	switch {
	case without == nil:
		data[NoteHistory] = made
	case errors.Is(without, ErrNoController):
		data[NoteHistory] = nil // a cluster without a history
	case before[NoteHistory] == "":
		data[NoteHistory] = cmp.Or(before[Note], noHistory) // an earlier paictl didn't record it
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return nil, fmt.Errorf("note the backup: %w", err)
	}
	return patch, nil
}
