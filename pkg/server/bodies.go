package server

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/openpai/paictl/pkg/httpserver/clientaddr"
	"github.com/openpai/paictl/pkg/people/rules"
)

const (
	// guestBytes limits the body of a request without a token. The longest such body contains the code of an issuer.
	guestBytes = 8 << 10
	// decodedTimes is the memory of a decoded body, as a multiple of the body's size. jobTimes is the same multiple for a job file.
	decodedTimes = 32
	jobTimes     = 128
	// readTime and readRate limit the time to read a body for which memory is reserved. readRate is in bytes per second.
	readTime = 5 * time.Second
	readRate = 32 << 10
)

// bodies limits the memory of request bodies in this process until their requests have responses. Bodies without a token have a separate limit, so
// that they don't block signed-in users.
type bodies struct{ read, decoded, guestRead, guestDecoded *pool }

func newBodies() *bodies {
	own := busy("many of your requests are being answered", "wait for the end of one")
	all := busy("many large requests are being answered", "try again in a moment")
	return &bodies{
		read: newPool(16<<20, 4<<20, own, all), decoded: newPool(64<<20, 40<<20, own, all),
		guestRead: newPool(4<<20, 1<<20, own, all), guestDecoded: newPool(16<<20, 8<<20, own, all),
	}
}

// body is a request body. If it is read as a whole, its memory is counted.
type body struct {
	io.ReadCloser
	call          *Call
	key           string
	size          int64 // the maximum
	times         int   // memory of the decoded body, as a multiple of its size
	read, decoded *pool
	end           time.Time // the time until which the connection can be read anyway
}

// open replaces the body of a request with a limited body.
func (b *bodies) open(c *Call, who *rules.Subject, from netip.Addr, end time.Time) {
	limit, r := &c.Route.Limit, c.Request
	own := &body{call: c, key: who.Name, size: cmp.Or(limit.Body, bodyBytes), times: decodedTimes, read: b.read, decoded: b.decoded, end: end}
	if limit.Submit || limit.Template {
		own.times = jobTimes
	}
	if who.Guest() {
		own.key, own.size, own.read, own.decoded = clientaddr.Network(from), min(own.size, guestBytes), b.guestRead, b.guestDecoded
	}
	own.ReadCloser = http.MaxBytesReader(c.Writer, r.Body, own.size)
	if r.ContentLength >= 0 {
		own.size = min(own.size, r.ContentLength)
	}
	r.Body = own
}

// All reads the whole body after it has reserved the memory.
func (b *body) All() ([]byte, error) {
	if err := b.hold(b.read, int(b.size)); err != nil {
		return nil, err
	}
	// The body occupies memory for which other requests wait, so it must arrive soon.
	soon := time.Now().Add(readTime + time.Duration(b.size)*time.Second/readRate)
	if err := b.until(soon); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(b.ReadCloser)
	if err == nil {
		err = b.until(b.end)
	}
	if err == nil {
		err = b.hold(b.decoded, b.times*len(data))
	}
	return data, err
}

// hold reserves memory until the response to the request is complete.
func (b *body) hold(p *pool, n int) error {
	if n == 0 {
		return nil
	}
	give, err := p.take(b.call.Context(), b.key, n)
	if err == nil {
		b.call.after(give)
	}
	return err
}

// until sets the read deadline of the body.
func (b *body) until(end time.Time) error {
	err := http.NewResponseController(b.call.Writer).SetReadDeadline(end)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
