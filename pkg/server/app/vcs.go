package app

import (
	"context"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/scheduler/vc/change"
	"github.com/openpai/paictl/pkg/server/wire"
)

// ChangeVirtualClusters changes virtual clusters in the stored configuration of the cluster, and in the running scheduler. A dry run only returns the
// effect of the change.
func (d *Actions) ChangeVirtualClusters(ctx context.Context, o *vc.ChangeSet) (out *vc.Outcome, err error) {
	act := func(ctx context.Context) error {
		if err := rules.Class("vc.manage", &d.caller.Subject); err != nil {
			return err
		}
		c := change.Changer{Client: d.app.Jobs.Client, Scheduler: d.app.Jobs.Scheduler}
		out, err = c.Do(ctx, o, d.author())
		return err
	}
	if o.DryRun {
		err = act(ctx)
		return out, err
	}
	detail := map[string]string{}
	if o.Force {
		detail["force"] = "true"
	}
	err = d.did(ctx, "vc.manage", rules.Object{Kind: rules.KindVC, Name: wire.Shown(strings.Join(o.Names(), ","))}, detail, func(ctx context.Context) error {
		err := act(ctx)
		switch {
		case out != nil && out.Revision > 0:
			detail["revision"] = strconv.Itoa(out.Revision)
		case err == nil:
			return errNothing
		}
		return err
	})
	return out, err
}

// author returns the name of the caller for the history of the configuration.
func (d *Actions) author() string {
	if d.caller.Operator && d.app.Author != "" {
		return d.app.Author
	}
	return d.caller.Name
}
