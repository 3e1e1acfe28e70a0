package job

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestLogsOfAJobThatWaitsSayWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		io, _, out, errs := iostreams.Test()
		mux := http.NewServeMux()
		mux.HandleFunc("GET /api/v3/jobs/ann/train/brief", func(w http.ResponseWriter, _ *http.Request) { send(w, job.Job{User: "ann", Name: "train"}) })
		mux.HandleFunc("GET /api/v3/jobs/ann/train/why", func(w http.ResponseWriter, _ *http.Request) {
			send(w, job.Why{State: "queued (1st)", Sentence: "Virtual cluster vision has 0 of 8 GPUs free."})
		})
		mux.HandleFunc("GET /api/v3/jobs/ann/train/follow", func(w http.ResponseWriter, _ *http.Request) {
			for _, state := range []job.Phase{job.Queued, job.Queued, job.Queued, job.Queued, job.Queued, job.Running, job.Succeeded} {
				frame := stateOf("train", state)
				frame.Detail.Position = 1
				time.Sleep(2 * time.Second)
				send(w, frame)
			}
		})
		sayWhy(t.Context(), io, serve(t, mux), &job.Job{User: "ann", Name: "train", Live: true, State: job.Queued})
		assert.Equal(t, "--- queued (1st): Virtual cluster vision has 0 of 8 GPUs free. ---\n", errs.String(), "once")
		assert.Empty(t, out.String())
	})
}
