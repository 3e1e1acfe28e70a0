package logs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
)

// of returns a selection of one attempt of one task.
func of(attempt, taskAttempt int32) Selection {
	return Selection{Role: "worker", Task: 0, Attempt: attempt, TaskAttempt: &taskAttempt}
}

func TestOneAttemptOfATaskIsRead(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.pod("worker", 0, 1, "ended", at(1, "second of the job"))
	o, r := options(of(1, 0))
	require.NoError(t, write(t.Context(), c, resolve(t, c), o), "the history isn't asked for what a pod has: here it doesn't answer")
	assert.Equal(t, "second of the job\n", r.String())

	f.archive["worker/0/0/0"], f.archive["worker/0/0/1"] = "first of the task\n", "second of the task\n"
	f.history = &api.JobDetail{Job: api.Job{UID: "f"}, Attempts: []api.Attempt{{ID: 0, Tasks: []api.TaskAttempt{
		{Role: "worker", RoleObject: "worker", HasLog: true}, {Role: "worker", RoleObject: "worker", ID: 1, HasLog: true}}}}}
	for id, want := range []string{"first of the task\n", "second of the task\n"} {
		o, r = options(of(0, int32(id)))
		require.NoError(t, write(t.Context(), c, resolve(t, c), o))
		assert.Equal(t, want, r.String())
	}
	o, _ = options(of(1, 7))
	require.Error(t, write(t.Context(), c, resolve(t, c), o), "another attempt isn't shown in its place")
}

func TestStreamsAreApartWhereAnAgentKeepsThem(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	uid := f.pod("worker", 0, 0, "ended", at(1, "both"))
	assert.False(t, Apart(t.Context(), c, "n1", string(uid)))
	o, _ := options(of(0, 0))
	o.Stream = "stderr"
	require.ErrorContains(t, write(t.Context(), c, resolve(t, c), o), "separate stdout from stderr", "what has both isn't shown as one")
	f.keep(uid, at(1, "a line"), at(2, "one to stderr"), at(3, "another line"))
	assert.True(t, Apart(t.Context(), c, "n1", string(uid)))
	assert.False(t, Apart(t.Context(), c, "", string(uid)))
	for stream, want := range map[string]string{"stderr": "one to stderr\n", "stdout": "a line\nanother line\n", "": "a line\none to stderr\nanother line\n"} {
		o, r := options(of(0, 0))
		o.Stream = stream
		require.NoError(t, write(t.Context(), c, resolve(t, c), o))
		assert.Equal(t, want, r.String(), stream)
	}
}

func TestFollowingOneAttemptEndsWithItsProgram(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 1})
	f.pod("worker", 0, 0, "running", at(1, "a"))
	j := resolve(t, c)
	o, r := options(of(0, 0))
	o.Follow = true
	done := make(chan error, 1)
	go func() { done <- write(t.Context(), c, j, o) }()
	require.Eventually(t, func() bool { return r.String() != "" }, time.Minute, 5*time.Millisecond)
	f.pod("worker", 0, 0, "ended", at(2, "b"))
	select {
	case err := <-done:
		require.NoError(t, err, "the job goes on")
	case <-time.After(time.Minute):
		t.Fatal("it doesn't end")
	}
	assert.Contains(t, r.String(), "a\n")
	assert.Contains(t, r.String(), "b\n")
}
