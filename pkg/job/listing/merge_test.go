package listing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// history is an archive in memory. It calls asked before and after each query, and asked may change everything.
type history struct {
	jobs  map[string]api.Job
	asked func()
	read  int // rows
	err   error
}

func (h *history) Jobs(_ context.Context, q api.JobQuery) (*api.JobPage, error) {
	if h.asked != nil {
		h.asked()
		defer h.asked()
	}
	if h.err != nil {
		return nil, h.err
	}
	rows := []api.Job{}
	for _, j := range h.jobs {
		r := listing.Row{Job: j}
		f := listing.Filter{User: q.User, VirtualCluster: q.VirtualCluster, Keyword: q.Keyword, Since: q.Since}
		if (len(q.States) == 0 || slices.Contains(q.States, j.State)) && f.Selects(&r) && (q.Before.IsZero() || j.Submitted.Before(q.Before)) {
			rows = append(rows, j)
		}
	}
	slices.SortFunc(rows, func(a, b api.Job) int { return listing.NewestFirst(&listing.Row{Job: a}, &listing.Row{Job: b}) })
	if q.Cursor != "" {
		second, uid := q.Cursor[:10], q.Cursor[10:]
		n, _ := strconv.Atoi(second)
		rows = slices.DeleteFunc(rows, func(j api.Job) bool {
			return j.Submitted.Unix() > int64(n) || j.Submitted.Unix() == int64(n) && j.UID >= uid
		})
	}
	page := &api.JobPage{Items: rows}
	if len(rows) > q.Limit {
		page.Items = rows[:q.Limit]
		last := rows[q.Limit-1]
		page.Next = fmt.Sprintf("%010d%s", last.Submitted.Unix(), last.UID)
	}
	h.read += len(page.Items)
	return page, nil
}

func (h *history) Job(_ context.Context, uid string) (*api.JobDetail, error) {
	if j, ok := h.jobs[uid]; ok {
		return &api.JobDetail{Job: j}, nil
	}
	return nil, errors.New("not in the archive")
}

// save stores the current row of a job, as the controller does.
func (h *history) save(f *v1.Framework) { h.jobs[string(f.UID)] = api.Summary(f) }

// page requests a page of live jobs and the history, as the controller does.
func page(ctx context.Context, t require.TestingT, x *listing.Index, h *history, f listing.Filter) *listing.Page {
	n := 0
	if f.Limit > 0 {
		n = f.Limit + 1
	}
	rows, err := x.Rows(f, n)
	require.NoError(t, err)
	p, missing, err := listing.Merge(ctx, f, listing.Live{Rows: rows, Exists: x.Has, Named: x.Named, Deleted: func(_ context.Context, j *api.Job) (bool, error) { return !x.Has(j.UID), nil }}, h)
	require.NoError(t, err)
	require.NoError(t, missing)
	return p
}

