package service

import (
	"sync"

	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// sink opens the renderer when it receives the first event. Before that, the user may have to confirm the command, and a live table would
// overwrite the question. sink also keeps the planned events of a dry run.
type sink struct {
	open func() progress.ServiceRenderer

	mu       sync.Mutex
	renderer progress.ServiceRenderer
	planned  []services.Event
}

// Emit implements services.Sink.
func (s *sink) Emit(e services.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renderer == nil {
		s.renderer = s.open()
	}
	if e.Kind == services.EventPlanned {
		s.planned = append(s.planned, e)
	}
	s.renderer.Emit(e)
}

// close closes the renderer, which restores the terminal.
func (s *sink) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renderer == nil {
		return nil
	}
	return s.renderer.Close()
}
