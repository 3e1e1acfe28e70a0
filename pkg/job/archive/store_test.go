package archive

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T) *database {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "archive.db")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // it may be closed already
	return s.(*database)
}

func TestAWriteThatFailsTakesNoOtherWithIt(t *testing.T) {
	d := open(t)
	s := d.writer.(*serial)
	good := func(n int) statement {
		return statement{"INSERT INTO events VALUES (?, 'f', 1, '', '', '', '', 1, '')", []any{fmt.Sprint("event", n)}}
	}
	bad := statement{"INSERT INTO events VALUES (NULL, NULL, NULL, '', '', '', '', 1, '')", nil}
	var requests []request
	for n := range 10 {
		r := request{[]statement{good(n)}, make(chan error, 1)}
		if n%3 == 0 {
			r.statements = append(r.statements, bad)
		}
		requests = append(requests, r)
	}
	// All requests are committed together, as if they had been waiting.
	s.commit(requests)
	for n, r := range requests {
		assert.Equal(t, n%3 == 0, <-r.answer != nil)
	}
	saved, err := d.column(t.Context(), "SELECT uid FROM events ORDER BY uid")
	require.NoError(t, err)
	assert.Equal(t, []string{"event1", "event2", "event4", "event5", "event7", "event8"}, saved)
}

func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	d := open(t)
	require.NoError(t, d.Close())
	err := d.write(t.Context(), statement{"DELETE FROM jobs", nil})
	require.ErrorIs(t, err, errClosed)
}

func TestAWriterThatGivesUpIsNotWaitedFor(t *testing.T) {
	d := open(t)
	s := d.writer.(*serial)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, s.write(ctx, nil))
	require.NoError(t, d.write(t.Context(), statement{"DELETE FROM jobs", nil}), "others go on")
}

func TestParametersArePostgresWhereTheDatabaseIs(t *testing.T) {
	assert.Equal(t, "a = ? AND b = ?", (&database{}).rebind("a = ? AND b = ?"))
	assert.Equal(t, "a = $1 AND b = $2", (&database{dollars: true}).rebind("a = ? AND b = ?"))
}

func TestRowsAreSplitWhereOneStatementCannotHoldThem(t *testing.T) {
	u := &upsert{"t", []string{"a", "b"}, "DO NOTHING"}
	var rows [][]any
	for i := range 9001 {
		rows = append(rows, []any{i, i})
	}
	statements := u.rows(rows)
	require.Len(t, statements, 3)
	total := 0
	for _, s := range statements {
		assert.LessOrEqual(t, len(s.args), parameters)
		assert.Equal(t, len(s.args), strings.Count(s.query, "?"))
		total += len(s.args)
	}
	assert.Equal(t, 2*9001, total)
	assert.Empty(t, u.rows(nil))
}

func TestAnErrorOfTheDiskIsEverybodys(t *testing.T) {
	d := open(t)
	s := d.writer.(*serial)
	require.NoError(t, s.db.Close()) // as bad as a disk that is gone
	err := s.write(t.Context(), []statement{{"DELETE FROM jobs", nil}})
	require.Error(t, err)
	assert.NotErrorIs(t, err, ErrNotFound)
}
