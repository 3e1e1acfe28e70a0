package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Poster keeps records where they can be asked for. Records that are there already stay as they are.
type Poster interface {
	SaveAudit(ctx context.Context, records []Record) error
}

const (
	// maxQueue bounds what waits to be kept: the oldest of who isn't signed in go first, then the oldest. Their lines are printed by then.
	maxQueue = 10_000
	batch    = 500
	postTime = 10 * time.Second
	lastTime = 3 * time.Second // for what is left when the program ends
	again    = time.Second     // after a failure; twice as long each time
	againMax = 30 * time.Second
	sayAgain = time.Minute
)

// Sink writes each record as a line at once, and sends it to where it can be asked for: in batches, and again until it is there. Whoever acts
// doesn't wait for that.
type Sink struct {
	lines *Lines
	to    Poster
	// wrong reports whether records are wrong, so that sending them again is of no use.
	wrong func(error) bool
	log   *slog.Logger
	gate  gate

	mu    sync.Mutex
	queue []Record
	lost  int
	wake  chan struct{}
}

// NewSink makes one. wrong tells records that are refused from a place that is away.
func NewSink(lines *Lines, to Poster, wrong func(error) bool, log *slog.Logger) *Sink {
	return &Sink{lines: lines, to: to, wrong: wrong, log: log, gate: gate{from: map[string]*knocks{}}, wake: make(chan struct{}, 1)}
}

// Write writes a record. Of refusals of one actor, or of one network, some are left out where there are many.
func (s *Sink) Write(ctx context.Context, r Record) {
	if !s.gate.pass(&r) {
		return
	}
	s.lines.Write(ctx, r)
	s.mu.Lock()
	s.queue = append(s.queue, r)
	if len(s.queue) > maxQueue {
		least := max(0, slices.IndexFunc(s.queue, func(r Record) bool { return r.Actor == "" }))
		s.queue = slices.Delete(s.queue, least, least+1)
		s.lost++
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Waiting is how many records are not kept yet, and how many never will be.
func (s *Sink) Waiting() (waiting, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.lost
}

// LeftOut is how many refusals were not written, because there were many of the same.
func (s *Sink) LeftOut() int {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.left
}

// Run sends records until the context ends, and then once more what is left.
func (s *Sink) Run(ctx context.Context) error {
	pause, said := again, time.Time{}
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
			defer cancel()
			for s.post(last) == nil {
				if n, _ := s.Waiting(); n == 0 {
					break
				}
			}
			return nil
		case <-s.wake:
		}
		for {
			n, lost := s.Waiting()
			if n == 0 || ctx.Err() != nil {
				break
			}
			err := s.post(ctx)
			if err == nil {
				pause = again
				continue
			}
			if time.Since(said) > sayAgain {
				said = time.Now()
				s.log.WarnContext(ctx, "records of the audit wait to be kept; they are printed", "waiting", n, "lost", lost, "error", err.Error())
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, againMax)
		}
	}
}

// post sends a batch. Where it is refused its records are sent one by one, and those that are refused are left out.
func (s *Sink) post(ctx context.Context) error {
	s.mu.Lock()
	some := append([]Record{}, s.queue[:min(batch, len(s.queue))]...)
	s.mu.Unlock()
	if len(some) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	err := s.to.SaveAudit(ctx, some)
	if err != nil && s.wrong(err) {
		for i := range some {
			if err = s.to.SaveAudit(ctx, some[i:i+1]); err != nil && s.wrong(err) {
				s.log.ErrorContext(ctx, "a record of the audit is refused; it is printed", "id", some[i].ID, "error", err.Error())
				err = nil
			}
			if err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// What came meanwhile is behind; what was too much has gone from the front.
	kept := map[string]bool{}
	for i := range some {
		kept[some[i].ID] = true
	}
	for len(s.queue) > 0 && kept[s.queue[0].ID] {
		s.queue = s.queue[1:]
	}
	return nil
}
