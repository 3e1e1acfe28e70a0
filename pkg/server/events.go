package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/server/wire"
)

// MediaEvents is the type of server-sent events.
const MediaEvents = "text/event-stream"

// retryEvents is when who reads is to come back after the connection was lost.
const retryEvents = 2 * time.Second

// sendBytes is from how many bytes on events are sent, however many are still to come.
const sendBytes = 64 << 10

// keepBytes is how large a buffer may be that a stream keeps: it lasts, and is quiet most of the time.
const keepBytes = 2 << 10

// Events answers with server-sent events (text/event-stream of the HTML standard). The answer begins with the first of them: until then an
// error is an answer of its own. Each event waits in memory until Flush, or until there are many.
type Events struct {
	call  *Call
	begun bool
	last  time.Time
	buf   bytes.Buffer
	whole *wire.Packer // of what is sent together; nil: each part is sent as it comes
}

// Events makes an answer of events.
func (c *Call) Events() *Events { return &Events{call: c} }

// Begun reports whether the answer has begun.
func (e *Events) Begun() bool { return e.begun }

// Add adds an event, whose data is one line of JSON.
func (e *Events) Add(event string, data []byte) error {
	e.buf.WriteString("event: " + event + "\ndata: ")
	e.buf.Write(data)
	e.buf.WriteString("\n\n")
	if e.buf.Len() < sendBytes {
		return nil
	}
	return e.Flush()
}

// AddJSON adds an event of a value. Who has read it, and comes back, says so by the id, where one is given.
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

// Place says by which id who has read all until here comes back. It is no event: readers note it and say nothing.
func (e *Events) Place(id string) error {
	e.id(id)
	e.buf.WriteString(": \n\n")
	return e.Flush()
}

// Quiet reports whether nothing was sent for so long that the reader has to hear something.
func (e *Events) Quiet() bool { return time.Since(e.last) >= aliveEvery }

// Together puts together what add adds, and send sends it. That has one time to be read, and not one for each part of it: what waits in memory until
// then isn't there for others.
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

// timed sends parts that have one time.
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

// begin begins the answer. What is sent first is added.
func (e *Events) begin() {
	e.begun = true
	e.call.begin(MediaEvents)
	e.Retry(retryEvents)
}

// Retry says when who reads is to come back after the end.
func (e *Events) Retry(after time.Duration) {
	e.buf.WriteString("retry: " + strconv.FormatInt(after.Milliseconds(), 10) + "\n\n")
}

// Flush sends what was added.
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
