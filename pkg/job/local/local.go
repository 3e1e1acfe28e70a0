// Package local joins Client and the packages below pkg/job in one type that reads and changes the jobs of a cluster and connects to their tasks.
// In: a connection to the cluster. Out: all that "paictl job" and the server need.
package local

import (
	"context"
	"errors"
	"net"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/code"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/job/usage"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/strictyaml"
)

// Jobs are those of one cluster. Its methods beside these are those of job.Client.
type Jobs struct {
	*job.Client

	mu    sync.Mutex
	facts *job.Facts
}

// Open connects to a cluster by a kubeconfig. It doesn't send a request yet.
func Open(o kube.Options) (*Jobs, error) {
	c, err := job.Open(o)
	if err != nil {
		return nil, err
	}
	return New(c), nil
}

// New makes them of a client.
func New(c *job.Client) *Jobs { return &Jobs{Client: c} }

// Facts are read once, for whatever one command does.
func (c *Jobs) Facts(ctx context.Context) (*job.Facts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.facts != nil {
		return c.facts, nil
	}
	f, err := c.Client.Facts(ctx)
	c.facts = f
	return f, err
}

// Me returns "": a kubeconfig doesn't say which user the jobs are for.
func (*Jobs) Me(context.Context) (string, error) { return "", nil }

// FreeName returns a name for a copy of a job that its owner has not used yet.
func (c *Jobs) FreeName(ctx context.Context, j *job.Job) (string, error) {
	return c.Client.FreeName(ctx, j, j.User)
}

// Known names the jobs that live, of a user or of all.
func (c *Jobs) Known(ctx context.Context, user string) ([]job.Name, error) {
	selector := ""
	if user != "" {
		selector = v1.LabelUser + "=" + user
	}
	list, err := c.Frameworks.List(ctx, selector)
	if err != nil {
		return nil, err
	}
	var out []job.Name
	for i := range list {
		if name := list[i].Annotations[v1.AnnotationJobName]; name != "" {
			out = append(out, job.Name{User: list[i].Labels[v1.LabelUser], Name: name})
		}
	}
	return out, nil
}

// VirtualClusters reads the GPUs that all of them own and use.
func (c *Jobs) VirtualClusters(ctx context.Context) (*schedulerapi.VirtualClusters, error) {
	return c.Scheduler.VirtualClusters(ctx)
}

// Retry runs a job again; see job.Client.Retry.
func (c *Jobs) Retry(ctx context.Context, j *job.Job) (job.Phase, error) {
	return c.Client.Retry(ctx, j, job.RetryOptions{})
}

// Scale changes how many tasks a role has; see job.Client.Scale.
func (c *Jobs) Scale(ctx context.Context, j *job.Job, role string, tasks int) (before int, err error) {
	return c.Client.Scale(ctx, j, role, tasks, job.ScaleOptions{})
}

// Offer returns the resources that a job may request from the cluster.
func (c *Jobs) Offer(ctx context.Context) (*job.Offer, error) {
	f, err := c.Facts(ctx)
	if err != nil {
		return nil, err
	}
	return &job.Offer{TakesCode: f.TakesCode(), SKUs: f.Cluster.SKUs}, nil
}

// Prepare reads and checks job files against what the cluster offers now. If no finding is an error, the list has one entry for each
// request.
func (c *Jobs) Prepare(ctx context.Context, all []job.Request) ([]*job.Prepared, strictyaml.Findings, error) {
	f, err := c.Facts(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []*job.Prepared
	var findings strictyaml.Findings
	for _, r := range all {
		p, found, err := c.Client.Prepare(f, r)
		if err != nil {
			return nil, nil, err
		}
		out, findings = append(out, p), append(findings, found...)
	}
	return out, findings, nil
}

// Submit makes a job; see job.Client.Submit.
func (c *Jobs) Submit(ctx context.Context, p *job.Prepared, o job.SubmitOptions) (job.Outcome, error) {
	if p.Objects == nil {
		return "", errors.New("submit: the job was not prepared here")
	}
	return c.Client.Submit(ctx, p.Objects, o)
}

// PutCode uploads a user's folder to the cluster, unless the cluster has it already. sent reports which.
func (c *Jobs) PutCode(ctx context.Context, user string, a *code.Archive) (sent bool, err error) {
	sent, err = code.Upload(ctx, c.History, user, a)
	return sent, c.Explain(err)
}

// Forget removes all jobs of a name that have ended from the history, and says how many. There may be none.
func (c *Jobs) Forget(ctx context.Context, j *job.Job) (jobs int, err error) {
	n, err := c.History.Delete(ctx, j.Object)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return n, err
}

// Top measures the resources that the tasks of a job use. problems are machines that don't answer.
func (c *Jobs) Top(ctx context.Context, j *job.Job) (list []usage.Task, problems []error, err error) {
	return usage.Of(ctx, c.Client, j)
}

// Logs hands over lines of a job's logs; see logs.Lines.
func (c *Jobs) Logs(ctx context.Context, j *job.Job, o logs.Options, give func(logs.Line) error) error {
	return logs.Lines(ctx, c.Client, j, o, give)
}

// Exec runs a command in a task.
func (c *Jobs) Exec(ctx context.Context, t *job.Target, cmd stream.Command) error {
	cmd.Namespace, cmd.Pod, cmd.Container = t.Namespace, t.Pod, t.Container
	return stream.Exec(ctx, c.Cluster, cmd)
}

// Forward forwards the connections that a listener accepts to a port of a task, until ctx ends.
func (c *Jobs) Forward(ctx context.Context, t *job.Target, port int, l net.Listener, problem func(error)) error {
	return stream.Serve(ctx, c.Cluster, l, stream.Port{Namespace: t.Namespace, Pod: t.Pod, Number: port}, problem)
}
