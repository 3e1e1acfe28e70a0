package job

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// queuedJob is a job that waits for GPUs for ten seconds, then runs and succeeds.
type queuedJob struct{ Jobs }

func (queuedJob) Get(_ context.Context, j *job.Job) (*job.Job, error) { return j, nil }

func (queuedJob) Why(context.Context, *job.Job) (*job.Why, error) {
	return &job.Why{State: "queued (1st)", Sentence: "Virtual cluster vision has 0 of 8 GPUs free."}, nil
}

func (queuedJob) Follow(_ context.Context, _ *job.Job, seen func(*job.Detail) bool, _ func(error)) error {
	for i := range 7 {
		d := &job.Detail{Row: job.Row{Job: api.Job{State: "queued"}, Position: 1}}
		switch i {
		case 5:
			d.State = "running"
		case 6:
			d.State = "succeeded"
		}
		if !seen(d) {
			return nil
		}
		time.Sleep(2 * time.Second)
	}
	return nil
}

func TestLogsOfAJobThatWaitsSayWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		io, _, out, errs := iostreams.Test()
		sayWhy(t.Context(), io, queuedJob{}, &job.Job{User: "ann", Name: "train", Live: true, State: job.Queued})
		assert.Equal(t, "--- queued (1st): Virtual cluster vision has 0 of 8 GPUs free. ---\n", errs.String(), "once")
		assert.Empty(t, out.String())
	})
}
