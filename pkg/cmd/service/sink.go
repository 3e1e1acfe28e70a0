package service

import (
	"sync"

	"github.com/openpai/paictl/pkg/progress"
	"github.com/openpai/paictl/pkg/services"
)

// sink opens the renderer with the first event: until then a person may be asked to
// confirm, which a live table would paint over. It keeps what a dry run has planned.
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

// close gives the terminal back.
func (s *sink) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renderer == nil {
		return nil
	}
	return s.renderer.Close()
}
