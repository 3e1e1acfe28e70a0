package server

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// MediaEvents is the type of server-sent events.
const MediaEvents = "text/event-stream"

// retryEvents is when who reads is to come back after the connection was lost.
const retryEvents = 2 * time.Second

// sendBytes is from how many bytes on events are sent, however many are still to come.
const sendBytes = 64 << 10

// Events answers with server-sent events (text/event-stream of the HTML standard). The answer begins with the first of them: until then an
// error is an answer of its own. Each event waits in memory until Flush, or until there are many.
type Events struct {
	call  *Call
	begun bool
	last  time.Time
	buf   bytes.Buffer
	end   time.Time // of what is sent together; zero: each part has a time of its own
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

// Together bounds how long a reader may take for all that send sends, and not for each part of it: what it holds until then isn't there for others.
func (e *Events) Together(send func() error) error {
	e.end = time.Now().Add(writeTime)
	err := send()
	e.end = time.Time{}
	if err != nil {
		return err
	}
	return e.call.until(time.Now().Add(writeTime))
}

// Retry says when who reads is to come back after the end.
func (e *Events) Retry(after time.Duration) {
	e.buf.WriteString("retry: " + strconv.FormatInt(after.Milliseconds(), 10) + "\n\n")
}

// Flush sends what was added.
func (e *Events) Flush() error {
	if !e.begun {
		e.begun = true
		e.call.begin(MediaEvents)
		first := e.buf
		e.buf = bytes.Buffer{}
		e.Retry(retryEvents)
		e.buf.Write(first.Bytes())
	}
	if e.buf.Len() == 0 {
		return nil
	}
	e.last = time.Now()
	end := e.end
	if end.IsZero() {
		end = e.last.Add(writeTime)
	}
	err := e.call.sendBy(end, e.buf.Bytes())
	if e.buf.Reset(); e.buf.Cap() > sendBytes {
		e.buf = bytes.Buffer{} // a stream lasts, and is quiet most of the time
	}
	return err
}
