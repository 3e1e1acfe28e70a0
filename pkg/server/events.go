package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/server/wire"
)

// MediaEvents is the media type of server-sent events.
const MediaEvents = "text/event-stream"

// retryEvents is the delay before a reader reconnects after a lost connection.
const retryEvents = 2 * time.Second

// sendBytes is the size of buffered events at which they are sent, even if more events follow.
const sendBytes = 64 << 10

// keepBytes limits the buffer that a stream keeps between events, because streams are long and mostly idle.
const keepBytes = 2 << 10

// Events responds with server-sent events (text/event-stream of the HTML standard). The response begins with the first event. Until then, a handler
// can respond with an error. Events are buffered until Flush is called, or until they reach sendBytes.
type Events struct {
	call  *Call
	begun bool
	last  time.Time
	buf   bytes.Buffer
	whole *wire.Packer // of parts that are sent together; nil: each part is sent at once
}

// Events returns a response of server-sent events.
func (c *Call) Events() *Events { return &Events{call: c} }

// Begun reports whether the response has begun.
func (e *Events) Begun() bool { return e.begun }

// Add adds an event whose data is one line of JSON.
func (e *Events) Add(event string, data []byte) error {
	e.buf.WriteString("event: " + event + "\ndata: ")
	e.buf.Write(data)
	e.buf.WriteString("\n\n")
	if e.buf.Len() < sendBytes {
		return nil
	}
	return e.Flush()
}

// AddJSON adds an event with a value in JSON. id is the id of the event, or "". A reader that reconnects sends the id of the last event that it has
// received.
func (e *Events) AddJSON(event, id string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	e.id(id)
	return e.Add(event, data)
}

func (e *Events) id(id string) {
	if id != "" {
		e.buf.WriteString("id: " + id + "\n")
	}
}

// Place sends an id without an event. A reader that has received all events so far reconnects with this id.
func (e *Events) Place(id string) error {
	e.id(id)
	e.buf.WriteString(": \n\n")
	return e.Flush()
}

// Quiet reports whether the last event was sent so long ago that the reader needs a sign of life.
func (e *Events) Quiet() bool { return time.Since(e.last) >= aliveEvery }

// Together collects all events that add adds, and returns the function that sends them. The reader must receive all of them within one time limit,
// because the collected events occupy memory until then.
func (e *Events) Together(add func() error) (send func() error, err error) {
	e.whole = &wire.Packer{}
	err = errors.Join(add(), e.Flush())
	whole := e.whole
	e.whole = nil
	if err != nil {
		return nil, err
	}
	body, err := whole.Done()
	if err != nil {
		return nil, err
	}
	return func() error { return e.sendWhole(body) }, nil
}

func (e *Events) sendWhole(body *wire.Packed) error {
	give, err := e.call.waits(body)
	if err != nil {
		return err
	}
	defer give()
	e.last = time.Now()
	to := &timed{e.call, e.last.Add(writeTime)}
	if !e.begun {
		e.begin()
		if _, err := to.Write(e.buf.Bytes()); err != nil {
			return err
		}
		e.buf.Reset()
	}
	if _, err := body.WriteTo(to); err != nil {
		return err
	}
	return e.call.until(time.Now().Add(writeTime))
}

// timed sends the parts of a response, which share one time limit.
type timed struct {
	call *Call
	end  time.Time
}

func (t *timed) Write(part []byte) (int, error) {
	if err := t.call.sendBy(t.end, part); err != nil {
		return 0, err
	}
	return len(part), nil
}

// begin starts the response, and adds the event that must be sent first.
func (e *Events) begin() {
	e.begun = true
	e.call.begin(MediaEvents)
	e.Retry(retryEvents)
}

// Retry sends readers the delay before they reconnect.
func (e *Events) Retry(after time.Duration) {
	e.buf.WriteString("retry: " + strconv.FormatInt(after.Milliseconds(), 10) + "\n\n")
}

// Flush sends the buffered events.
func (e *Events) Flush() error {
	err := e.flush()
	if e.buf.Reset(); e.buf.Cap() > keepBytes {
		e.buf = bytes.Buffer{}
	}
	return err
}

func (e *Events) flush() error {
	if e.whole != nil {
		_, err := e.whole.Write(e.buf.Bytes())
		return err
	}
	if !e.begun {
		first := e.buf
		e.buf = bytes.Buffer{}
		e.begin()
		e.buf.Write(first.Bytes())
	}
	if e.buf.Len() == 0 {
		return nil
	}
	e.last = time.Now()
	return e.call.send(e.buf.Bytes())
}
