package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Lines responds with a stream of JSON lines (application/x-ndjson). Send is safe for concurrent use. After a quiet time, Lines sends the line "{}",
// so that both ends detect a lost connection. It then also calls alive, unless alive is nil. An error of alive ends the stream.
type Lines struct {
	call *Call
	mu   sync.Mutex
	last time.Time
	err  error
	stop context.CancelCauseFunc
	ctx  context.Context
	done chan struct{}
}

// aliveEvery is the maximum time between two lines. writeTime is the time within which a reader must receive a line.
const (
	aliveEvery = 15 * time.Second
	writeTime  = 30 * time.Second
)

// Lines begins a response of JSON lines.
func (c *Call) Lines(alive func() error) *Lines {
	l := &Lines{call: c, last: time.Now(), done: make(chan struct{})}
	l.ctx, l.stop = context.WithCancelCause(c.Context())
	c.begin("application/x-ndjson")
	go l.keep(alive)
	return l
}

// Context returns a context that ends after the reader has disconnected or alive has returned an error. That error is then the cause.
func (l *Lines) Context() context.Context { return l.ctx }

// End stops the goroutine that Lines has started.
func (l *Lines) End() {
	l.stop(nil)
	<-l.done
}

func (l *Lines) keep(alive func() error) {
	defer close(l.done)
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		if alive != nil {
			if err := alive(); err != nil {
				l.stop(err)
				return
			}
		}
		l.mu.Lock()
		quiet := time.Since(l.last) >= aliveEvery/2
		l.mu.Unlock()
		if quiet {
			_ = l.Send(struct{}{}) // a reader that is gone ends the context
		}
	}
}

// Send sends a value as a line of JSON.
func (l *Lines) Send(value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.last = time.Now()
	if l.err = l.call.send(append(data, '\n')); l.err != nil {
		l.stop(l.err)
	}
	return l.err
}

// begin begins a streaming response with a media type.
func (c *Call) begin(media string) {
	h := c.Writer.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.Writer.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(c.Writer).Flush()
}

// send sends a part of a stream. If the reader doesn't receive the part within writeTime, the stream ends.
func (c *Call) send(data []byte) error { return c.sendBy(time.Now().Add(writeTime), data) }

// sendBy is like send, but uses the time limit end.
func (c *Call) sendBy(end time.Time, data []byte) error {
	if err := c.until(end); err != nil {
		return err
	}
	if _, err := c.Writer.Write(data); err != nil {
		return err
	}
	return http.NewResponseController(c.Writer).Flush()
}

// until sets the deadline of all further writes. With HTTP/2, the stream ends at the deadline even if nothing is written.
func (c *Call) until(end time.Time) error {
	err := http.NewResponseController(c.Writer).SetWriteDeadline(end)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
