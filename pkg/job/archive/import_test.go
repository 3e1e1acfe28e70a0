package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// exportOf returns an export of an archive.
func exportOf(t *testing.T, s archive.Store) []byte {
	t.Helper()
	data, _, err := s.Export(t.Context(), false)
	require.NoError(t, err)
	text, err := io.ReadAll(data)
	require.NoError(t, err)
	require.NoError(t, data.Close())
	return text
}

func importInto(t *testing.T, s archive.Store, text []byte) (*api.Import, error) {
	t.Helper()
	return s.Import(t.Context(), bytes.NewReader(text), int64(len(text)), false)
}

// past returns the archive of a cluster that was lost, and its export. The archive has two finished jobs, one of which was retried, with a log,
// events and code. It also has a running job, and GPU time, part of which is already summed up.
func past(t *testing.T) (p place, export []byte) {
	t.Helper()
	p = sqlitePlace(t)
	l, ctx := newLab(t, p), t.Context()
	old := holding(run(job("ann", "old", 0, 2), 0, 0), 4, 0)
	require.NoError(t, l.SaveJob(ctx, end(old, 0, 3600, false)))
	l.now = 8 * 24 * 3600
	_, err := l.Prune(ctx, epoch.AddDate(-1, 0, 0), nil)
	require.NoError(t, err)
	f := job("ann", "train", l.now, 2)
	require.NoError(t, l.SaveAttempt(ctx, end(holding(run(f, 0, l.now), 1, l.now), 137, l.now+60, true)))
	require.NoError(t, l.SaveLog(ctx, api.LogKey{Framework: f.Name, UID: string(f.UID), Role: "worker"}, []byte("said"), true))
	require.NoError(t, l.SaveEvents(ctx, f.Name, []api.Event{{UID: "e1", Time: at(l.now).Time, Reason: "Pulled"}}))
	require.NoError(t, l.SaveJob(ctx, end(run(f, 1, l.now+70), 0, l.now+100, false)))
	require.NoError(t, l.PutCode(ctx, "ann", sum("code"), 4, strings.NewReader("code")))
	l.now += 200
	require.NoError(t, l.SaveHolds(ctx, holding(run(job("bob", "runs", l.now, 1), 0, l.now), 2, l.now-100)))
	export = exportOf(t, l.Store)
	require.NoError(t, l.Close())
	return p, export
}

// same returns the rows that an import must not change. It leaves out uploads, which get new names, and the times of the last requests for code.
func same(lines []string) []string {
	lines = without(without(lines, "code "), "code_chunks ")
	for n := range lines {
		if strings.HasPrefix(lines[n], "logs ") { // SQLite has no other truth
			lines[n] = strings.Replace(lines[n], " 1 1773", " true 1773", 1)
		}
	}
	return lines
}

func TestAHistoryIsPutBackWhole(t *testing.T) {
	was, text := past(t)
	onBoth(t, func(t *testing.T, p place) {
		p.Scratch = t.TempDir()
		s := p.open(t)
		added, err := importInto(t, s, text)
		require.NoError(t, err)
		assert.Equal(t, &api.Import{Jobs: 3}, added)
		assert.Equal(t, same(was.content(t)), same(p.content(t)))
		code, _, err := s.Code(t.Context(), sum("code"))
		require.NoError(t, err)
		all, err := io.ReadAll(code)
		require.NoError(t, err)
		assert.Equal(t, "code", string(all))

		before := same(p.content(t))
		added, err = importInto(t, s, text)
		require.NoError(t, err)
		assert.Equal(t, &api.Import{Known: 3}, added)
		assert.Equal(t, before, same(p.content(t)), "once more changes nothing")
		for _, dir := range []string{p.Scratch, filepath.Dir(p.Path)} {
			left, err := filepath.Glob(dir + "/*.import*")
			require.NoError(t, err)
			assert.Empty(t, left)
		}
	})
}

