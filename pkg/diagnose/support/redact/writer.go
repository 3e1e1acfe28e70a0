package redact

import "io"

const (
	// window is the number of bytes in one search. ahead is the number of these bytes that are kept for the next search, so that a secret across the
	// boundary is found completely.
	window = 128 << 10
	ahead  = 48 << 10
)

// Writer removes the secrets from a stream.
type Writer struct {
	set    *Set
	w      io.Writer
	buf    []byte
	counts map[string]int
	// eating means that the stream is inside a secret that is longer than the window. The secret ends at the end of its line.
	eating bool
	err    error
}

// Writer returns a Writer that writes to w. Its Close method writes the rest of the stream, but doesn't close w.
func (s *Set) Writer(w io.Writer) *Writer { return &Writer{set: s, w: w, counts: map[string]int{}} }

// Counts returns the number of replaced secrets so far, by kind.
func (w *Writer) Counts() map[string]int { return w.counts }

// Write writes a part of the stream. Secrets may extend over several parts.
func (w *Writer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && w.err == nil; {
		n := min(len(rest), window-len(w.buf))
		w.buf = append(w.buf, rest[:n]...)
		rest = rest[n:]
		if len(w.buf) >= window {
			w.process(false)
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Close writes the rest of the stream.
func (w *Writer) Close() error {
	if w.err == nil {
		w.process(true)
	}
	return w.err
}

// process writes the part of the buffer in which all secrets are known. At the end of the stream, this is the whole buffer.
func (w *Writer) process(end bool) {
	if w.eating {
		w.eat()
	}
	spans := w.set.find(w.buf)
	limit := len(w.buf)
	if !end {
		limit = max(limit-ahead, 0)
		// If a secret begins before the limit, also process the text up to the secret's end, and the text that identifies it as a secret.
		for before := -1; before != limit; {
			before = limit
			for _, s := range spans {
				if s.from < limit && s.to > limit {
					limit = s.to
				}
			}
		}
	}
	at := 0
	for _, s := range spans {
		if s.cutFrom >= limit {
			break
		}
		w.write(w.buf[at:s.cutFrom])
		w.write([]byte(Mark(s.kind)))
		w.counts[s.kind]++
		at = s.cutTo
		w.eating = !end && s.goesOn && s.cutTo == len(w.buf)
	}
	if at < limit {
		w.write(w.buf[at:limit])
		at = limit
	}
	w.buf = append(w.buf[:0], w.buf[at:]...)
}

// eat drops the rest of a long secret up to the end of its line.
func (w *Writer) eat() {
	for i, c := range w.buf {
		if c == '\n' {
			w.buf, w.eating = append(w.buf[:0], w.buf[i:]...), false
			return
		}
	}
	w.buf = w.buf[:0]
}

func (w *Writer) write(p []byte) {
	if w.err == nil && len(p) > 0 {
		_, w.err = w.w.Write(p)
	}
}