// Jobs are created, change, end, move from the cluster to the history, and are removed from the history. This happens between two pages, and also
// between the two reads for one page. No job is listed twice, and each job that exists all the time, either live or in the history, is listed.
func TestAWalkListsEachJobOnceWhateverHappensMeanwhile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, h := listing.NewIndex(), &history{jobs: map[string]api.Job{}}
		live := map[string]*v1.Framework{}
		n := 0
		submit := func() {
			n++
			f := framework("ann", "vision", fmt.Sprint("job", n), uid(n), rapid.IntRange(0, 4).Draw(t, "second"), v1.AttemptRunning, 0)
			live[string(f.UID)] = f
			x.Put(brief(f))
			if rapid.Bool().Draw(t, "holds GPUs") { // of these the history has a row before their end
				h.save(f)
			}
		}
		end := func(id string) {
			old := live[id]
			f := framework("ann", "vision", old.Annotations[v1.AnnotationJobName], id, int(old.CreationTimestamp.Sub(epoch).Seconds()), v1.Completed, 0)
			live[id] = f
			h.save(f) // before it is written down
			x.Put(brief(f))
		}
		forgotten := map[string]bool{}
		change := func() {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				var ids []string
				for id := range live {
					ids = append(ids, id)
				}
				slices.Sort(ids)
				what := rapid.IntRange(0, 4).Draw(t, "what")
				if what == 0 || len(ids) == 0 {
					submit()
					continue
				}
				id := rapid.SampledFrom(ids).Draw(t, "which")
				switch {
				case what == 1:
					end(id)
				case what == 2: // finished, and its Framework is removed
					end(id)
					x.Remove(brief(live[id]), true)
					delete(live, id)
				case what == 3 && live[id].Status.State == v1.Completed: // the history forgets it: it was there no more
					delete(h.jobs, id)
					x.Remove(brief(live[id]), true)
					delete(live, id)
					forgotten[id] = true
				default:
					x.Put(brief(live[id]))
				}
			}
		}
		for range rapid.IntRange(0, 12).Draw(t, "jobs") {
			submit()
		}
		change()
		there := map[string]bool{}
		for id := range live {
			there[id] = true
		}
		for id := range h.jobs {
			there[id] = true
		}
		h.asked = change
		f := listing.Filter{Limit: rapid.IntRange(1, 4).Draw(t, "limit")}
		seen := map[string]bool{}
		for {
			p := page(t.Context(), t, x, h, f)
			require.LessOrEqual(t, len(p.Items), f.Limit)
			for i := range p.Items {
				r := &p.Items[i]
				require.False(t, seen[r.UID], "%s is listed twice", r.UID)
				require.True(t, r.State != "deleted" || forgotten[r.UID], "no one removed a job by force")
				seen[r.UID] = true
			}
			if f.Cursor = p.Next; f.Cursor == "" {
				break
			}
			change()
		}
		for id := range there {
			require.True(t, seen[id] || forgotten[id], "%s was there all the time and isn't listed", id)
		}
	})
}

// If a Framework was removed by force, the history doesn't contain the job's end yet.
func TestAJobThatIsNowhereElseIsDeleted(t *testing.T) {
	x, h := listing.NewIndex(), &history{jobs: map[string]api.Job{}}
	h.save(framework("ann", "vision", "gone", uid(1), 1, v1.AttemptRunning, 0))
	h.save(framework("ann", "vision", "ended", uid(2), 2, v1.Completed, 0))
	there := framework("ann", "vision", "runs", uid(3), 3, v1.AttemptRunning, 0)
	h.save(there)
	x.Put(brief(there))
	p := page(t.Context(), t, x, h, listing.Filter{})
	require.Len(t, p.Items, 3)
	assert.Equal(t, "deleted", p.Items[2].State)
	p = page(t.Context(), t, x, h, listing.Filter{Phases: []listing.Phase{listing.Deleted}, Limit: 1})
	require.Len(t, p.Items, 1)
	assert.Equal(t, "gone", p.Items[0].Name)
	p = page(t.Context(), t, x, h, listing.Filter{Phases: []listing.Phase{listing.Succeeded}, Limit: 1})
	require.Len(t, p.Items, 1)
	assert.Equal(t, "ended", p.Items[0].Name)
	p = page(t.Context(), t, x, h, listing.Filter{Phases: []listing.Phase{listing.Running}, Limit: 1})
	require.Len(t, p.Items, 1)
	assert.Equal(t, "runs", p.Items[0].Name)
}

func TestALiveJobHidesEarlierJobsOfItsName(t *testing.T) {
	x, h := listing.NewIndex(), &history{jobs: map[string]api.Job{}}
	h.save(framework("ann", "vision", "train", uid(1), 1, v1.Completed, 1))
	h.save(framework("bob", "vision", "train", uid(2), 2, v1.Completed, 1))
	x.Put(brief(framework("ann", "nlp", "train", uid(3), 3, v1.AttemptRunning, 0)))
	uids := func(f listing.Filter) (out []string) {
		for _, r := range page(t.Context(), t, x, h, f).Items {
			out = append(out, r.UID)
		}
		return out
	}
	assert.Equal(t, []string{uid(3), uid(2)}, uids(listing.Filter{}), "another person's job has another name")
	assert.Equal(t, []string{uid(2)}, uids(listing.Filter{VirtualCluster: "vision"}), "also if the filter doesn't select the live one")
	assert.Equal(t, []string{uid(3), uid(2), uid(1)}, uids(listing.Filter{Earlier: true}))
}

