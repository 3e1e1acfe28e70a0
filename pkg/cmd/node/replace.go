package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
)

// ReplaceOptions are a dead machine of the control plane and the one that takes its place.
type ReplaceOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	// Dead is a host name of the layout, New an address or NAME=ADDRESS.
	Dead, New  string
	Fix, Force bool
}

// Replace takes a machine out of the cluster and adds another one with its roles. What an interrupted run has done is not done again.
func Replace(ctx context.Context, o *ReplaceOptions) error {
	c, err := config.Load(o.Flags.Dir)
	if err != nil {
		return err
	}
	roles := []string{layout.RoleMaster}
	if i := slices.IndexFunc(c.Layout.MachineList, func(m layout.Machine) bool { return m.Hostname == o.Dead || m.HostIP == o.Dead }); i >= 0 {
		if roles = c.Layout.MachineList[i].Roles; !c.IsControlPlane(c.Layout.MachineList[i]) {
			return cmdutil.Usagef("%s is no machine of the control plane: paictl node remove %s, then paictl node add", o.Dead, o.Dead)
		}
		flags := o.Flags
		flags.Limit = []string{o.Dead}
		if err := removeRun(ctx, &RemoveOptions{Factory: o.Factory, Flags: flags, Output: o.Output, Force: o.Force, DrainTimeout: drainTimeout}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(o.Factory.IO.Err, "%s is not in the layout (any more)\n", o.Dead)
	}
	return addRun(ctx, &AddOptions{Factory: o.Factory, Flags: o.Flags, Output: o.Output, Fix: o.Fix, New: config.NewMachines{Hosts: []string{o.New}, Roles: roles, SKU: "auto"}})
}
