package server

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// serveOrdered sends a page of jobs whose Frameworks are gone, in any order.
func (s *Server) serveOrdered(w http.ResponseWriter, r *http.Request) error {
	q, err := orderedQuery(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := s.o.Store.Ordered(r.Context(), q)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, page)
	return nil
}

// orderedQuery parses the parameters that api.OrderedQuery.Values returns.
func orderedQuery(v url.Values) (q api.OrderedQuery, err error) {
	q = api.OrderedQuery{Users: v["user"], VirtualClusters: v["vc"], Keyword: v.Get("keyword"), InName: v.Get("name"), Priorities: v["priority"], TagsAny: v["tag"], TagsNone: v["notTag"],
		Order: v.Get("order"), Descending: v.Get("desc") == "true", Count: v.Get("count") == "true", Latest: v.Get("latest") == "true"}
	if err := onlyKnown(v, "order", "desc", "offset", "limit", "count", "latest", "user", "vc", "keyword", "name", "state", "priority", "tag", "notTag", "since", "before", "visible", "visibleUser", "visibleVC"); err != nil {
		return q, err
	}
	for _, state := range v["state"] {
		switch state {
		case api.Succeeded, api.Failed, api.Stopped, api.Deleted:
			q.States = append(q.States, state)
		default:
			return q, fmt.Errorf("%w: there is no state %q of jobs that are gone", archive.ErrBadQuery, state)
		}
	}
	switch v.Get("visible") {
	case "":
	case "all":
		q.Visible = &api.Visibility{All: true}
	case "some":
		q.Visible = &api.Visibility{User: v.Get("visibleUser"), VCs: v["visibleVC"]}
	default:
		return q, fmt.Errorf("%w: visible is all or some", archive.ErrBadQuery)
	}
	if q.Since, err = instant(v, "since"); err != nil {
		return q, err
	}
	if q.Before, err = instant(v, "before"); err != nil {
		return q, err
	}
	offset, err := number(v, "offset")
	if err != nil {
		return q, err
	}
	limit, err := number(v, "limit")
	q.Offset, q.Limit = int(offset), int(limit)
	return q, err
}
