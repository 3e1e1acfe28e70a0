package archive_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// pick returns a random element of some.
func pick[T any](r *rand.Rand, some ...T) T { return some[r.IntN(len(some))] }

// various returns a finished job. Its fields have few different values, so that many jobs are equal in an order.
func various(r *rand.Rand, n int) *v1.Framework {
	f := job(pick(r, "ann", "bob", "Bob", "_x"), pick(r, "train", "eval", "Serve", "a%b")+fmt.Sprint(n%3), n%7, int32(1+r.IntN(2)))
	f.Name = fmt.Sprintf("%032d", n)
	f.UID = anyUID(r, n)
	f.Labels[v1.LabelVC] = pick(r, "vision", "nlp", "Nlp")
	f.Annotations[v1.AnnotationPriority] = pick(r, "", "prod", "oppo")
	f.Annotations[v1.AnnotationGPUs] = pick(r, "0", "8", "16")
	if tags := pick(r, "", "a", "A,b", "a,b,long tag"); tags != "" {
		f.Annotations[v1.AnnotationTags] = tags
	}
	return end(run(f, int32(r.IntN(2)), 10), pick(r, int32(0), 1, -210), 20+r.IntN(4), false)
}

// inHistory saves jobs to the archive, and marks most of them as gone. It returns the rows of the jobs that are gone.
func inHistory(t *testing.T, s archive.Store, jobs int) []listing.Row {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var rows []listing.Row
	for n := range jobs {
		f := various(r, n)
		require.NoError(t, s.SaveJob(t.Context(), f))
		if n%5 == 0 {
			continue // its Framework is still there
		}
		require.NoError(t, s.MarkDeleted(t.Context(), f))
		d, err := s.Job(t.Context(), string(f.UID))
		require.NoError(t, err)
		rows = append(rows, listing.NewArchivedRow(d.Job))
	}
	return rows
}

func TestOrderedPagesOfTheHistoryAreThoseOfASortedList(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		all := inHistory(t, s, 60)
		r := rand.New(rand.NewPCG(3, 4))
		for range 400 {
			f := listing.Filter{
				Order: pick(r, append(api.Orders(), "")...), Descending: pick(r, true, false),
				Users: pick(r, nil, nil, []string{"ann", "Bob"}), VirtualClusters: pick(r, nil, nil, []string{"nlp"}),
				Keyword: pick(r, "", "", "TRAIN", "%", "_x"), InName: pick(r, "", "", "serve", "a%"),
				Priorities: pick(r, nil, nil, []string{api.NoPriority}, []string{"prod", api.NoPriority}),
				TagsAny:    pick(r, nil, nil, []string{"a"}, []string{"long tag", "zz"}), TagsNone: pick(r, nil, nil, []string{"b"}),
				Phases:  pick(r, nil, nil, []listing.Phase{listing.Failed}, []listing.Phase{listing.Stopped, listing.Succeeded}),
				Visible: pick(r, nil, &api.Visibility{All: true}, &api.Visibility{}, &api.Visibility{User: "bob"}, &api.Visibility{VCs: []string{"nlp"}}, &api.Visibility{User: "ann", VCs: []string{"Nlp", "vision"}}),
				Since:   pick(r, time.Time{}, epoch.Add(3*time.Second)), Limit: r.IntN(20), Offset: r.IntN(50),
			}
			var model []listing.Row
			for i := range all {
				if f.Selects(&all[i]) {
					model = append(model, all[i])
				}
			}
			f.Sort(model)
			q := api.OrderedQuery{
				Order: f.Order, Descending: f.Descending, Users: f.Users, VirtualClusters: f.VirtualClusters, Keyword: f.Keyword, InName: f.InName, Priorities: f.Priorities,
				TagsAny: f.TagsAny, TagsNone: f.TagsNone, Visible: f.Visible, Since: f.Since, Limit: f.Limit, Offset: f.Offset, Count: true,
			}
			for _, phase := range f.Phases {
				q.States = append(q.States, string(phase))
			}
			page, err := s.Ordered(t.Context(), q)
			require.NoError(t, err)
			want := []api.Job{}
			for _, row := range model[min(q.Offset, len(model)):min(q.Offset+q.Limit, len(model))] {
				want = append(want, row.Job)
			}
			require.Equal(t, want, page.Items, "%+v", q)
			require.Equal(t, len(model), *page.Total)
		}
		for _, bad := range []api.OrderedQuery{{Limit: -1}, {Limit: api.MaxOrdered + 1}, {Offset: -1}, {Order: "gpus; DROP TABLE jobs"}} {
			_, err := s.Ordered(t.Context(), bad)
			require.ErrorIs(t, err, archive.ErrBadQuery)
		}
	})
}

