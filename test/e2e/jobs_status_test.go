package e2e

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/status"
)

// areSeenAtALook runs a job with GPUs, and checks that all parts of "paictl status" show the job.
func (j *jobs) areSeenAtALook(t *testing.T) {
	j.forget(t, "gpu")
	j.submit(t, example(t, "gpu"))
	j.is(t, "gpu", "running")
	t.Run("the model", func(t *testing.T) { j.isInTheModel(t, "gpu") })
	t.Run("the view", func(t *testing.T) { j.isOnTheScreen(t, "gpu") })
	ok(t, j.job("stop", "gpu")...)
	j.ended(t, "gpu", "stopped", "")
}

// isInTheModel reads the JSON output, which contains machines, GPUs and their owners, virtual clusters, services and jobs.
func (j *jobs) isInTheModel(t *testing.T, name string) {
	r := run(t, j.args("status", "-o", "json")...)
	require.Contains(t, []int{0, 3}, r.code, "%s", r.stderr)
	var model status.Cluster
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &model))
	owned, gpus := 0, 0
	for i := range model.Machines {
		m := &model.Machines[i]
		assert.Equal(t, "Ready", m.State, m.Name)
		for k := range m.GPUs {
			gpus++
			if o := m.GPUs[k].Owner; o != nil && o.Job == "ann/"+name {
				owned++
				assert.Equal(t, "default", o.VirtualCluster)
				assert.True(t, m.GPUs[k].Simulated)
			}
		}
	}
	assert.Equal(t, 32, gpus)
	assert.Equal(t, 8, owned, "the job's GPUs say whose they are")
	assert.Equal(t, gpus, model.Counts.GPUs)
	for _, s := range model.Sources {
		if s.Name == status.SourceAPI || s.Name == status.SourceJobs || s.Name == status.SourceScheduler || s.Name == status.SourceServices {
			assert.Equal(t, status.StateCurrent, s.State, "%s: %s", s.Name, s.Message)
		}
	}
	require.Len(t, model.VirtualClusters, 1)
	assert.Equal(t, 8, model.VirtualClusters[0].Used)
	ready := map[string]string{}
	for _, s := range model.Services {
		ready[s.Name] = s.State
	}
	assert.Equal(t, "ready", ready["scheduler"])
	assert.Equal(t, "ready", ready["job-controller"])
	require.NotEmpty(t, model.Jobs)
	assert.Equal(t, "ann/"+name, model.Jobs[0].Title())
	assert.Equal(t, "running", model.Jobs[0].State)
}

// isOnTheScreen opens "paictl status" on a terminal, visits its screens with the keyboard, and ends it with a signal.
func (j *jobs) isOnTheScreen(t *testing.T, name string) {
	cmd := exec.CommandContext(t.Context(), paictl, j.args("status")...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	require.NoError(t, err)
	defer tty.Close()
	var mu sync.Mutex
	var seen strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 1<<16)
		for {
			n, err := tty.Read(buffer)
			mu.Lock()
			seen.Write(buffer[:n])
			mu.Unlock()
			if err != nil {
				return // reading from a closed terminal returns an error
			}
		}
	}()
	text := func() string {
		mu.Lock()
		defer mu.Unlock()
		return ansi.Strip(seen.String())
	}
	// The terminal receives only the changes of the screen, so the test searches for words instead of lines.
	shows := func(key string, words ...string) {
		t.Helper()
		before := len(text())
		_, err := io.WriteString(tty, key)
		require.NoError(t, err)
		for _, word := range words {
			eventually(t, time.Minute, "the view shows "+word, func() bool { return strings.Contains(text()[before:], word) })
		}
	}
	shows("", "Overview", "32 GPUs")
	shows("6", "ann/"+name)
	shows("l", "my GPUs: ")
	shows("\x1b", "jobs")
	shows("3", "GPUs by")
	shows("q", "")

	_ = cmd.Wait()
	<-ended
	assert.Contains(t, seen.String(), "\x1b[?1049l", "the screen of before is given back")
	assert.NotContains(t, text(), "panic")
}
