package job

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// followed returns a client of a server where a job has the given states one after the other. The server sends err after the states. Forwarded
// ports stay open until their context ends.
func followed(t *testing.T, states []*job.Detail, err *v3.Error) *client.Jobs {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v3/jobs/ann/train/follow", func(w http.ResponseWriter, r *http.Request) {
		for _, d := range states {
			send(w, v3.Frame{Detail: d})
		}
		if err != nil {
			send(w, v3.Frame{Error: err})
			return
		}
		<-r.Context().Done()
	})
	return serveInside(t, mux, &client.Inside{Forward: func(ctx context.Context, _ *job.Target, _ int, l net.Listener, _ func(error)) error {
		<-ctx.Done()
		_ = l.Close()
		return context.Cause(ctx)
	}})
}

func TestForwardedPortsEndWithTheirTask(t *testing.T) {
	state := func(of job.Phase, uid string, task job.Phase) *job.Detail {
		d := &job.Detail{Tasks: []job.Task{{TaskAttempt: api.TaskAttempt{Role: "worker", RoleObject: "worker", PodUID: "other"}, Phase: job.Failed},
			{TaskAttempt: api.TaskAttempt{Role: "worker", RoleObject: "worker", Index: 1, PodUID: uid}, Phase: task}}}
		d.State = string(of)
		return d
	}
	runs := state(job.Running, "u", job.Running)
	for name, c := range map[string]struct {
		states []*job.Detail
		err    *v3.Error
		want   string
		remedy string
	}{
		"the job succeeds":      {[]*job.Detail{runs, state(job.Stopping, "u", job.Stopping), state(job.Succeeded, "u", job.Succeeded)}, nil, "ann/train has ended (succeeded), so that its ports are no longer forwarded", "job why ann/train"},
		"its task fails alone":  {[]*job.Detail{runs, state(job.Running, "u", job.Failed)}, nil, "worker[1] of ann/train no longer runs there, so that its ports are no longer forwarded", "forward its ports again"},
		"its task is retried":   {[]*job.Detail{runs, state(job.Running, "v", job.Starting)}, nil, "worker[1] of ann/train no longer runs there, so that its ports are no longer forwarded", "forward its ports again"},
		"the job is deleted":    {[]*job.Detail{runs}, &v3.Error{Code: "NoJobError", Message: "no job"}, "ann/train was deleted, so that its ports are no longer forwarded", "paictl job list"},
		"one may no longer ask": {[]*job.Detail{runs}, &v3.Error{Code: "ForbiddenUserError", Message: "it isn't yours"}, "it isn't yours", "paictl whoami"},
	} {
		t.Run(name, func(t *testing.T) {
			io, _, stdout, _ := iostreams.Test()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			opts := &PortForwardOptions{Factory: &cmdutil.Factory{IO: io}}
			target := &job.Target{Task: "worker[1]", Role: "worker", Index: 1, UID: "u"}
			err = opts.forward(t.Context(), followed(t, c.states, c.err), &job.Job{User: "ann", Name: "train"}, target, []forwarded{{Listener: l, port: 80, what: "port 80"}})
			require.ErrorContains(t, err, c.want)
			assert.Contains(t, hint.Of(err), c.remedy)
			assert.Contains(t, stdout.String(), " -> port 80 of worker[1]")
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	io, _, _, _ := iostreams.Test()
	cancel()
	require.NoError(t, (&PortForwardOptions{Factory: &cmdutil.Factory{IO: io}}).forward(ctx, followed(t, nil, nil), &job.Job{User: "ann", Name: "train"}, &job.Target{}, nil), "Ctrl-C is no error")
}
