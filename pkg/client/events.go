package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/server/v3/api"
)

// event is one event of a stream of server-sent events. An event without a name means that all events up to place have been sent.
type event struct {
	name, data, place string
}

// events opens a stream of server-sent events, and passes each event to take until the stream ends. If place isn't empty, the stream continues
// after that place. events returns the same errors as frames, but never nil.
func (s *Server) events(ctx context.Context, q question, place string, take func(event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q.header, q.once = http.Header{}, true
	if place != "" {
		q.header.Set(api.LastEventID, place)
	}
	resp, err := s.do(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("%w: it sends no data", errBroken)) })
	defer watch.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 16<<10), maxFrame)
	at := event{}
	for lines.Scan() {
		watch.Reset(silence)
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() != "":
			at.field(key, value)
			continue
		case at.name == api.EventEnd:
			e := api.Error{}
			if err := json.Unmarshal([]byte(at.data), &e); err != nil {
				return s.garbled(err)
			}
			return &Error{Body: e, Host: s.base.Host, Status: statusOf(e.Code)}
		}
		if err := take(at); err != nil {
			return err
		}
		at = event{}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case lines.Err() != nil && !errors.Is(lines.Err(), io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", errBroken, lines.Err())
	}
	return errBroken
}

func (e *event) field(key, value string) {
	switch key {
	case "event":
		e.name = value
	case "data":
		e.data = value
	case "id":
		e.place = value
	}
}

func (s *Server) garbled(err error) error {
	return fmt.Errorf("read the answer of %s: %w", s.base.Host, err)
}
