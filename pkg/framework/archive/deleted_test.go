package archive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/framework/api"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
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
			require.NoError(t, s.MarkGone(t.Context(), f))
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
