package archive_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
)

func TestAJobWhoseFrameworkIsGoneIsEnded(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		p.Now = func() time.Time { return at(99).Time }
		s, ctx := p.open(t), t.Context()
		lost, done := job("alice", "lost", 0, 2), job("alice", "done", 1, 1)
		retried := end(run(lost, 0, 10), 137, 20, true)
		require.NoError(t, s.SaveAttempt(ctx, retried))
		require.NoError(t, s.SaveJob(ctx, end(run(done, 0, 10), 0, 20, false)))
		open, err := s.Unended(ctx)
		require.NoError(t, err)
		require.Len(t, open, 1)
		assert.Equal(t, string(lost.UID), open[0].UID)
		assert.Equal(t, lost.Name, open[0].Framework)

		var uids []string
		for i := range 1200 {
			uids = append(uids, fmt.Sprint("other", i))
		}
		require.NoError(t, s.EndRemoved(ctx, append(uids, string(lost.UID), string(done.UID))))
		open, err = s.Unended(ctx)
		require.NoError(t, err)
		assert.Empty(t, open)
		d, err := s.Job(ctx, lost.Name)
		require.NoError(t, err)
		assert.Equal(t, []any{api.Deleted, api.PhraseGone, at(99).UTC()}, []any{d.State, d.Phrase, *d.Completed})
		assert.Nil(t, d.Code)
		d, err = s.Job(ctx, done.Name)
		require.NoError(t, err)
		assert.Equal(t, api.Succeeded, d.State, "its end was known")
		page, err := s.Jobs(ctx, api.JobQuery{States: []string{api.Deleted}})
		require.NoError(t, err)
		assert.Len(t, page.Items, 1)

		// A replica that no longer leads may still write.
		require.NoError(t, s.SaveAttempt(ctx, retried))
		d, err = s.Job(ctx, lost.Name)
		require.NoError(t, err)
		assert.Equal(t, api.Deleted, d.State)
		// If the Framework returns with the same UID, as after restoring a backup of etcd, its own end replaces the assumed end.
		require.NoError(t, s.SaveJob(ctx, end(run(lost, 1, 30), 0, 40, false)))
		d, err = s.Job(ctx, lost.Name)
		require.NoError(t, err)
		assert.Equal(t, []any{api.Succeeded, "Ended", at(40).UTC()}, []any{d.State, d.Phrase, *d.Completed})
	})
}
