package server

import (
	"bufio"
	"net/http"
	"time"
)

// flowBytes is the size of the parts in which a text is sent.
const flowBytes = 32 << 10

// Flow is a text response whose length isn't known when the response begins. Its route must be a stream.
type Flow struct {
	call    *Call
	out     *bufio.Writer
	control *http.ResponseController
	begun   bool
}

// Flow returns a text response with the route's media type. The response begins with the first sent bytes, or at the end. Until then, the handler may
// return an error instead.
func (c *Call) Flow() *Flow {
	f := &Flow{call: c, control: http.NewResponseController(c.Writer)}
	f.out = bufio.NewWriterSize(flowing{f}, flowBytes)
	return f
}

// flowing starts the response, and limits the time in which a client must receive each part.
type flowing struct{ f *Flow }

func (w flowing) Write(p []byte) (int, error) {
	w.f.begin()
	if err := w.f.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	return w.f.call.Writer.Write(p)
}

func (f *Flow) begin() {
	if f.begun {
		return
	}
	f.begun = true
	h := f.call.Writer.Header()
	h.Set("Content-Type", f.call.Route.Media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	f.call.Writer.WriteHeader(f.call.Route.status())
}

// Write writes a part of the text. If now is set, it sends the part immediately.
func (f *Flow) Write(p []byte, now bool) error {
	if _, err := f.out.Write(p); err != nil || !now {
		return err
	}
	return f.Flush()
}

// Flush sends the buffered parts, and starts the response if necessary.
func (f *Flow) Flush() error {
	f.begin()
	if err := f.out.Flush(); err != nil {
		return err
	}
	return f.control.Flush()
}

// Begun reports whether the response has begun. After that, an error can't be sent.
func (f *Flow) Begun() bool { return f.begun }

// Cut aborts the connection, so that readers don't mistake a part of the text for the whole text.
func (f *Flow) Cut() { panic(http.ErrAbortHandler) }
