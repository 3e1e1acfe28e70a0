package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func listed(t *testing.T, text string) (quarantine, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "quarantine.txt")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return readQuarantine(file)
}

func TestAQuarantinedTestDoesNotGate(t *testing.T) {
	q, err := listed(t, "# a comment\n\npkg/ssh TestB 2026-11-28 a port is taken\n")
	require.NoError(t, err)
	o := newOutcome()
	o.failed[module+"/pkg/ssh"] = []string{"TestA", "TestB"}
	o.failed[module+"/pkg/peer"] = []string{"TestB"}
	assert.Equal(t, map[string][]string{module + "/pkg/ssh": {"TestA"}, module + "/pkg/peer": {"TestB"}}, o.gating(q))
}

func TestAQuarantineEndsAfterAWeekAndHoldsFive(t *testing.T) {
	line := "p TestA 2026-11-20 unknown\n"
	q, err := listed(t, line)
	require.NoError(t, err)
	require.NoError(t, q.check(time.Date(2026, 11, 27, 23, 0, 0, 0, time.UTC)))
	require.ErrorContains(t, q.check(time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)), "TestA of p has been there for 8 days")
	require.ErrorContains(t, q.check(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)), "is in the future")
	q, err = listed(t, line+line+line+line+line+line)
	require.NoError(t, err)
	require.ErrorContains(t, q.check(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)), "has 6 tests, 5 are allowed")
}

func TestALineWithoutACauseOrADateIsRefusedWithItsPlace(t *testing.T) {
	_, err := listed(t, "\np TestA 2026-11-20\n")
	require.ErrorContains(t, err, "quarantine.txt:2: write \"PACKAGE TEST")
	_, err = listed(t, "p TestA 20.11.2026 unknown\n")
	require.ErrorContains(t, err, "quarantine.txt:1: the date must be YYYY-MM-DD")
	q, err := readQuarantine(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	assert.Empty(t, q)
}

func TestAQuarantinedTestExists(t *testing.T) {
	q, err := listed(t, "hack/tier TestAQuarantinedTestExists 2026-11-28 none\nhack/tier TestAQuarantined 2026-11-28 its name has changed\n")
	require.NoError(t, err)
	require.EqualError(t, q.lost("../.."), "test/quarantine.txt: hack/tier has no test TestAQuarantined: delete the line")
}
