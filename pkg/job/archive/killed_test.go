package archive_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
)

// killedEnv is an environment variable. If it is set, this test program writes to the archive in that folder until it is killed.
const killedEnv = "PAI_TEST_ARCHIVE_KILLED"

const killedTasks = 50

// writeUntilKilled saves jobs until the program is killed, and prints each job after saving it.
func writeUntilKilled(dir string) {
	ctx := context.Background()
	s, err := archive.Open(ctx, archive.Options{Path: filepath.Join(dir, "archive.db")})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	go func() {
		for n := 0; ; n++ {
			code := fmt.Sprint(os.Getpid(), n) + strings.Repeat(" ", 2<<20)                 // three chunks
			_ = s.PutCode(ctx, "ann", sum(code), int64(len(code)), strings.NewReader(code)) // interrupted: it was never reported as stored
		}
	}()
	for round := 0; ; round++ {
		f := job(fmt.Sprint("user", os.Getpid()), fmt.Sprint("job", round), round, killedTasks)
		if err := s.SaveJob(ctx, end(run(f, 0, round), 0, round, false)); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(f.Name)
	}
}

func TestNothingIsHalfAfterAKill(t *testing.T) {
	p := sqlitePlace(t)
	var saved []string
	for round := range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), killedEnv+"="+filepath.Dir(p.Path))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 10 + round*7 {
			require.True(t, lines.Scan(), "the writer ended by itself")
			require.NotContains(t, lines.Text(), "error")
			saved = append(saved, lines.Text())
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() { // what it said before it fell
			saved = append(saved, lines.Text())
		}
		_ = cmd.Wait() // killed

		s := p.open(t)
		for _, name := range saved {
			d, err := s.Job(t.Context(), name)
			require.NoError(t, err, "it was said to be saved")
			require.Len(t, d.Attempts, 1)
			require.Len(t, d.Attempts[0].Tasks, killedTasks)
		}
		jobs, err := walk(t.Context(), s, api.JobQuery{Limit: 1000}, func() {})
		require.NoError(t, err)
		for _, j := range jobs {
			d, err := s.Job(t.Context(), j.UID)
			require.NoError(t, err)
			require.NotEmpty(t, d.Config)
			require.Len(t, d.Attempts[0].Tasks, killedTasks, "half a job")
		}
		p.checkCode(t, s)
		require.NoError(t, s.Close())
	}
}

// checkCode reads all code that is complete according to the archive.
func (p place) checkCode(t *testing.T, s archive.Store) {
	t.Helper()
	db, err := sql.Open(p.driver, p.dsn)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT sha256 FROM code WHERE complete")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		got, _ := readCode(t, s, name)
		assert.Equal(t, name, sum(got))
	}
	require.NoError(t, rows.Err())
}
