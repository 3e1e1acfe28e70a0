package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// HeaderTruncated is a header that is "true" if only the end of a log is available.
const HeaderTruncated = "X-Pai-Truncated"

func (s *Server) serveJobs(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Has("live") {
		return s.serveLive(w, r)
	}
	if r.URL.Query().Has("order") {
		return s.serveOrdered(w, r)
	}
	q, err := jobQuery(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := s.o.Store.Jobs(r.Context(), q)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, page)
	return nil
}

// jobQuery parses the parameters of a list. It rejects unknown parameters, because if it ignored a mistyped filter, the response would contain
// all jobs.
func jobQuery(v url.Values) (api.JobQuery, error) {
	q := api.JobQuery{User: v.Get("user"), VirtualCluster: v.Get("vc"), Keyword: v.Get("keyword"), Cursor: v.Get("cursor"), Latest: v.Get("latest") == "true"}
	if err := onlyKnown(v, "user", "vc", "state", "keyword", "since", "before", "latest", "limit", "cursor"); err != nil {
		return q, err
	}
	for _, states := range v["state"] { // several, or several with commas
		for state := range strings.SplitSeq(states, ",") {
			switch state {
			case api.Waiting, api.Running, api.Stopping, api.Succeeded, api.Failed, api.Stopped, api.Deleted:
				q.States = append(q.States, state)
			default:
				return q, fmt.Errorf("%w: there is no state %q", archive.ErrBadQuery, state)
			}
		}
	}
	for name, t := range map[string]*time.Time{"since": &q.Since, "before": &q.Before} {
		var err error
		if *t, err = instant(v, name); err != nil {
			return q, err
		}
	}
	limit, err := number(v, "limit")
	q.Limit = int(limit)
	return q, err
}

// instant parses a parameter that is a time. It returns the zero time if the parameter is missing.
func instant(v url.Values, name string) (time.Time, error) {
	text := v.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UTC().Year() >= 9999 { // rounded up to a whole hour, its end can't be written as JSON
		return time.Time{}, fmt.Errorf("%w: %s %q is not a time such as 2026-01-31T12:00:00Z", archive.ErrBadQuery, name, text)
	}
	return t, nil
}

func onlyKnown(v url.Values, names ...string) error {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	for name := range v {
		if !known[name] {
			return fmt.Errorf("%w: there is no parameter %q; there are %s", archive.ErrBadQuery, name, strings.Join(names, ", "))
		}
	}
	return nil
}

// number parses a parameter that is a number. It returns 0 if the parameter is missing.
func number(v url.Values, name string) (int32, error) {
	text := v.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: %s %q is not a number", archive.ErrBadQuery, name, text)
	}
	return int32(n), nil
}

func (s *Server) serveJob(w http.ResponseWriter, r *http.Request) error {
	job, err := s.o.Store.Job(r.Context(), r.PathValue("framework"))
	if err != nil {
		return err
	}
	write(w, http.StatusOK, job)
	return nil
}

// deleteJob deletes jobs from the history. It requires the same token as reading.
func (s *Server) deleteJob(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("framework")
	n, err := s.o.Store.Delete(r.Context(), name)
	if err != nil {
		return err
	}
	s.o.Log.InfoContext(r.Context(), "deleted from the history on request", "framework", name, "jobs", n)
	write(w, http.StatusOK, api.Deletion{Jobs: n})
	return nil
}

// serveEvents sends the events of a job: those in the archive, and those that aren't archived yet.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("framework")
	var latest []api.Event
	if s.o.Jobs != nil {
		latest = s.o.Jobs.Events(name) // before the archive is read, so that events that are archived in between are in both
	}
	events, err := s.o.Store.Events(r.Context(), name)
	if err != nil && (!errors.Is(err, archive.ErrNotFound) || len(latest) == 0) {
		return err
	}
	known := map[string]bool{}
	for i := range latest {
		known[latest[i].UID] = true
	}
	events = append(slices.DeleteFunc(events, func(e api.Event) bool { return known[e.UID] }), latest...)
	slices.SortFunc(events, func(a, b api.Event) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.UID, b.UID)) })
	write(w, http.StatusOK, events)
	return nil
}

func (s *Server) serveLog(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	if err := onlyKnown(v, "uid", "role", "task", "attempt", "taskAttempt"); err != nil {
		return err
	}
	key := api.LogKey{Framework: r.PathValue("framework"), UID: v.Get("uid"), Role: v.Get("role")}
	if key.Role == "" {
		return fmt.Errorf("%w: say which role's", archive.ErrBadQuery)
	}
	for name, field := range map[string]*int32{"task": &key.Task, "attempt": &key.Attempt, "taskAttempt": &key.TaskAttempt} {
		var err error
		if *field, err = number(v, name); err != nil {
			return err
		}
	}
	data, truncated, err := s.o.Store.Log(r.Context(), key)
	if err != nil {
		return err
	}
	// A user's program wrote the log, so browsers must not interpret it as a web page.
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set(HeaderTruncated, strconv.FormatBool(truncated))
	_, _ = w.Write(data) // a client that is gone
	return nil
}
