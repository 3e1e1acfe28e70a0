package client

import (
	"context"
	"net"

	fapi "github.com/openpai/paictl/pkg/framework/api"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/code"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/job/usage"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// What the server doesn't offer to people yet. Each says so, and what to do instead.

// Offer isn't told. A folder of code is refused by PutCode.
func (*Jobs) Offer(context.Context) (*job.Offer, error) {
	return &job.Offer{TakesCode: true, Unknown: true}, nil
}

// VirtualClusters isn't told.
func (*Jobs) VirtualClusters(context.Context) (*schedulerapi.VirtualClusters, error) {
	return nil, Absent("the list of virtual clusters")
}

// Images isn't told.
func (*Jobs) Images(context.Context) ([]string, error) {
	return nil, Absent("the list of images")
}

// Waiting isn't told.
func (*Jobs) Waiting(context.Context, string, int) (*job.WaitingList, error) {
	return nil, Absent("paictl job queue")
}

// Usage isn't told.
func (*Jobs) Usage(context.Context, fapi.UsageQuery) (*job.Usage, error) {
	return nil, Absent("paictl job usage")
}

// Top isn't told.
func (*Jobs) Top(context.Context, *job.Job) (list []usage.Task, problems []error, err error) {
	return nil, nil, Absent("paictl job top")
}

// Logs aren't told.
func (*Jobs) Logs(context.Context, *job.Job, logs.Options, func(logs.Line) error) error {
	return Absent("paictl job logs")
}

// PutCode isn't taken.
func (*Jobs) PutCode(context.Context, string, *code.Archive) (sent bool, err error) {
	return false, Absent("a folder of code (--code)")
}

// Targets aren't told.
func (*Jobs) Targets(context.Context, *job.Job) ([]*job.Target, error) {
	return nil, Absent("going into a task")
}

// Exec isn't done.
func (*Jobs) Exec(context.Context, *job.Target, stream.Command) error {
	return Absent("going into a task")
}

// Forward isn't done.
func (*Jobs) Forward(context.Context, *job.Target, int, net.Listener, func(error)) error {
	return Absent("paictl job port-forward")
}