func TestAHistoryThatIsPutBackLeavesWhatIsNewer(t *testing.T) {
	_, text := past(t)
	onBoth(t, func(t *testing.T, p place) {
		p.Scratch = t.TempDir()
		s, ctx := p.open(t), t.Context()
		second := 8 * 24 * 3600
		// The cluster was restored from a backup that was made during the first attempt of the job train. Now train runs again, and a new job
		// runs, too.
		again := run(job("ann", "train", second, 2), 0, second)
		require.NoError(t, s.SaveJob(ctx, again))
		require.NoError(t, s.SaveJob(ctx, run(job("cid", "today", second+900, 1), 0, second+900)))
		gone := job("bob", "runs", second+200, 1)
		require.NoError(t, s.SaveJob(ctx, gone))
		require.NoError(t, s.EndRemoved(ctx, []string{string(gone.UID)}))
		added, err := importInto(t, s, text)
		require.NoError(t, err)
		assert.Equal(t, &api.Import{Jobs: 1, Known: 2}, added)

		d, err := s.Job(ctx, again.Name)
		require.NoError(t, err)
		assert.Equal(t, api.Running, d.State, "it isn't ended by what it was once")
		require.Len(t, d.Attempts, 2, "what it did before is known")
		assert.Nil(t, d.Attempts[1].Completed, "its attempt of now stays")
		log, truncated, err := s.Log(ctx, api.LogKey{Framework: again.Name, Role: "worker"})
		require.NoError(t, err)
		assert.Equal(t, "said", string(log))
		assert.True(t, truncated)
		open, err := s.Unended(ctx)
		require.NoError(t, err)
		assert.Len(t, open, 2)
		require.NoError(t, s.SaveJob(ctx, end(again, 0, second+2000, false)))
		d, err = s.Job(ctx, again.Name)
		require.NoError(t, err)
		assert.Equal(t, api.Succeeded, d.State)
	})
}

func TestAnEndThatWasSeenTakesThePlaceOfOneThatWasGuessed(t *testing.T) {
	_, text := past(t)
	onBoth(t, func(t *testing.T, p place) {
		p.Scratch = t.TempDir()
		s, f := p.open(t), job("ann", "train", 8*24*3600, 2)
		require.NoError(t, s.SaveJob(t.Context(), f))
		require.NoError(t, s.EndRemoved(t.Context(), []string{string(f.UID)}))
		_, err := importInto(t, s, text)
		require.NoError(t, err)
		d, err := s.Job(t.Context(), f.Name)
		require.NoError(t, err)
		assert.Equal(t, api.Succeeded, d.State)
	})
}

func TestGPUTimeIsCountedOnceHoweverOftenItIsPutBack(t *testing.T) {
	_, text := past(t)
	onBoth(t, func(t *testing.T, p place) {
		p.Scratch = t.TempDir()
		l := newLab(t, p)
		l.now = 8*24*3600 + 400
		// The old job is still in the cluster, and the controller writes it to the archive again.
		require.NoError(t, l.SaveJob(t.Context(), end(holding(run(job("ann", "old", 0, 2), 0, 0), 4, 0), 0, 3600, false)))
		var before []string
		for round := range 3 {
			_, err := importInto(t, l.Store, text)
			require.NoError(t, err)
			used := l.used(t, api.ByUser)
			if round == 0 {
				before = used
				assert.True(t, strings.HasPrefix(used[0], fmt.Sprintf("ann %d+0 ", 2*4*3600+2*60)), "%v", used)
			}
			assert.Equal(t, before, used)
		}
		// A second import doesn't add GPU time that this archive has summed up after the first import.
		gone, err := l.Unended(t.Context())
		require.NoError(t, err)
		require.Len(t, gone, 1)
		require.NoError(t, l.EndRemoved(t.Context(), []string{gone[0].UID}))
		l.now += 9 * 24 * 3600
		ended := l.used(t, api.ByUser)
		_, err = l.Prune(t.Context(), epoch.AddDate(-1, 0, 0), nil)
		require.NoError(t, err)
		_, err = importInto(t, l.Store, text)
		require.NoError(t, err)
		assert.Equal(t, ended, l.used(t, api.ByUser))
	})
}

