package job

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

func TestSubmitWithWaitSaysHowEachJobEnded(t *testing.T) {
	streams, _, _, told := iostreams.Test()
	f := cmdutil.New("v0.0.0-test")
	f.IO = streams
	opts := &SubmitOptions{Factory: f, Wait: true}
	mux := http.NewServeMux()
	for name, state := range map[string]job.Phase{"lr-1": job.Succeeded, "lr-2": job.Failed} {
		path := "GET /api/v3/jobs/ann/" + name
		mux.HandleFunc(path+"/brief", func(w http.ResponseWriter, _ *http.Request) { send(w, job.Job{User: "ann", Name: name, State: state}) })
		mux.HandleFunc(path+"/follow", func(w http.ResponseWriter, _ *http.Request) { send(w, stateOf(name, state), v3.Frame{End: true}) })
	}
	err := opts.follow(t.Context(), serve(t, mux), "ann", []submission{{job: &protocol.Job{Name: "lr-1"}}, {job: &protocol.Job{Name: "lr-2"}}})
	coded, ok := errors.AsType[*cmdutil.CodeError](err)
	require.True(t, ok, err)
	assert.Equal(t, 1, coded.Code)
	assert.Contains(t, told.String(), "ann/lr-1  succeeded")
	assert.Contains(t, told.String(), "ann/lr-2  failed")
}
