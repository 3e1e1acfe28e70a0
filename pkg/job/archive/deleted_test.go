package archive_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestTheHistoryTellsDeletedJobsFromThoseWhoseTimeIsOver(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		asked := metav1.NewTime(epoch.Add(time.Hour))
		for name, expired := range map[string]string{"deleted": "", "expired": "true"} {
			f := end(run(job("ann", name, 0, 1), 0, 10), 0, 20, false)
			require.NoError(t, s.SaveJob(t.Context(), f))
			f.DeletionTimestamp = &asked
			f.Annotations[v1.AnnotationExpired] = expired
			require.NoError(t, s.MarkDeleted(t.Context(), f))
			require.NoError(t, s.SaveJob(t.Context(), f), "a late write changes nothing")
		}
		page, err := s.Jobs(t.Context(), api.JobQuery{})
		require.NoError(t, err)
		ordered, err := s.Ordered(t.Context(), api.OrderedQuery{Limit: 10})
		require.NoError(t, err)
		require.Len(t, page.Items, 2)
		for _, j := range append(page.Items, ordered.Items...) {
			assert.Equal(t, api.Succeeded, j.State)
			assert.Equal(t, j.Name == "deleted", j.Deleted, j.Name)
		}
	})
}

func TestAListOfTheHistoryHasTheLatestJobOfEachName(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		for second, name := range []string{"train", "eval", "train", "train"} {
			f := end(run(job("ann", name, second, 1), 0, 10+second), int32(second), 20+second, false)
			f.UID = anyUID(rand.New(rand.NewPCG(1, uint64(second))), second)
			require.NoError(t, s.SaveJob(t.Context(), f))
			require.NoError(t, s.MarkDeleted(t.Context(), f))
		}
		codes := func(jobs []api.Job) (out []int32) {
			for _, j := range jobs {
				out = append(out, *j.Code)
			}
			return out
		}
		for _, states := range [][]string{nil, {api.Failed}, {api.Failed, api.Succeeded}} {
			var some []int32
			for q := (api.JobQuery{Latest: true, States: states, Limit: 1}); ; {
				page, err := s.Jobs(t.Context(), q)
				require.NoError(t, err)
				some = append(some, codes(page.Items)...)
				if q.Cursor = page.Next; q.Cursor == "" {
					break
				}
			}
			assert.Equal(t, []int32{3, 1}, some, states)
		}
		page, err := s.Jobs(t.Context(), api.JobQuery{})
		require.NoError(t, err)
		assert.Equal(t, []int32{3, 2, 1, 0}, codes(page.Items))
		ordered, err := s.Ordered(t.Context(), api.OrderedQuery{Latest: true, Limit: 10, Count: true, Descending: true})
		require.NoError(t, err)
		assert.Equal(t, []int32{3, 1}, codes(ordered.Items))
		assert.Equal(t, 2, *ordered.Total)
	})
}