// The history is restored weeks after the cluster. By then, the cluster has summed up the jobs that were running when the backup was made.
func TestAHistoryThatComesLateHasAllItsGPUTime(t *testing.T) {
	const week = 7 * 24 * 3600
	was := newLab(t, sqlitePlace(t))
	folded := end(holding(run(job("ann", "folded", 0, 1), 0, 0), 1, 0), 0, 3600, false)
	both := end(holding(run(job("ann", "both", 0, 1), 0, 0), 1, 0), 0, 3600, false)
	require.NoError(t, was.SaveJob(t.Context(), folded))
	require.NoError(t, was.SaveJob(t.Context(), both))
	was.now = 3600
	long := holding(run(job("ann", "long", 0, 1), 0, 0), 1, 0)
	require.NoError(t, was.SaveHolds(t.Context(), long))
	was.now = week + 7200
	_, err := was.Prune(t.Context(), epoch.AddDate(-1, 0, 0), nil)
	require.NoError(t, err)
	require.NoError(t, was.SaveHolds(t.Context(), long))
	text := exportOf(t, was.Store)
	onBoth(t, func(t *testing.T, p place) {
		p.Scratch = t.TempDir()
		l := newLab(t, p)
		l.now = week + 9000
		require.NoError(t, l.SaveJob(t.Context(), both))
		require.NoError(t, l.SaveJob(t.Context(), end(holding(run(job("ann", "long", 0, 1), 0, 0), 1, 0), 0, week+8000, false)))
		require.NoError(t, l.SaveJob(t.Context(), end(holding(run(job("bob", "later", week+7200, 1), 0, week+7200), 1, week+7200), 0, week+7300, false)))
		l.now = 3 * week
		_, err := l.Prune(t.Context(), epoch.AddDate(-1, 0, 0), nil)
		require.NoError(t, err)
		for range 2 {
			_, err = importInto(t, l.Store, text)
			require.NoError(t, err)
			assert.Equal(t, []string{
				fmt.Sprintf("ann %d+0 preempted 0 failed 0", 3600+3600+week+8000),
				"bob 100+0 preempted 0 failed 0",
			}, l.used(t, api.ByUser))
		}
	})
}

func TestWhatIsNoHistoryIsRefusedAndChangesNothing(t *testing.T) {
	_, text := past(t)
	broken := bytes.Clone(text)
	for n := len(broken) / 3; n < len(broken)*2/3; n++ {
		broken[n] = byte(n*7 + 3)
	}
	onBoth(t, func(t *testing.T, p place) {
		p.Scratch = t.TempDir()
		s := p.open(t)
		for name, c := range map[string]struct {
			text []byte
			size int64
			says string
		}{
			"nothing":      {nil, 0, "isn't a history of jobs"},
			"another file": {bytes.Repeat([]byte("x"), 5000), 5000, "isn't a history of jobs"},
			"cut off":      {text[:len(text)/2], int64(len(text)), "bytes, but received"},
			"longer":       {append(bytes.Clone(text), 0), int64(len(text)), "bytes, but received"},
			"damaged":      {broken, int64(len(broken)), "check the archive"},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := s.Import(t.Context(), bytes.NewReader(c.text), c.size, false)
				require.ErrorIs(t, err, archive.ErrMismatch)
				require.ErrorContains(t, err, c.says)
				assert.Empty(t, p.content(t))
			})
		}
		select {
		case err := <-s.Failed():
			t.Fatal("the archive itself isn't damaged:", err)
		default:
		}
	})
}

// slowly is a reader that calls wait in the middle of the data.
type slowly struct {
	io.Reader
	wait func()
}

func (s slowly) Read(b []byte) (int, error) {
	s.wait()
	return s.Reader.Read(b)
}

func TestAnImportThatWasCutOffIsFinishedByTheNext(t *testing.T) {
	was, text := past(t)
	p := sqlitePlace(t)
	require.NoError(t, os.WriteFile(p.Path+".import", []byte("half of it"), 0o600)) // of a process that was killed
	s := p.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Import(ctx, slowly{bytes.NewReader(text), func() {
		cancel()
		_, err := importInto(t, s, text)
		require.ErrorIs(t, err, archive.ErrImporting)
	}}, int64(len(text)), false)
	require.Error(t, err)
	_, err = importInto(t, s, text)
	require.NoError(t, err)
	assert.Equal(t, same(was.content(t)), same(p.content(t)))
}
