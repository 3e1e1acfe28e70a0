package job

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// retried counts the retries of one job.
type retried struct {
	Jobs
	times int
}

func (r *retried) Retry(_ context.Context, j *job.Job) (job.Phase, error) {
	r.times++
	return j.State, nil
}

func TestARetryOfAJobThatHasNotFinishedIsConfirmed(t *testing.T) {
	for state, asks := range map[job.Phase]bool{
		job.Running: true, job.Queued: true, job.Starting: true, job.Barrier: true, job.Stopping: true,
		job.Retry: false, job.Failed: false, job.Succeeded: false, job.Stopped: false,
	} {
		t.Run(string(state), func(t *testing.T) {
			io, _, _, _ := iostreams.Test()
			opts := &RetryOptions{Several: Several{Factory: &cmdutil.Factory{IO: io}}}
			c, j := &retried{}, &job.Job{User: "ann", Name: "train", Live: true, State: state}
			err := opts.retry(t.Context(), c, j, nil)
			if asks {
				require.ErrorContains(t, err, "the retry of ann/train must be confirmed")
				assert.Zero(t, c.times)
				opts.Yes = true
				err = opts.retry(t.Context(), c, j, nil)
			}
			require.NoError(t, err)
			assert.Equal(t, 1, c.times)
		})
	}
}
