package archive_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/test/tier"
)

// The program is killed (or the disk is full) after the damaged archive was renamed and before the copy is
// in its place. The next start must continue from there: the copy is whole.
func TestAKillBetweenTheRenameAndTheCopyLosesTheCopy(t *testing.T) {
	o := filled(t, 3)
	s, _ := reopen(t, o)
	require.NoError(t, s.Copy(t.Context()))
	copied := s.Copied()
	require.NoError(t, s.Close())
	// The state that putAside has left by then.
	aside := o.Path + ".broken-20260101T000000.000Z"
	text, err := json.Marshal(map[string]any{"aside": aside, "copied": copied, "cause": "malformed"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(o.Path+".replaced", text, 0o600))
	require.NoError(t, os.Rename(o.Path, aside))

	s, replaced := reopen(t, o)
	require.NotNil(t, replaced)
	t.Logf("told: %s", replaced)
	assert.Equal(t, 3, count(t, s), "the copy is there, and whole")
	// A day later the empty archive takes the place of the only good copy.
	require.NoError(t, s.Copy(t.Context()))
	require.NoError(t, s.Close())
	require.NoError(t, os.Rename(o.Path+".copy", o.Path))
	s, _ = reopen(t, o)
	assert.Equal(t, 3, count(t, s), "the copy still has the jobs")
}

// A disk that is full when the copy is put in place: the same, by way of putAside's own error. A folder in
// the place of the copy makes restore fail as ENOSPC does.
func TestAFailedRestoreGoesOnEmpty(t *testing.T) {
	o := filled(t, 3)
	s, _ := reopen(t, o)
	require.NoError(t, s.Copy(t.Context()))
	require.NoError(t, s.Close())
	damage(t, o.Path, 0)
	require.NoError(t, os.Rename(o.Path+".copy", o.Path+".kept"))
	require.NoError(t, os.Mkdir(o.Path+".copy", 0o700))
	_, err := archive.Open(t.Context(), o)
	require.Error(t, err, "once")
	require.NoError(t, os.Remove(o.Path+".copy"))
	require.NoError(t, os.Rename(o.Path+".kept", o.Path+".copy"))
	s, replaced := reopen(t, o) // there is room again
	t.Logf("told: %v", replaced)
	assert.Equal(t, 3, count(t, s))
}

// The copy is on the same bad disk.
func TestADamagedCopyEndsEveryStart(t *testing.T) {
	tier.More(t, "it waits for processes")
	o := filled(t, 3)
	s, _ := reopen(t, o)
	require.NoError(t, s.Copy(t.Context()))
	require.NoError(t, s.Close())
	damage(t, o.Path, 0)
	damage(t, o.Path+".copy", 0)
	var err error
	for i := range 5 {
		if s, err = archive.Open(t.Context(), o); err == nil {
			require.NoError(t, s.Close())
			return
		}
		t.Logf("start %d: %v", i, err)
		time.Sleep(2 * time.Millisecond) // the next archive that is put aside gets another name
	}
	assert.NoError(t, err, "the controller never starts again")
}

// The same if the copy opens, but has damage further in: a read finds it, the program ends, and the same copy replaces the archive again.
func TestACopyWithDamageFurtherInIsUsedForEver(t *testing.T) {
	o := filled(t, 40)
	s, _ := reopen(t, o)
	require.NoError(t, s.Copy(t.Context()))
	require.NoError(t, s.Close())
	for _, path := range []string{o.Path, o.Path + ".copy"} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		damage(t, path, info.Size()/10*9)
	}
	for range 6 {
		raw, err := archive.Open(t.Context(), o)
		if err != nil {
			t.Logf("open: %v", err)
			continue
		}
		s := archive.Observe(raw, prometheus.NewRegistry())
		err = s.Copy(t.Context())
		select {
		case failed := <-s.Failed():
			t.Logf("ends: %v", failed)
		default:
			t.Logf("fine: %v", err)
			require.NoError(t, raw.Close())
			return
		}
		require.NoError(t, raw.Close())
	}
	t.Error("six starts, and each ended by damage")
}

// An index misses a row, as after a lost write: quick_check says ok, and each removal of the row fails with an error of damage.
func TestAnIndexThatLacksARowEndsEveryRun(t *testing.T) {
	o := filled(t, 3)
	db, err := sql.Open("sqlite", o.Path)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	rows, err := db.Query("SELECT name, tbl_name, COALESCE(sql,'') FROM sqlite_master WHERE type='index'")
	require.NoError(t, err)
	for rows.Next() {
		var a, b, c string
		require.NoError(t, rows.Scan(&a, &b, &c))
		t.Log(a, b, c)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	exec := func(q string) { _, err := db.Exec(q); require.NoError(t, err, q) }
	// A partial view of the index hides it from one UPDATE.
	exec("PRAGMA writable_schema=ON")
	exec("CREATE TABLE hidden AS SELECT * FROM sqlite_master WHERE type='index' AND tbl_name='jobs' AND sql IS NOT NULL")
	exec("DELETE FROM sqlite_master WHERE type='index' AND tbl_name='jobs' AND sql IS NOT NULL")
	require.NoError(t, db.Close())
	db, err = sql.Open("sqlite", o.Path)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	exec("UPDATE jobs SET completed = completed + 1, submitted = submitted + 1, name = name || 'x', state = 'x'")
	exec("PRAGMA writable_schema=ON")
	exec("INSERT INTO sqlite_master SELECT * FROM hidden")
	exec("DROP TABLE hidden")
	require.NoError(t, db.Close())
	for i := range 4 {
		raw, replaced := reopen(t, o)
		s := archive.Observe(raw, prometheus.NewRegistry())
		n, err := s.Prune(t.Context(), time.Now().Add(1000*time.Hour), nil)
		t.Logf("run %d: replaced %v, pruned %d: %v", i, replaced, n, err)
		select {
		case failed := <-s.Failed():
			t.Logf("ends: %v", failed)
		default:
			require.NoError(t, raw.Close())
			return
		}
		require.NoError(t, raw.Close())
	}
	t.Error("four runs, and each ended by damage that no check finds")
}
