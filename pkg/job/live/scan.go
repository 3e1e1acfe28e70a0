package live

import (
	"context"

	"github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/framework/listing"
)

// ended is the history as ordered lists ask it.
func (l *Live) ended() listing.Ended {
	if o, ok := any(l.jobs.History).(listing.Ended); ok {
		return o
	}
	return scan{l.jobs.History, l.index.Has}
}

// scan orders the answers of a history that has but one order: it reads all that may be in the list.
type scan struct {
	history listing.Archive
	// there reports whether a job lives: its row in the history is no other job.
	there func(uid string) bool
}

// Ordered implements listing.Ended.
func (s scan) Ordered(ctx context.Context, q api.OrderedQuery) (*api.OrderedPage, error) {
	f := listing.Filter{Users: q.Users, VirtualClusters: q.VirtualClusters, Visible: q.Visible, Keyword: q.Keyword, InName: q.InName, Priorities: q.Priorities,
		TagsAny: q.TagsAny, TagsNone: q.TagsNone, Since: q.Since, Order: q.Order, Descending: q.Descending}
	for _, state := range q.States {
		f.Phases = append(f.Phases, listing.Phase(state))
	}
	ask := api.JobQuery{Keyword: q.Keyword, Since: q.Since, Before: q.Before, Limit: 1000}
	if len(q.Users) == 1 {
		ask.User = q.Users[0]
	} else if v := q.Visible; v != nil && !v.All && len(v.VCs) == 0 {
		ask.User = v.User
	}
	if len(q.VirtualClusters) == 1 {
		ask.VirtualCluster = q.VirtualClusters[0]
	}
	var rows []listing.Row
	for {
		page, err := s.history.Jobs(ctx, ask)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if listing.Phase(page.Items[i].State).Done() && !s.there(page.Items[i].UID) {
				if r := listing.NewArchivedRow(page.Items[i]); f.Fits(&r) {
					rows = append(rows, r)
				}
			}
		}
		if page.Next == "" || len(page.Items) == 0 {
			break
		}
		ask.Cursor = page.Next
	}
	f.Sort(rows)
	out := &api.OrderedPage{Items: []api.Job{}}
	if q.Count {
		n := len(rows)
		out.Total = &n
	}
	for i := q.Offset; i < len(rows) && len(out.Items) < q.Limit; i++ {
		out.Items = append(out.Items, rows[i].Job)
	}
	return out, nil
}
