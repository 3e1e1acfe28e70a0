package backup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// history is how the history of jobs is called in the list of missing parts of a manifest.
const history = "the history of jobs"

// noHistory is the value of NoteHistory for a cluster whose backups never contained the history of jobs.
const noHistory = "never"

// Reasons why a backup doesn't need the history of jobs.
var (
	// ErrHistoryElsewhere means that the history is in a database server. A backup is complete without the history.
	ErrHistoryElsewhere = errors.New("it is in PostgreSQL, which is backed up separately")
	// ErrNoController means that the cluster has no job controller. Earlier backups may contain a history.
	ErrNoController = errors.New("there is no job controller")
)

// NoHistoryError is the error that the history of jobs couldn't be read.
type NoHistoryError struct{ Err error }

// Error implements error.
func (e *NoHistoryError) Error() string { return history + ": " + e.Err.Error() }

// Unwrap returns the error of the attempt to read the history.
func (e *NoHistoryError) Unwrap() error { return e.Err }

// LacksHistory records in the manifest that the history of jobs couldn't be read.
func (w *Writer) LacksHistory(why error) { w.Lacks(history, why) }

// Notes returns a merge patch for a cluster's notes that records a backup made at a time. before contains the notes from before the backup. without
// is the reason why the history of jobs is missing in the backup, or nil if the backup contains it.
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
