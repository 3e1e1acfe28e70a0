package job

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestARetryOfAJobThatHasNotFinishedIsConfirmed(t *testing.T) {
	for state, asks := range map[job.Phase]bool{
		job.Running: true, job.Queued: true, job.Starting: true, job.Barrier: true, job.Stopping: true,
		job.Retry: false, job.Failed: false, job.Succeeded: false, job.Stopped: false,
	} {
		t.Run(string(state), func(t *testing.T) {
			io, _, _, _ := iostreams.Test()
			opts := &RetryOptions{Several: Several{Factory: &cmdutil.Factory{IO: io}}}
			j, times := &job.Job{User: "ann", Name: "train", Live: true, State: state}, 0
			mux := http.NewServeMux()
			mux.HandleFunc("POST /api/v3/jobs/ann/train/retry", func(w http.ResponseWriter, _ *http.Request) {
				times++
				send(w, v3.Changed{Before: state})
			})
			c := serve(t, mux)
			err := opts.retry(t.Context(), c, j, nil)
			if asks {
				require.ErrorContains(t, err, "the retry of ann/train must be confirmed")
				assert.Zero(t, times)
				opts.Yes = true
				err = opts.retry(t.Context(), c, j, nil)
			}
			require.NoError(t, err)
			assert.Equal(t, 1, times)
		})
	}
}

func TestScalePrintsTheWarningsOfASubmission(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v3/jobs/ann/train/scale", func(w http.ResponseWriter, _ *http.Request) {
		send(w, v3.Scaled{Before: 2, Findings: strictyaml.Findings{{File: "job.yaml", Line: 4, Rule: "job/share", Severity: strictyaml.Warning, Message: "a task takes 5 GPUs", Remedy: "write cpu 8 or less"}}})
	})
	io, _, _, stderr := iostreams.Test()
	opts := &ScaleOptions{Factory: &cmdutil.Factory{IO: io}, Tasks: 3}
	require.NoError(t, opts.scale(t.Context(), serve(t, mux), &job.Job{User: "ann", Name: "train"}))
	assert.Equal(t, "warning: a task takes 5 GPUs\n  -> write cpu 8 or less\nann/train is scaled from 2 tasks to 3\n", stderr.String())
}
