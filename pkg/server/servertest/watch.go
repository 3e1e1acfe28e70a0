package servertest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// Event is one server-sent event. An event without a name only contains the id for a reconnection.
type Event struct{ Name, Data, ID string }

// Into decodes the data of the event into out.
func (e Event) Into(out any) error { return json.Unmarshal([]byte(e.Data), out) }

// Watch reads a stream of events.
type Watch struct {
	// Events delivers the events. It is closed at the end of the stream.
	Events <-chan Event
	// Stop ends the stream at the client.
	Stop context.CancelFunc
	// Retry is the last delay before a reconnection that the server has sent.
	Retry string
	// Place is the id of the last event that was read.
	Place  string
	server *Server
}

// Watch opens a stream of events. The status of the response must be 200.
func (s *Server) Watch(path, token, place string) *Watch {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if place != "" {
		r.Header.Set("Last-Event-ID", place)
	}
	resp, err := s.Client.Do(r) //nolint:bodyclose // the reader closes it, below
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	events := make(chan Event, 4096)
	w := &Watch{Events: events, Stop: cancel, server: s}
	s.t.Cleanup(cancel)
	go func() {
		defer close(events)
		defer func() { _ = resp.Body.Close() }()
		in := bufio.NewScanner(resp.Body)
		in.Buffer(nil, 1<<20)
		for e := (Event{}); in.Scan(); {
			key, value, _ := strings.Cut(in.Text(), ": ")
			switch key {
			case "event":
				e.Name = value
			case "data":
				e.Data = value
			case "id":
				e.ID = value
			case "retry":
				e.Name, e.Data = "retry", value
			case "":
				events <- e
				e = Event{}
			}
		}
	}()
	return w
}

// Next returns the next event with a name, or the zero Event at the end of the stream.
func (w *Watch) Next() Event {
	w.server.t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case e, open := <-w.Events:
			if e.ID != "" {
				w.Place = e.ID
			}
			switch {
			case e.Name == "retry":
				w.Retry = e.Data
			case e.Name != "" || !open:
				return e
			}
		case <-late:
			require.Fail(w.server.t, "no event came", "the place is %s", w.Place)
		}
	}
}

// Settle reads events until it receives a new place, and returns the place.
func (w *Watch) Settle() string {
	w.server.t.Helper()
	before := w.Place
	w.server.Eventually("a place after the event", func() bool {
		select {
		case e := <-w.Events:
			if e.ID != "" {
				w.Place = e.ID
			}
		default:
		}
		return w.Place != before
	})
	return w.Place
}

// Snapshot reads a whole list. It returns the reason why the server sent the list, and the names of its jobs.
func (w *Watch) Snapshot() (why string, names []string) {
	w.server.t.Helper()
	e := w.Next()
	require.Equal(w.server.t, "snapshot", e.Name, e.Data)
	begin := struct{ Why string }{}
	require.NoError(w.server.t, e.Into(&begin))
	for e = w.Next(); e.Name == "job"; e = w.Next() {
		names = append(names, w.Name(e))
	}
	require.Equal(w.server.t, "ready", e.Name, e.Data)
	return begin.Why, names
}

// Name returns USER/NAME of the job in an event.
func (w *Watch) Name(e Event) string {
	w.server.t.Helper()
	row := struct{ User, Name string }{}
	require.NoError(w.server.t, e.Into(&row), e.Data)
	return row.User + "/" + row.Name
}

// Await returns the next event with the given name for which fits returns true. It skips all other events.
func (w *Watch) Await(name string, fits func(Event) bool) Event {
	w.server.t.Helper()
	for {
		e := w.Next()
		require.NotEqual(w.server.t, Event{}, e, "the stream has ended")
		if e.Name == name && (fits == nil || fits(e)) {
			return e
		}
	}
}
