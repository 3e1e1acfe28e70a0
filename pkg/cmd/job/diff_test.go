package job

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestAJobIsComparedWithItsParentOrAnother(t *testing.T) {
	mux := http.NewServeMux()
	answer := func(path string, j job.Job) {
		mux.HandleFunc("GET /api/v3/jobs/"+path, func(w http.ResponseWriter, _ *http.Request) { send(w, j) })
	}
	answer("ann/train-2/brief", job.Job{User: "ann", Name: "train-2", Config: "name: train-2\nlr: 0.01\n"})
	answer("ann/train-2/parent", job.Job{User: "bob", Name: "train", UID: "old", Config: "name: train\nlr: 0.01\n"})
	answer("bob/train/brief", job.Job{User: "bob", Name: "train", UID: "new", Config: "name: train\nlr: 1\n"})
	diff := func(name, other string) (out, errs string) {
		io, _, stdout, stderr := iostreams.Test()
		opts := &DiffOptions{Factory: &cmdutil.Factory{IO: io}, Flags: Flags{User: "ann", jobs: serve(t, mux)}, Name: name, Other: other}
		require.NoError(t, diffRun(t.Context(), opts))
		return stdout.String(), stderr.String()
	}
	out, _ := diff("train-2", "")
	assert.Equal(t, "--- bob/train\n+++ ann/train-2\n@@ -1,2 +1,2 @@\n-name: train\n+name: train-2\n lr: 0.01\n", out, "not with the job that has the name now")
	out, _ = diff("train-2", "bob/train")
	assert.Contains(t, out, "-lr: 1\n")
	out, errs := diff("train-2", "train-2")
	assert.Empty(t, out)
	assert.Equal(t, "ann/train-2 and ann/train-2 have the same job file\n", errs)
}
