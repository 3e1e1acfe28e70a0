package audit

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
)

// Lines writes each record as a line of JSON, at once. It is safe for concurrent use.
type Lines struct {
	mu  sync.Mutex
	to  io.Writer
	log *slog.Logger
}

// NewLines returns Lines that write to a writer; log gets errors.
func NewLines(to io.Writer, log *slog.Logger) *Lines { return &Lines{to: to, log: log} }

// line distinguishes records from a program's other output.
type line struct {
	Audit Record `json:"audit"`
}

// Write writes a record.
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