func TestOnlyAsMuchOfTheHistoryIsReadAsAPageShows(t *testing.T) {
	x, h := listing.NewIndex(), &history{jobs: map[string]api.Job{}}
	for i := range 5000 {
		h.save(framework("ann", "vision", fmt.Sprint("old", i), uid("old", i), i, v1.Completed, 0))
	}
	page(t.Context(), t, x, h, listing.Filter{Limit: 50})
	assert.LessOrEqual(t, h.read, 51, "nothing lives")
	for i := range 1000 {
		f := framework("ann", "vision", fmt.Sprint("new", i), uid("new", i), 10000+i, v1.AttemptRunning, 0)
		x.Put(brief(f))
		h.save(f) // it holds GPUs
	}
	h.read = 0
	p := page(t.Context(), t, x, h, listing.Filter{Limit: 50})
	require.Len(t, p.Items, 50)
	assert.Equal(t, "new999", p.Items[0].Name)
	assert.LessOrEqual(t, h.read, 51, "those that live are in the history, too")
	h.read = 0
	page(t.Context(), t, x, h, listing.Filter{Limit: 50, Phases: []listing.Phase{listing.Running}})
	assert.Zero(t, h.read, "what runs is there")
}

func TestOfAnothersJobsOnlyWhatIsSeenIsRead(t *testing.T) {
	x, h := listing.NewIndex(), &history{jobs: map[string]api.Job{}}
	for i := range 100 {
		vc := []string{"vision", "speech"}[i%2]
		h.save(framework("bob", vc, fmt.Sprint("old", i), uid("old", i), i, v1.Completed, 0))
	}
	for name, test := range map[string]struct {
		filter     listing.Filter
		sees       listing.Visibility
		read, rows int
	}{
		"nothing is granted":             {listing.Filter{User: "bob"}, listing.Visibility{User: "mallory"}, 0, 0},
		"another virtual cluster":        {listing.Filter{User: "bob", VirtualCluster: "vision"}, listing.Visibility{User: "mallory", VCs: []string{"speech"}}, 0, 0},
		"one virtual cluster is granted": {listing.Filter{User: "bob"}, listing.Visibility{User: "mallory", VCs: []string{"speech"}}, 50, 50},
		"two are granted":                {listing.Filter{User: "bob"}, listing.Visibility{User: "mallory", VCs: []string{"speech", "vision"}}, 100, 100},
		"their own":                      {listing.Filter{User: "bob"}, listing.Visibility{User: "bob"}, 100, 100},
		"an administrator":               {listing.Filter{User: "bob"}, listing.Visibility{All: true, User: "root"}, 100, 100},
		"all that is one's own":          {listing.Filter{}, listing.Visibility{User: "bob"}, 100, 100},
	} {
		h.read = 0
		test.filter.Visible = &test.sees
		assert.Len(t, page(t.Context(), t, x, h, test.filter).Items, test.rows, name)
		assert.Equal(t, test.read, h.read, name)
	}
}

func TestAListIsShownWithoutTheHistory(t *testing.T) {
	x, h := listing.NewIndex(), &history{err: errors.New("the disk is full")}
	x.Put(brief(framework("ann", "vision", "runs", uid(1), 3, v1.AttemptRunning, 0)))
	rows, err := x.Rows(listing.Filter{}, 0)
	require.NoError(t, err)
	p, missing, err := listing.Merge(t.Context(), listing.Filter{}, listing.Live{Rows: rows, Exists: x.Has}, h)
	require.NoError(t, err)
	require.ErrorIs(t, missing, h.err)
	assert.Len(t, p.Items, 1)
}
