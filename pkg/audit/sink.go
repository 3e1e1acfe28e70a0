package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Poster stores records for later queries. It doesn't change a record that it already stores.
type Poster interface {
	SaveAudit(ctx context.Context, records []Record) error
}

const (
	// maxQueue is the maximum number of records that wait to be stored. Above it, the oldest records of clients that aren't signed in are dropped
	// first, and then the oldest of all records. Dropped records have already been printed as lines.
	maxQueue = 10_000
	batch    = 500
	postTime = 10 * time.Second
	lastTime = 3 * time.Second // for sending the rest when the program ends
	again    = time.Second     // pause after a failure; it doubles up to againMax
	againMax = 30 * time.Second
	sayAgain = time.Minute
)

// Sink writes each record as a line without delay. It also sends records in batches to a Poster, and repeats this until they are stored. Callers
// don't wait for that.
type Sink struct {
	lines *Lines
	to    Poster
	// wrong reports whether an error means that records are invalid, so that sending them again can't succeed.
	wrong func(error) bool
	log   *slog.Logger
	gate  gate

	mu    sync.Mutex
	queue []Record
	lost  int
	wake  chan struct{}
}

// NewSink makes a Sink. wrong reports whether an error means that the Poster rejected the records, and not that the Poster is unavailable.
func NewSink(lines *Lines, to Poster, wrong func(error) bool, log *slog.Logger) *Sink {
	return &Sink{lines: lines, to: to, wrong: wrong, log: log, gate: gate{from: map[string]*knocks{}}, wake: make(chan struct{}, 1)}
}

// Write writes a record, and queues it for the Poster. It omits refusals above the limit of their actor or network.
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

// Waiting returns how many records are waiting to be stored, and how many were dropped because the queue was full.
func (s *Sink) Waiting() (waiting, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue), s.lost
}

// Dropped returns how many records were not written because their sender had caused too many.
func (s *Sink) Dropped() int {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.left
}

// Run sends records until ctx ends. Then it takes a few seconds to send the remaining records.
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

// post sends a batch of records. If the Poster rejects the batch, post sends its records one by one, and leaves out each record that is rejected.
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
	// New records are at the end of the queue. Records that were dropped are already gone.
	kept := map[string]bool{}
	for i := range some {
		kept[some[i].ID] = true
	}
	for len(s.queue) > 0 && kept[s.queue[0].ID] {
		s.queue = s.queue[1:]
	}
	return nil
}
