package listing_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
)

// past is a history in memory that returns the same results as the archive.
type past struct {
	jobs []api.Job
	err  error
	most int // that were asked for at a time
}

func (p *past) Ordered(_ context.Context, q api.OrderedQuery) (*api.OrderedPage, error) {
	if p.err != nil {
		return nil, p.err
	}
	p.most = max(p.most, q.Limit)
	f := listing.Filter{
		Users: q.Users, VirtualClusters: q.VirtualClusters, Visible: q.Visible, Keyword: q.Keyword, InName: q.InName, Priorities: q.Priorities,
		TagsAny: q.TagsAny, TagsNone: q.TagsNone, Since: q.Since, Order: q.Order, Descending: q.Descending,
	}
	for _, s := range q.States {
		f.Phases = append(f.Phases, listing.Phase(s))
	}
	var rows []listing.Row
	for _, j := range p.jobs {
		if r := listing.NewArchivedRow(j); f.Selects(&r) {
			rows = append(rows, r)
		}
	}
	f.Sort(rows)
	out := &api.OrderedPage{Items: []api.Job{}}
	if q.Count {
		n := len(rows)
		out.Total = &n
	}
	for _, r := range rows[min(q.Offset, len(rows)):min(q.Offset+q.Limit, len(rows))] {
		out.Items = append(out.Items, r.Job)
	}
	return out, nil
}

// someJob returns a random job. Its fields have few different values, so that many jobs are equal in an order.
func someJob(t *rapid.T, n int, states ...string) api.Job {
	pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	j := api.Job{
		UID: uid(n), Framework: uid("name", n), User: pick("user", "ann", "bob", "Bob"), Name: pick("name", "train", "eval", "Serve"),
		VirtualCluster: pick("vc", "vision", "nlp"), Priority: pick("priority", "", "prod", "oppo"), State: pick("state", states...),
		GPUs: rapid.IntRange(-1, 2).Draw(t, "gpus"), Tasks: rapid.IntRange(1, 2).Draw(t, "tasks"), Retries: int32(rapid.IntRange(0, 1).Draw(t, "retries")),
		Submitted: epoch.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "second")) * time.Second),
	}
	if tags := rapid.SampledFrom([]string{"", "a", "b", "a,b"}).Draw(t, "tags"); tags != "" {
		j.Tags = []string{tags[:1], tags[len(tags)-1:]}
	}
	if listing.Phase(j.State).Done() {
		at := j.Submitted.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "took")) * time.Second)
		j.Completed = &at
	}
	return j
}

func TestOrderedPagesOfLiveAndEndedJobsAreThoseOfOneSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var live []listing.Row
		h := &past{}
		all := map[string]listing.Row{}
		for i := range rapid.IntRange(0, 12).Draw(t, "live") {
			j := someJob(t, i, "waiting", "queued", "running", "barrier", "stopping", "succeeded", "failed")
			r := listing.NewRow(j, listing.State{Phase: listing.Phase(j.State)}, true)
			live, all[r.UID] = append(live, r), r
		}
		for i := range rapid.IntRange(0, 12).Draw(t, "ended") {
			j := someJob(t, 100+i, "succeeded", "failed", "stopped", "deleted")
			h.jobs, all[j.UID] = append(h.jobs, j), listing.NewArchivedRow(j)
		}
		there := func(uid string) bool {
			return slices.ContainsFunc(live, func(r listing.Row) bool { return r.UID == uid })
		}

		f := listing.Filter{
			Order: rapid.SampledFrom(append(api.Orders(), "")).Draw(t, "order"), Descending: rapid.Bool().Draw(t, "desc"),
			Offset: rapid.IntRange(0, 30).Draw(t, "offset"), Limit: rapid.IntRange(0, 12).Draw(t, "limit"), Count: rapid.Bool().Draw(t, "count"),
			Users: rapid.SampledFrom([][]string{nil, nil, {"ann"}, {"ann", "Bob"}}).Draw(t, "users"), User: rapid.SampledFrom([]string{"", "", "ann"}).Draw(t, "one"),
			VirtualClusters: rapid.SampledFrom([][]string{nil, nil, {"nlp"}}).Draw(t, "vcs"),
			Phases:          rapid.SampledFrom([][]listing.Phase{nil, nil, {listing.Failed, listing.Running}, {listing.Running}}).Draw(t, "phases"),
			Priorities:      rapid.SampledFrom([][]string{nil, nil, {"prod"}, {api.NoPriority, "oppo"}}).Draw(t, "priorities"),
			TagsAny:         rapid.SampledFrom([][]string{nil, nil, {"a"}}).Draw(t, "any"), TagsNone: rapid.SampledFrom([][]string{nil, nil, {"b"}}).Draw(t, "none"),
			Visible: rapid.SampledFrom([]*listing.Visibility{nil, {All: true}, {User: "bob"}, {User: "bob", VCs: []string{"nlp"}}, {}}).Draw(t, "visible"),
		}
		var model []listing.Row
		for _, r := range all {
			if f.Selects(&r) {
				model = append(model, r)
			}
		}
		f.Sort(model)
		var fit []listing.Row
		for _, r := range live {
			if f.Selects(&r) {
				fit = append(fit, r)
			}
		}
		f.Sort(fit)

		page, missing := listing.Ordered(t.Context(), f, fit, there, h)
		require.NoError(t, missing)
		want := model[min(f.Offset, len(model)):min(f.Offset+f.Limit, len(model))]
		require.Equal(t, append([]listing.Row{}, want...), page.Items)
		if f.Count {
			require.Equal(t, len(model), page.Total)
		}
		require.LessOrEqual(t, h.most, f.Limit+min(f.Offset, len(fit)), "no more is asked for than the page may need")
	})
}

func TestAPageOfManyRowsIsAskedForInParts(t *testing.T) {
	h := &past{}
	for i := range 2*api.MaxOrdered + 7 {
		h.jobs = append(h.jobs, api.Job{UID: uid(i), Name: strconv.Itoa(i), State: "failed", Submitted: epoch})
	}
	f := listing.Filter{Limit: 3 * api.MaxOrdered, Offset: 3, Count: true}
	page, missing := listing.Ordered(t.Context(), f, nil, func(string) bool { return false }, h)
	require.NoError(t, missing)
	assert.Len(t, page.Items, 2*api.MaxOrdered+4)
	assert.Equal(t, 2*api.MaxOrdered+7, page.Total)
	assert.Equal(t, api.MaxOrdered, h.most)
}

func TestAJobThatHasJustGoneIsListedOnce(t *testing.T) {
	j := api.Job{UID: uid(1), State: "failed", Submitted: epoch}
	live := []listing.Row{listing.NewRow(j, listing.State{Phase: listing.Failed}, true)}
	page, missing := listing.Ordered(t.Context(), listing.Filter{Limit: 5}, live, func(u string) bool { return u == j.UID }, &past{jobs: []api.Job{j}})
	require.NoError(t, missing)
	assert.Equal(t, live, page.Items)
}

func TestLiveJobsAreListedWithoutTheHistory(t *testing.T) {
	j := api.Job{UID: uid(1), State: "running", Submitted: epoch}
	live := []listing.Row{listing.NewRow(j, listing.State{Phase: listing.Running}, true)}
	away := errors.New("away")
	page, missing := listing.Ordered(t.Context(), listing.Filter{Limit: 5, Count: true}, live, func(string) bool { return true }, &past{err: away})
	require.ErrorIs(t, missing, away)
	assert.Equal(t, live, page.Items)
	assert.Equal(t, 1, page.Total)
}
