package inprocess

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/cache"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/server/app"
)

// lister reads the jobs for each request. pai-server uses a watch instead.
type lister struct{ *job.Client }

var errFollows = errors.New("the server inside paictl doesn't follow jobs")

// Ordered implements app.Lister. It always fails, because only OpenPAI's API uses such lists.
func (lister) Ordered(context.Context, listing.Filter) (*listing.OrderedPage, error) {
	return nil, errFollows
}

// Watch implements app.Lister. It always fails.
func (lister) Watch() (*cache.Watch, error) { return nil, errFollows }

// Resume implements app.Lister. It always fails.
func (lister) Resume(context.Context, string) (*cache.Watch, error) { return nil, errFollows }

// Where implements app.Lister. It finds no job, because operators may read every job anyway.
func (lister) Where(string, string) (vc string, known bool) { return "", false }

// Unfinished implements app.Lister. It returns 0, because operators have no limits.
func (lister) Unfinished(string) (jobs, tasks int) { return 0, 0 }

// Row implements app.Lister. It finds no job.
func (lister) Row(string) (listing.Row, bool) { return listing.Row{}, false }

// Await implements app.Lister. It returns immediately, because lists are read for each request and so contain each change.
func (lister) Await(context.Context, string, func(listing.Row) bool) {}

const gonePause = 500 * time.Millisecond

// WaitDeleted implements app.Lister.
func (l lister) WaitDeleted(ctx context.Context, j *job.Job) (bool, error) {
	for {
		if gone, err := l.Deleted(ctx, j); gone || err != nil && ctx.Err() == nil {
			return gone, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-time.After(gonePause):
		}
	}
}

// Exec runs a command in a task, for the operator in the name of the person as.
func (s *Server) Exec(ctx context.Context, as string, t *job.Target, cmd stream.Command) error {
	target, err := s.enter(ctx, as, t, "exec", cmd.Args)
	if err != nil {
		return err
	}
	cmd.Namespace, cmd.Pod, cmd.Container = target.Namespace, target.Pod, target.Container
	return stream.Exec(ctx, s.o.Cluster, cmd)
}

// Forward forwards connections to a port of a task until ctx ends. l is the listener that accepts the connections.
func (s *Server) Forward(ctx context.Context, as string, t *job.Target, port int, l net.Listener, problem func(error)) error {
	target, err := s.enter(ctx, as, t, "portforward", nil)
	if err != nil {
		return err
	}
	return stream.Serve(ctx, s.o.Cluster, l, stream.Port{Namespace: target.Namespace, Pod: target.Pod, Number: port}, problem)
}

// enter writes to the audit log that the operator enters a task, and finds the task's pod.
func (s *Server) enter(ctx context.Context, as string, t *job.Target, way string, command []string) (*job.Target, error) {
	d := s.core.For(s.core.Operator(s.operator, as), app.Origin{})
	j, err := d.Job(ctx, "job.enter", t.User, t.Job)
	if err != nil {
		return nil, s.jobs.Explain(err)
	}
	target, err := j.Enter(ctx, t.Role, t.Index, way, command, nil)
	return target, s.jobs.Explain(err)
}
