package logstore

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

func (s *Server) serveWindow(w http.ResponseWriter, r *http.Request) {
	q, err := readWindowQuery(r.URL.Query())
	if err != nil {
		badQuery(w, err)
		return
	}
	x := s.found(w, r, q.wait)
	if x == nil {
		return
	}
	s.store.awaitAfter(r.Context(), x, q.at, q.wait)
	out, err := x.window(r.Context(), q)
	answerJSON(w, out, err)
}

func (s *Server) serveMatches(w http.ResponseWriter, r *http.Request) {
	q, err := readMatchQuery(r.URL.Query())
	if err != nil {
		badQuery(w, err)
		return
	}
	x := s.found(w, r, 0)
	if x == nil {
		return
	}
	select {
	case s.searching <- struct{}{}:
		defer func() { <-s.searching }()
	case <-r.Context().Done():
		return
	}
	s.store.catchUp(r.Context(), x)
	out, err := x.matches(r.Context(), q, time.Now)
	answerJSON(w, out, err)
}

// awaitAfter stores the new output of the container. If at is an offset, awaitAfter also waits until the log continues after the offset.
func (s *Store) awaitAfter(ctx context.Context, x *stream, at place, wait time.Duration) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		s.catchUp(ctx, x)
		if p, _ := x.snapshot(); p.End > at.offset || at.edge != "" || !at.time.IsZero() || x.finished() || waiting.Err() != nil {
			return
		}
		pause(waiting, s.step)
	}
}

func answerJSON(w http.ResponseWriter, out any, err error) {
	var data []byte
	if err == nil {
		data, err = json.Marshal(out)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(data) // an error means that the client has disconnected
}
