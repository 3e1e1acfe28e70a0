package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

const (
	// silence is how long a stream may be without a line. The server sends an empty line every 15 seconds.
	silence = 45 * time.Second
	// maxFrame is the maximum length of a line of a stream. A line of a log has up to 1 MiB, and base64 makes it longer.
	maxFrame = 64 << 20
	// between is the first pause before a stream is opened again, and betweenMost the longest.
	between     = time.Second
	betweenMost = 15 * time.Second
)

// errBroken is returned if a stream ends without the server's final message.
var errBroken = errors.New("the connection to the server was lost")

// frames opens a stream and passes its lines to take until the server ends the stream. frames returns nil if the server said that the stream is
// complete, an *Error if the server sent one, and errBroken or another error if the connection was lost. It calls clock with the server's time.
func (s *Server) frames(ctx context.Context, q question, clock func(time.Time), take func(*api.Frame) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := s.do(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		clock(at)
	}
	watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("%w: it sends no data", errBroken)) })
	defer watch.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), maxFrame)
	for lines.Scan() {
		watch.Stop() // take may need a long time
		f := &api.Frame{}
		if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), f); err != nil {
			return fmt.Errorf("read the answer of %s: %w", s.base.Host, err)
		}
		switch {
		case f.End:
			return nil
		case f.Error != nil:
			return &Error{Body: *f.Error, Host: s.base.Host, Status: statusOf(f.Error.Code)}
		}
		if err := take(f); err != nil {
			return err
		}
		watch.Reset(silence)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case lines.Err() != nil && !errors.Is(lines.Err(), io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", errBroken, lines.Err())
	}
	return errBroken
}

// statusOf returns the HTTP status that belongs to an error code. A stream sends its errors without a status, because its status was sent before
// them.
func statusOf(code string) int {
	switch code {
	case codeNoJob:
		return http.StatusNotFound
	case "UnavailableError":
		return http.StatusServiceUnavailable
	case "UnauthorizedUserError":
		return http.StatusUnauthorized
	case "ForbiddenUserError":
		return http.StatusForbidden
	case "UnknownError":
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// lasts reports whether an error is permanent, so that a retry can't succeed.
func lasts(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if ok {
		switch e.Status {
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests, http.StatusUnauthorized:
			return false
		}
		return true
	}
	_, session := errors.AsType[*SessionError](err)
	return session || errors.Is(err, errNotSignedIn)
}

// SessionError means that the user must sign in again.
type SessionError struct{ Text string }

// Error returns Text.
func (e *SessionError) Error() string { return e.Text }

// wait waits for d before a stream is opened again. It returns the next pause, which is longer.
func wait(ctx context.Context, d time.Duration) (next time.Duration, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return d, context.Cause(ctx)
	case <-timer.C:
		return min(2*d, betweenMost), nil
	}
}

// errEnough ends a stream because the caller doesn't need the rest of the stream.
var errEnough = errors.New("enough")

// Follow calls seen with the current state of a job, now and each time the job may have changed, until seen returns false. Follow survives a lost
// connection. It calls problem with the error when the connection is lost, and with nil when the connection is back.
func (c *Jobs) Follow(ctx context.Context, j *job.Job, seen func(*job.Detail) (more bool), problem func(error)) error {
	lost, pause := false, between
	lose := func(err error) {
		if !lost {
			problem(err)
		}
		lost = true
	}
	for {
		q := get(one(j, "/follow"), nil)
		q.once = true // it is retried here
		err := c.frames(ctx, q, func(time.Time) {}, func(f *api.Frame) error {
			switch {
			case f.Problem != "":
				lose(errors.New(f.Problem))
			case f.Detail != nil:
				if lost {
					problem(nil)
				}
				lost, pause = false, between
				if !seen(f.Detail) {
					return errEnough
				}
			}
			return nil
		})
		switch {
		case errors.Is(err, errEnough), err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case lasts(err):
			return about(j, err)
		}
		lose(err)
		if pause, err = wait(ctx, pause); err != nil {
			return err
		}
	}
}
