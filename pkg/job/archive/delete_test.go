package archive_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestAJobIsDeletedWithAllThatBelongsToIt(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		first, second, other := job("alice", "train", 0, 2), job("alice", "train", 100, 2), job("alice", "other", 0, 1)
		third := job("alice", "train", 200, 1) // has the name now, and was retried
		for i, f := range []*v1.Framework{first, second, other} {
			require.NoError(t, s.SaveJob(ctx, end(run(f, 0, i*100+10), 1, i*100+20, false)))
			require.NoError(t, s.SaveLog(ctx, api.LogKey{Framework: f.Name, UID: string(f.UID), Role: "worker"}, []byte("log of "+f.UID), false))
		}
		require.NoError(t, s.SaveAttempt(ctx, end(run(third, 0, 210), 1, 220, true)))
		require.NoError(t, s.SaveEvents(ctx, first.Name, []api.Event{{UID: "of the first", Time: at(21).Time}, {UID: "of the second", Time: at(110).Time}, {UID: "of the third", Time: at(200).Time}}))
		require.NoError(t, s.SaveEvents(ctx, other.Name, []api.Event{{UID: "of the other", Time: at(15).Time}}))

		n, err := s.Delete(ctx, string(first.UID))
		require.NoError(t, err)
		assert.Equal(t, 1, n, "by its UID it is one")
		rest := strings.Join(p.content(t), "\n")
		assert.NotContains(t, rest, string(first.UID))
		assert.NotContains(t, rest, "of the first")
		assert.Contains(t, rest, string(second.UID))
		assert.Contains(t, rest, "of the second")

		n, err = s.Delete(ctx, second.Name)
		require.NoError(t, err)
		assert.Equal(t, 1, n, "all of that name that have ended")
		rest = strings.Join(p.content(t), "\n")
		assert.NotContains(t, rest, string(second.UID))
		assert.NotContains(t, rest, "of the second")
		for _, kept := range []string{string(third.UID), "of the third", string(other.UID), "of the other"} {
			assert.Contains(t, rest, kept)
		}
		_, err = s.Delete(ctx, third.Name)
		require.ErrorIs(t, err, archive.ErrNotEnded)
		_, err = s.Delete(ctx, "nobody")
		require.ErrorIs(t, err, archive.ErrNotFound)
	})
}

func TestAJobIsDeletedWithoutTheEventsOfTheNextOne(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s, ctx := p.open(t), t.Context()
		first, next := job("alice", "train", 0, 1), job("alice", "train", 21, 1)
		require.NoError(t, s.SaveJob(ctx, end(run(first, 0, 10), 1, 20, false)))
		require.NoError(t, s.SaveJob(ctx, next))
		require.NoError(t, s.SaveEvents(ctx, first.Name, []api.Event{{UID: "of the first", Time: at(20).Time}, {UID: "of the next", Time: at(21).Time}}))
		_, err := s.Delete(ctx, string(first.UID))
		require.NoError(t, err)
		rest := strings.Join(p.content(t), "\n")
		assert.NotContains(t, rest, "of the first")
		assert.Contains(t, rest, "of the next")
	})
}
