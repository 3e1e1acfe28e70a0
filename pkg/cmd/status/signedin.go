package status

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/way"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/status"
)

// signedInRun prints the tables for a user who signed in.
func signedInRun(ctx context.Context, opts *StatusOptions, w *way.Way) error {
	if opts.Watch {
		return cmdutil.Usagef("--watch needs a kubeconfig: --kubeconfig FILE; after paictl login, use: paictl job list --watch")
	}
	c, err := w.Server.Status(ctx)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusForbidden {
		c, err = own(ctx, &client.Jobs{Server: w.Server, Name: w.User})
	}
	if err != nil {
		return err
	}
	c.Server = "https://" + w.Server.Host()
	if err := Write(opts.Factory.IO.Out, &opts.Output, c, opts.All); err != nil {
		return err
	}
	return verdict(c)
}

// onlyAdministrators is the message of parts that only administrators see.
const onlyAdministrators = "only administrators see machines, GPUs, services and alerts"

// own returns the jobs of a person who isn't an administrator, and the virtual clusters that they may use.
func own(ctx context.Context, jobs *client.Jobs) (*status.Cluster, error) {
	page, err := jobs.List(ctx, job.Filter{})
	if err != nil {
		return nil, err
	}
	owners, err := jobs.VirtualClusters(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	c := &status.Cluster{Name: "your part of the cluster", At: now, Machines: []status.Machine{}, VirtualClusters: []status.VirtualCluster{}, Services: []status.Service{}, Alerts: []status.Alert{}, Jobs: []*status.Job{}}
	for i := range page.Items {
		c.Jobs = append(c.Jobs, &status.Job{Row: page.Items[i]})
	}
	for i := range owners.Items {
		c.VirtualClusters = append(c.VirtualClusters, status.VirtualCluster{VirtualCluster: owners.Items[i]})
	}
	for _, name := range status.SourceNames() {
		s := status.Source{Name: name, State: status.StateAbsent, Since: now, Message: onlyAdministrators, Hint: "ask an administrator to run: paictl status"}
		switch {
		case name == status.SourceJobs, name == status.SourceScheduler && owners.Note == "":
			s = status.Source{Name: name, State: status.StateCurrent, Since: now, Updated: now}
		case name == status.SourceScheduler:
			s = status.Source{Name: name, State: status.StateFailed, Since: now, Message: owners.Note}
		}
		c.Sources = append(c.Sources, s)
	}
	status.Complete(c)
	return c, nil
}
