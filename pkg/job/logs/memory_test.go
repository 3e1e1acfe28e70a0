package logs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
)

func TestLogsThatAreTooLargeToBePutInOrderAreAnError(t *testing.T) {
	f, c := newFake(t, map[string]int32{"worker": 2})
	long := at(1, strings.Repeat("x", 1000))
	f.pod("worker", 0, 0, "ended", strings.Repeat(long, 10))
	f.pod("worker", 1, 0, "ended", strings.Repeat(long, 10))
	try := func(m *Memory, change func(*Options)) (string, error) {
		o, r := options(all)
		o.Memory = m
		change(&o)
		err := write(t.Context(), c, resolve(t, c), o)
		assert.Zero(t, m.reserved, "what was held is given back")
		return r.String(), err
	}
	out, err := try(&Memory{Each: 16 << 10, All: 1 << 20}, func(*Options) {})
	require.ErrorContains(t, err, "the logs are larger than 16 KiB together")
	assert.Contains(t, hint.Of(err), "--tail")
	assert.Empty(t, out)
	_, err = try(&Memory{Each: 1 << 20, All: 16 << 10}, func(*Options) {})
	require.ErrorContains(t, err, "too many large logs are read at this moment")
	out, err = try(&Memory{Each: 32 << 10, All: 1 << 20}, func(*Options) {})
	require.NoError(t, err)
	assert.Equal(t, 20, strings.Count(out, "\n"))

	// The lines of a single log are passed on immediately, unless only the last matching lines are requested.
	one := func(o *Options) { o.Selection = Selection{Role: "worker", Task: 1, Attempt: All} }
	_, err = try(&Memory{Each: 2 << 10, All: 1 << 20}, one)
	require.NoError(t, err)
	search := func(tail int64) func(*Options) {
		return func(o *Options) { one(o); o.Match, o.Tail = regexp.MustCompile("x"), tail }
	}
	_, err = try(&Memory{Each: 4 << 10, All: 1 << 20}, search(1000))
	require.ErrorIs(t, err, errMemory)
	_, err = try(&Memory{Each: 4 << 10, All: 1 << 20}, search(2))
	require.NoError(t, err)

	f.change(func() {
		f.pods, f.framework = nil, nil
		f.archive["worker/0/0/0"] = strings.Repeat(long, 10)
		f.history = &api.JobDetail{Job: api.Job{UID: "f", User: "ann", Name: "train"}, Attempts: []api.Attempt{{Tasks: []api.TaskAttempt{{Role: "worker", RoleObject: "worker", HasLog: true}}}}}
	})
	_, err = try(&Memory{Each: 4 << 10, All: 1 << 20}, func(o *Options) { o.Tail = 1000 })
	require.ErrorIs(t, err, errMemory)
}
