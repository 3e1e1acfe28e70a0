package job

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// over are jobs that have ended, by name.
type over struct {
	Jobs
	states map[string]job.Phase
}

func (e over) Resolve(_ context.Context, user, name string) (*job.Job, error) {
	return &job.Job{User: user, Name: name, State: e.states[name]}, nil
}

func (e over) Follow(_ context.Context, j *job.Job, seen func(*job.Detail) bool, _ func(error)) error {
	seen(&job.Detail{Row: job.Row{Job: api.Job{User: j.User, Name: j.Name, State: string(j.State)}}})
	return nil
}

func TestSubmitWithWaitSaysHowEachJobEnded(t *testing.T) {
	streams, _, _, told := iostreams.Test()
	f := cmdutil.New("v0.0.0-test")
	f.IO = streams
	opts := &SubmitOptions{Factory: f, Wait: true}
	c := over{states: map[string]job.Phase{"lr-1": job.Succeeded, "lr-2": job.Failed}}
	err := opts.follow(t.Context(), c, "ann", []submission{{job: &protocol.Job{Name: "lr-1"}}, {job: &protocol.Job{Name: "lr-2"}}})
	coded, ok := errors.AsType[*cmdutil.CodeError](err)
	require.True(t, ok, err)
	assert.Equal(t, 1, coded.Code)
	assert.Contains(t, told.String(), "ann/lr-1  succeeded")
	assert.Contains(t, told.String(), "ann/lr-2  failed")
}
