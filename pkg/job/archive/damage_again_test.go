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

// The program is killed, or the disk is full, after the damaged archive was renamed and before the copy is in its place. The next start must
// continue from there, because the copy is undamaged.
func TestAKillBetweenTheRenameAndTheCopyKeepsTheCopy(t *testing.T) {
	o := filled(t, 3)
	s, _ := reopen(t, o)
	require.NoError(t, s.Copy(t.Context()))
	copied := s.Copied()
	require.NoError(t, s.Close())
	// putAside has written this state by then.
	aside := o.Path + ".broken-20260101T000000.000Z"
	text, err := json.Marshal(map[string]any{"aside": aside, "copied": copied, "cause": "malformed"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(o.Path+".replaced", text, 0o600))
	require.NoError(t, os.Rename(o.Path, aside))

	s, replaced := reopen(t, o)
	require.NotNil(t, replaced)
	t.Logf("told: %s", replaced)
	assert.Equal(t, 3, count(t, s), "the copy is there, and whole")
	// A day later, the next copy must not replace the good copy with an empty archive.
	require.NoError(t, s.Copy(t.Context()))
	require.NoError(t, s.Close())
	require.NoError(t, os.Rename(o.Path+".copy", o.Path))
	s, _ = reopen(t, o)
	assert.Equal(t, 3, count(t, s), "the copy still has the jobs")
}

// The disk is full when the copy is put in place, so that putAside itself returns an error. A folder with the name of the copy makes restore
// fail, as a full disk does.
func TestAFailedRestoreIsRepeated(t *testing.T) {
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

// The copy is damaged, too, because it is on the same disk.
func TestADamagedCopyDoesNotPreventAStart(t *testing.T) {
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

// The copy is damaged, too, but it can be opened because the damage is near its end. Without a full check, a read would find the damage, the
// program would exit, and the same copy would replace the archive again.
func TestADamagedCopyThatOpensIsNotUsed(t *testing.T) {
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

// An entry is missing from an index, as after a lost write. quick_check doesn't find this damage, but each removal of the row fails with an error
// that means damage.
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
	// Without the index in the schema, one UPDATE doesn't change the index.
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
