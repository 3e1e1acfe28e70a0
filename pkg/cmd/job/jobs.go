package job

import (
	"context"
	"net"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/code"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/job/usage"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
)

// Jobs are the jobs of one cluster, as the verbs use them: by a kubeconfig, or by the platform's server for the user who has signed in.
type Jobs interface {
	// Me returns the user who has signed in. It returns "" for a kubeconfig, which doesn't name a user.
	Me(ctx context.Context) (string, error)
	Resolve(ctx context.Context, user, name string) (*job.Job, error)
	Get(ctx context.Context, j *job.Job) (*job.Job, error)
	List(ctx context.Context, f job.Filter) (*job.Page, error)
	// Watch shows a list now and again every so often.
	Watch(ctx context.Context, f job.Filter, every time.Duration, show func(*job.Page) error) error
	// Known names the jobs that live, of a user or of all, to complete names.
	Known(ctx context.Context, user string) ([]job.Name, error)
	VirtualClusters(ctx context.Context) (*v3.VirtualClusters, error)
	Images(ctx context.Context) ([]string, error)
	Offer(ctx context.Context) (*job.Offer, error)

	Detail(ctx context.Context, j *job.Job) (*job.Detail, error)
	Follow(ctx context.Context, j *job.Job, seen func(*job.Detail) (more bool), problem func(error)) error
	Why(ctx context.Context, j *job.Job) (*job.Why, error)
	Events(ctx context.Context, j *job.Job) (list []api.Event, note, err error)
	Logs(ctx context.Context, j *job.Job, o logs.Options, give func(logs.Line) error) error
	Waiting(ctx context.Context, vc string, limit int) (*job.WaitingList, error)
	Usage(ctx context.Context, q api.UsageQuery) (*job.Usage, error)
	Top(ctx context.Context, j *job.Job) (list []usage.Task, problems []error, err error)

	// Prepare checks job files. If no finding is an error, the list has one entry for each request.
	Prepare(ctx context.Context, all []job.Request) ([]*job.Prepared, strictyaml.Findings, error)
	Submit(ctx context.Context, p *job.Prepared, o job.SubmitOptions) (job.Outcome, error)
	PutCode(ctx context.Context, user string, a *code.Archive) (sent bool, err error)
	Stop(ctx context.Context, j *job.Job) (before job.Phase, err error)
	Retry(ctx context.Context, j *job.Job) (before job.Phase, err error)
	Scale(ctx context.Context, j *job.Job, role string, tasks int) (before int, err error)
	Remove(ctx context.Context, j *job.Job) error
	Forget(ctx context.Context, j *job.Job) (jobs int, err error)
	FreeName(ctx context.Context, j *job.Job) (string, error)

	Targets(ctx context.Context, j *job.Job) ([]*job.Target, error)
	Exec(ctx context.Context, t *job.Target, cmd stream.Command) error
	Forward(ctx context.Context, t *job.Target, port int, l net.Listener, problem func(error)) error

	// Explain adds advice for the user to an error.
	Explain(err error) error
}

var _ Jobs = (*client.Jobs)(nil)
