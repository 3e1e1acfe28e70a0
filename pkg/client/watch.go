package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// Watch calls show with the list now, and again at each interval, until the context ends or show returns an error. The server sends the changes.
// If the server can't, because it is older or the list is too long, Watch requests the list at each interval.
func (c *Jobs) Watch(ctx context.Context, f job.Filter, every time.Duration, show func(*job.Page) error) error {
	if f.Cursor == "" && c.inside == nil {
		err := c.follow(ctx, f, every, show)
		if !errors.Is(err, errNoWatch) {
			return err
		}
	}
	return job.Repeat(ctx, every, func(bool) error {
		page, err := c.List(ctx, f)
		if err != nil {
			return err
		}
		return show(page)
	})
}

// errNoWatch means that the server doesn't send the changes of a list, so that the caller must request the whole list.
var errNoWatch = errors.New("the server doesn't report changes of this list")

// errReread means that the list must be read again from the beginning, instead of resuming at a position.
var errReread = errors.New("the list is to be read again")

// errNoList is returned if the server's responses don't follow the protocol.
var errNoList = errors.New("the server sent changes to a list before the list itself")

func (c *Jobs) follow(ctx context.Context, f job.Filter, every time.Duration, show func(*job.Page) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k := &kept{filter: f, first: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(c.keep(inner, k))
	}()
	defer func() { cancel(nil); <-ended }()
	select {
	case <-k.first:
	case <-inner.Done():
		if ctx.Err() != nil {
			return nil // Ctrl-C is the usual way to end it
		}
		return explained(context.Cause(inner))
	}
	err := job.Repeat(inner, every, func(bool) error { return show(k.page()) })
	if err == nil && ctx.Err() == nil {
		err = explained(context.Cause(inner))
	}
	return err
}

// keep reads the changes of a list. If the connection is lost, keep tries to reconnect for as long as a server may need to restart.
func (c *Jobs) keep(ctx context.Context, k *kept) error {
	lost, pause := time.Time{}, between
	for {
		q := get(api.Prefix+"/jobs/watch", listQuery(k.filter))
		if k.filter.Limit > 0 {
			q.query.Set("limit", strconv.Itoa(k.filter.Limit))
		}
		k.begin()
		err := c.events(ctx, q, k.place, func(e event) error {
			lost, pause = time.Time{}, between
			return k.take(e)
		})
		refused, _ := errors.AsType[*Error](err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errReread):
			k.place = ""
			continue
		case errors.Is(err, errNoWatch), refused != nil && refused.Status == http.StatusNotFound:
			return errNoWatch
		case errors.Is(err, errNoList), lasts(err):
			return err
		case lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > c.patience:
			return err
		}
		if refused != nil && refused.after > 0 {
			pause = refused.after
		}
		if pause, err = wait(ctx, pause); err != nil {
			return err
		}
	}
}

// kept is a copy of a list from the server.
type kept struct {
	filter job.Filter
	place  string
	first  chan struct{} // closed when it is complete

	mu sync.Mutex
	// rows are the jobs by their UIDs. coming is the next list while it is still incomplete.
	rows, coming map[string]job.Row
	more         bool // there are older ones
	note         string
}

// begin prepares for a new connection. It drops a list that was incomplete on the last connection, because the new connection doesn't continue
// it.
func (k *kept) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.coming = nil
}

func (k *kept) take(e event) error {
	if err := k.tell(e); err != nil {
		return err
	}
	if e.place != "" {
		k.place = e.place
	}
	return nil
}

func (k *kept) tell(e event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch e.name {
	case api.EventSnapshot:
		k.coming = map[string]job.Row{}
	case api.EventJob:
		row := job.Row{}
		if err := json.Unmarshal([]byte(e.data), &row); err != nil {
			return err
		}
		to := k.rows
		if k.coming != nil {
			to = k.coming
		}
		if to == nil {
			return errNoList
		}
		to[row.UID] = row
	case api.EventReady:
		r := api.Ready{}
		if err := json.Unmarshal([]byte(e.data), &r); err != nil {
			return err
		}
		return k.ready(r)
	case api.EventGone:
		g := api.RemovedJob{}
		if err := json.Unmarshal([]byte(e.data), &g); err != nil {
			return err
		}
		if delete(k.rows, g.UID); k.more && len(k.rows) < k.filter.Limit {
			return errReread // an older job, which the client doesn't have, moves into the page
		}
	}
	return nil
}

func (k *kept) ready(r api.Ready) error {
	if r.Next != "" && k.filter.Limit == 0 {
		return errNoWatch
	}
	if k.coming == nil {
		return errNoList
	}
	first := k.rows == nil
	k.rows, k.coming, k.more, k.note = k.coming, nil, r.Next != "", r.Note
	if first {
		close(k.first)
	}
	return nil
}

// page returns the current list, without the rows beyond the limit.
func (k *kept) page() *job.Page {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &job.Page{Items: []job.Row{}, Note: k.note}
	for _, r := range k.rows {
		p.Items = append(p.Items, r)
	}
	slices.SortFunc(p.Items, func(a, b job.Row) int { return listing.NewestFirst(&a, &b) })
	if !k.filter.Earlier {
		seen := map[string]bool{}
		p.Items = slices.DeleteFunc(p.Items, func(r job.Row) bool {
			earlier := r.Framework != "" && seen[r.Framework]
			seen[r.Framework] = true
			return earlier
		})
	}
	if n := k.filter.Limit; n > 0 && len(p.Items) > n {
		for _, r := range p.Items[n:] {
			delete(k.rows, r.UID)
		}
		p.Items, k.more = p.Items[:n], true
	}
	if k.more && len(p.Items) > 0 {
		p.Next = listing.NewCursor(&p.Items[len(p.Items)-1])
	}
	return p
}

// listQuery returns the query parameters for a filter.
func listQuery(f job.Filter) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"user": f.User, "vc": f.VirtualCluster, "keyword": f.Keyword, "name": f.InName, "cursor": f.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, p := range f.Phases {
		q.Add("state", string(p))
	}
	if f.Earlier {
		q.Set("earlier", "true")
	}
	if !f.Since.IsZero() {
		q.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	return q
}