// The pages combine the live jobs and the history, which is in a real archive.
func TestPagesOfLiveJobsAndTheHistoryAreThoseOfOneSortedList(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		model := inHistory(t, s, 40)
		r := rand.New(rand.NewPCG(5, 6))
		x := listing.NewIndex()
		for n := range 15 {
			f := various(r, 1000+n)
			f.Status = nil // it waits
			x.Put(listing.NewBrief(f))
		}
		for _, order := range api.Orders() {
			for _, descending := range []bool{false, true} {
				f := listing.Filter{Order: order, Descending: descending, Count: true, Limit: 7}
				live := x.Sorted(f)
				all := slices.Concat(model, live)
				f.Sort(all)
				var paged []listing.Row
				for ; len(paged) < len(all); f.Offset += f.Limit {
					page, missing := listing.Ordered(t.Context(), f, live, x.Has, s)
					require.NoError(t, missing)
					require.Equal(t, len(all), page.Total)
					require.NotEmpty(t, page.Items)
					paged = append(paged, page.Items...)
				}
				require.Equal(t, all, paged, "%s descending %v", order, descending)
			}
		}
	})
}

func TestAJobIsListedByTheHistoryOnceItIsGone(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		ended, lost := end(run(job("ann", "ended", 0, 1), 0, 10), 0, 20, false), run(job("ann", "lost", 1, 1), 0, 10)
		lost.Status.State = v1.AttemptCompleted
		require.NoError(t, s.SaveJob(ctx, ended))
		require.NoError(t, s.SaveJob(ctx, lost))
		listed := func() []string {
			page, err := s.Ordered(ctx, api.OrderedQuery{Limit: 10})
			require.NoError(t, err)
			out := []string{}
			for i := range page.Items {
				out = append(out, page.Items[i].Name)
			}
			return out
		}
		assert.Empty(t, listed())
		here, err := s.Unreleased(ctx, "", 10)
		require.NoError(t, err)
		assert.Equal(t, []api.Job{{UID: string(ended.UID), Framework: ended.Name}}, here, "the other has not ended")
		require.NoError(t, s.EndRemoved(ctx, []string{string(lost.UID), string(ended.UID)}))
		assert.Equal(t, []string{"ended", "lost"}, listed())
		d, err := s.Job(ctx, string(ended.UID))
		require.NoError(t, err)
		assert.Equal(t, api.Succeeded, d.State, "the end that was seen stays")
		require.NoError(t, s.SaveJob(ctx, ended))
		assert.Equal(t, []string{"ended", "lost"}, listed(), "a late write changes nothing")
		here, err = s.Unreleased(ctx, "", 10)
		require.NoError(t, err)
		assert.Empty(t, here)
	})
}

func TestTagsOfAJobThatIsGone(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		f := end(run(job("ann", "train", 0, 1), 0, 10), 0, 20, false)
		uid := string(f.UID)
		_, err := s.Tag(ctx, uid, []string{"a"}, nil)
		require.ErrorIs(t, err, archive.ErrNotFound)
		require.NoError(t, s.SaveJob(ctx, f))
		_, err = s.Tag(ctx, uid, []string{"a"}, nil)
		require.ErrorIs(t, err, archive.ErrNotGone)
		f.Annotations[v1.AnnotationTags] = "late"
		require.NoError(t, s.MarkDeleted(ctx, f))

		var wg sync.WaitGroup
		for _, tag := range []string{"b", "a", "c", "a"} {
			wg.Go(func() {
				_, err := s.Tag(context.WithoutCancel(ctx), uid, []string{tag}, nil)
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		tags, err := s.Tag(ctx, uid, nil, []string{"c", "no such"})
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "late"}, tags)
		d, err := s.Job(ctx, uid)
		require.NoError(t, err)
		assert.Equal(t, tags, d.Tags)
		page, err := s.Jobs(ctx, api.JobQuery{})
		require.NoError(t, err)
		assert.Equal(t, tags, page.Items[0].Tags)
		for _, bad := range []string{"", "a,b", strings.Repeat("x", v1.MaxTag+1)} {
			_, err = s.Tag(ctx, uid, []string{bad}, nil)
			require.ErrorIs(t, err, archive.ErrBadQuery)
		}
		var many []string
		for i := range v1.MaxTags {
			many = append(many, fmt.Sprint("t", i))
		}
		_, err = s.Tag(ctx, uid, many, nil)
		require.ErrorIs(t, err, archive.ErrBadQuery)
	})
}

func anyUID(r *rand.Rand, n int) types.UID {
	return types.UID(fmt.Sprintf("%08x-%s-%d", r.Uint32(), pick(r, "a", "B", "-"), n))
}
