package audit

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
)

// Lines writes each record as one line of JSON, without delay. It is safe for concurrent use.
type Lines struct {
	mu  sync.Mutex
	to  io.Writer
	log *slog.Logger
}

// NewLines returns a Lines that writes records to a writer, and its own errors to log.
func NewLines(to io.Writer, log *slog.Logger) *Lines { return &Lines{to: to, log: log} }

// line wraps a record under the key "audit", which distinguishes the record from a program's other output.
type line struct {
	Audit Record `json:"audit"`
}

// Write writes a record. It logs an error instead of returning it.
func (l *Lines) Write(ctx context.Context, r Record) {
	data, err := json.Marshal(line{r})
	if err == nil {
		l.mu.Lock()
		_, err = l.to.Write(append(data, '\n'))
		l.mu.Unlock()
	}
	if err != nil {
		l.log.ErrorContext(ctx, "write the audit", "error", err.Error(), "verb", r.Verb, "kind", r.Kind, "request", r.Request)
	}
}
