package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// minRate is how many bytes per second a transfer of code must reach on average.
	minRate = 32 << 10
	// stallTime is the maximum pause of a transfer.
	stallTime = 30 * time.Second
	// piece is how many bytes of code are in memory while code is being sent.
	piece = 64 << 10
)

// pace computes the deadlines of a transfer. A client that pauses or is too slow is disconnected, because other clients wait for its place.
type pace struct {
	begun, end time.Time
	bytes      int64
}

func newPace(r *http.Request) *pace {
	end, _ := r.Context().Deadline() // as within sets it
	return &pace{begun: time.Now(), end: end}
}

// next returns the deadline for the next n bytes.
func (p *pace) next(n int) time.Time {
	p.bytes += int64(n)
	out := p.begun.Add(stallTime + time.Duration(float64(p.bytes)/minRate*float64(time.Second)))
	for _, t := range []time.Time{time.Now().Add(stallTime), p.end} {
		if t.Before(out) {
			out = t
		}
	}
	return out
}

// pacedWriter is a response to a client that must keep up the pace.
type pacedWriter struct {
	http.ResponseWriter
	pace *pace
}

// ReadFrom implements io.ReaderFrom, which net/http uses to copy data to a response.
func (p pacedWriter) ReadFrom(r io.Reader) (total int64, err error) {
	buffer, control := make([]byte, piece), http.NewResponseController(p.ResponseWriter)
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			if err := control.SetWriteDeadline(p.pace.next(n)); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return total, err
			}
			w, err := p.Write(buffer[:n])
			total += int64(w)
			if err != nil {
				return total, err
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// pacedReader is the body of a request from a client that must keep up the pace.
type pacedReader struct {
	io.Reader
	control *http.ResponseController
	pace    *pace
}

// Read implements io.Reader.
func (p pacedReader) Read(to []byte) (int, error) {
	if err := p.control.SetReadDeadline(p.pace.next(0)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := p.Reader.Read(to)
	p.pace.bytes += int64(n)
	return n, err
}
