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

// NewLines writes to a writer; log is told where that fails.
func NewLines(to io.Writer, log *slog.Logger) *Lines { return &Lines{to: to, log: log} }

// line tells records apart from what else a program prints.
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
