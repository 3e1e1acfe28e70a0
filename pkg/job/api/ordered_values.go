package api

import (
	"net/url"
	"strconv"
	"time"
)

// Values returns the query as the URL parameters of GET /v1/jobs.
func (q *OrderedQuery) Values() url.Values {
	v := url.Values{"order": {q.Order}}
	add := func(name string, values ...string) {
		for _, one := range values {
			if one != "" {
				v.Add(name, one)
			}
		}
	}
	add("user", q.Users...)
	add("vc", q.VirtualClusters...)
	add("keyword", q.Keyword)
	add("name", q.InName)
	add("state", q.States...)
	add("priority", q.Priorities...)
	add("tag", q.TagsAny...)
	add("notTag", q.TagsNone...)
	for name, at := range map[string]time.Time{"since": q.Since, "before": q.Before} {
		if !at.IsZero() {
			add(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, yes := range map[string]bool{"desc": q.Descending, "count": q.Count, "latest": q.Latest} {
		if yes {
			add(name, "true")
		}
	}
	for name, n := range map[string]int{"offset": q.Offset, "limit": q.Limit} {
		if n != 0 {
			add(name, strconv.Itoa(n))
		}
	}
	switch see := q.Visible; {
	case see == nil:
	case see.All:
		add("visible", "all")
	default:
		add("visible", "some")
		add("visibleUser", see.User)
		add("visibleVC", see.VCs...)
	}
	return v
}
