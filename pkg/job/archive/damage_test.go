package archive_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// damage overwrites the end of an archive, as a bad disk might. It doesn't write random bytes, because a test with random bytes would sometimes
// damage nothing.
func damage(t *testing.T, path string, from int64) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	junk := make([]byte, info.Size()-from)
	for i := range junk {
		junk[i] = byte(i*7 + 3)
	}
	_, err = f.WriteAt(junk, from)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// filled returns a closed archive with a number of jobs.
func filled(t *testing.T, jobs int) archive.Options {
	t.Helper()
	o := archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")}
	s, err := archive.Open(t.Context(), o)
	require.NoError(t, err)
	for i := range jobs {
		f := job("alice", "job"+string(rune('a'+i)), i, 3)
		require.NoError(t, s.SaveJob(t.Context(), end(run(f, 0, i), 0, i, false)))
	}
	require.NoError(t, s.Close())
	return o
}

// reopen opens an archive. It also returns the Replaced that Open reported, or nil.
func reopen(t *testing.T, o archive.Options) (archive.Store, *archive.Replaced) {
	t.Helper()
	var replaced *archive.Replaced
	o.Replaced = func(r *archive.Replaced) { replaced = r }
	s, err := archive.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, replaced
}

func count(t *testing.T, s archive.Store) int {
	t.Helper()
	page, err := s.Jobs(t.Context(), api.JobQuery{Limit: 100})
	require.NoError(t, err)
	return len(page.Items)
}

func TestADamagedArchiveIsPutAsideAndAnotherBegins(t *testing.T) {
	for name, from := range map[string]int64{"all of it": 0, "all but its header": 100} {
		t.Run(name, func(t *testing.T) {
			o := filled(t, 3)
			damage(t, o.Path, from)
			s, replaced := reopen(t, o)
			require.NotNil(t, replaced)
			assert.Zero(t, count(t, s))
			assert.Contains(t, replaced.String(), "A new, empty archive was started")
			assert.Equal(t, []string{replaced.Aside}, o.Broken())
			require.NoError(t, s.Close())

			s, replaced = reopen(t, o)
			require.NotNil(t, replaced, "it is reported until what is missing is there again")
			require.NoError(t, replaced.Done())
			require.NoError(t, s.Close())
			_, replaced = reopen(t, o)
			assert.Nil(t, replaced)
		})
	}
}

func TestTheCopyTakesThePlaceOfADamagedArchive(t *testing.T) {
	o := filled(t, 3)
	s, _ := reopen(t, o)
	assert.Zero(t, s.Copied())
	require.NoError(t, s.Copy(t.Context()))
	assert.WithinDuration(t, time.Now(), s.Copied(), time.Hour)
	later := job("alice", "later", 9, 1)
	require.NoError(t, s.SaveJob(t.Context(), end(run(later, 0, 9), 0, 9, false)))
	require.NoError(t, s.Close())
	damage(t, o.Path, 100)
	s, replaced := reopen(t, o)
	require.NotNil(t, replaced)
	assert.Equal(t, 3, count(t, s), "what was saved after the copy is missing")
	assert.Contains(t, replaced.String(), "replaced by the copy of 2")
	info, err := os.Stat(o.Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestDamageThatIsMetLaterEndsTheProgramAndIsRepairedAtItsStart(t *testing.T) {
	o := filled(t, 40)
	raw, _ := reopen(t, o)
	s := archive.Observe(raw, prometheus.NewRegistry())
	require.NoError(t, s.Copy(t.Context()))
	require.NoError(t, raw.Close())
	// The schema can be read, but some rows of the tables can't.
	info, err := os.Stat(o.Path)
	require.NoError(t, err)
	damage(t, o.Path, info.Size()/10*9)
	raw, replaced := reopen(t, o)
	require.Nil(t, replaced, "nothing of that is seen at the start")
	s = archive.Observe(raw, prometheus.NewRegistry())
	assert.Error(t, s.Copy(t.Context()), "a damaged archive doesn't replace its copy")
	select {
	case err := <-s.Failed():
		assert.ErrorContains(t, err, "is damaged")
	default:
		t.Fatal("the damage is not told")
	}
	require.NoError(t, raw.Close())
	again, replaced := reopen(t, o)
	require.NotNil(t, replaced)
	assert.Equal(t, 40, count(t, again))
}

func TestAMarkWithoutDamageIsRemoved(t *testing.T) {
	o := filled(t, 2)
	require.NoError(t, os.WriteFile(o.Path+".damaged", nil, 0o600))
	s, replaced := reopen(t, o)
	assert.Nil(t, replaced)
	assert.Equal(t, 2, count(t, s))
	assert.NoFileExists(t, o.Path+".damaged")
}

func TestADiskThatDamagesAllIsNotFilledUp(t *testing.T) {
	o := filled(t, 1)
	now := time.Unix(1_800_000_000, 0)
	o.Now = func() time.Time { return now }
	for range 6 {
		damage(t, o.Path, 0)
		now = now.Add(time.Minute)
		s, replaced := reopen(t, o)
		require.NotNil(t, replaced)
		require.NoError(t, s.Close())
	}
	assert.Len(t, o.Broken(), 3)
}

func TestOtherErrorsPutNothingAside(t *testing.T) {
	o := filled(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := archive.Open(ctx, o)
	require.Error(t, err)
	assert.Empty(t, o.Broken())
	s, replaced := reopen(t, o)
	assert.Nil(t, replaced)
	assert.Equal(t, 1, count(t, s))
}
