package archive_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestPruneTakesWhatEndedBeforeAndAllThatBelongsToIt(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		now := epoch
		p.Now = func() time.Time { return now }
		s, ctx := p.open(t), t.Context()
		put := func(content string) string {
			require.NoError(t, s.PutCode(ctx, "ann", sum(content), int64(len(content)), strings.NewReader(content)))
			return sum(content)
		}
		withCode := func(f *v1.Framework, code string) *v1.Framework {
			f.Annotations[v1.AnnotationCode] = code
			return f
		}
		old := withCode(job("alice", "old", 0, 2), put("old"))
		running := withCode(job("alice", "running", 1, 1), put("running"))
		for _, f := range []*v1.Framework{end(run(old, 0, 10), 0, 20, false), run(running, 0, 10)} {
			require.NoError(t, s.SaveJob(ctx, f))
			require.NoError(t, s.SaveLog(ctx, api.LogKey{Framework: f.Name, Role: "worker"}, []byte("log of "+f.Name), false))
			require.NoError(t, s.SaveEvents(ctx, f.Name, []api.Event{{UID: "old " + f.Name, Time: at(15).Time}, {UID: "late " + f.Name, Time: at(7200).Time}}))
		}
		live, unused := put("live"), put("unused")
		now = epoch.Add(25 * time.Hour)
		fresh := put("fresh") // its job is being submitted

		n, err := s.Prune(ctx, epoch.Add(time.Hour), []string{live, sum("nobody has this")})
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		rest := strings.Join(p.content(t), "\n")
		assert.NotContains(t, rest, string(old.UID))
		assert.NotContains(t, rest, "old "+running.Name, "events have their time")
		assert.Contains(t, rest, "late "+running.Name)
		for _, gone := range []string{sum("old"), unused} {
			_, _, err := s.Code(ctx, gone)
			require.Error(t, err)
		}
		for _, kept := range []string{sum("running"), live, fresh} {
			readCode(t, s, kept)
		}
		log, _, err := s.Log(ctx, api.LogKey{Framework: running.Name, Role: "worker"})
		require.NoError(t, err)
		assert.Equal(t, "log of "+running.Name, string(log))

		n, err = s.Prune(ctx, epoch.Add(time.Hour), []string{live})
		require.NoError(t, err)
		assert.Zero(t, n, "there is nothing left to take")
	})
}

func TestCodeThatIsAskedForAgainIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		now := epoch
		p.Now = func() time.Time { return now }
		s := p.open(t)
		require.NoError(t, s.PutCode(t.Context(), "ann", sum("x"), 1, strings.NewReader("x")))
		now = epoch.Add(48 * time.Hour)
		require.NoError(t, s.PutCode(t.Context(), "ann", sum("x"), 1, strings.NewReader("x")))
		_, err := s.Prune(t.Context(), epoch, nil)
		require.NoError(t, err)
		readCode(t, s, sum("x"))
	})
}

func TestPruneTakesManyJobsInSeveralSteps(t *testing.T) {
	onBoth(t, func(t *testing.T, p place) {
		s := p.open(t)
		fill(t, s, 450)
		n, err := s.Prune(t.Context(), at(20+300).Time, nil)
		require.NoError(t, err)
		assert.Equal(t, 300, n)
		left, err := walk(t.Context(), s, api.JobQuery{}, func() {})
		require.NoError(t, err)
		assert.Len(t, left, 150)
	})
}
