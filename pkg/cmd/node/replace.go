package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
)

// ReplaceOptions describe a dead machine of the control plane and its replacement.
type ReplaceOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	// Dead is the host name of the dead machine in the layout. New is the new machine: an address or NAME=ADDRESS.
	Dead, New string
	// Roles are the roles of the new machine. If Roles is empty, the new machine gets the roles of the dead machine.
	Roles      []string
	Fix, Force bool
}

// Replace removes a machine from the cluster, and adds another machine with the same roles. After an interrupted run, it skips the steps that
// are already done.
func Replace(ctx context.Context, o *ReplaceOptions) error {
	add := &AddOptions{Factory: o.Factory, Flags: o.Flags, Output: o.Output, Fix: o.Fix, New: config.NewMachines{Hosts: []string{o.New}, Roles: o.Roles, SKU: "auto"}}
	c, err := config.Load(o.Flags.Dir)
	if err != nil {
		return err
	}
	machines, err := add.New.Machines()
	if err != nil {
		return err
	}
	find := func(is func(layout.Machine) bool) int { return slices.IndexFunc(c.Layout.MachineList, is) }
	dead := find(func(m layout.Machine) bool { return m.Hostname == o.Dead || m.HostIP == o.Dead })
	added := find(func(m layout.Machine) bool { return m.HostIP == machines[0].HostIP })
	switch {
	case dead >= 0 && (machines[0].Hostname == c.Layout.MachineList[dead].Hostname || added == dead):
		return cmdutil.Usagef("--new %s: give the new machine another name and another address; a machine that keeps both and has a new disk joins again by paictl cluster up", o.New)
	case dead >= 0 && !c.IsControlPlane(c.Layout.MachineList[dead]):
		return cmdutil.Usagef("%s is not a machine of the control plane: paictl node remove %s, then paictl node add", o.Dead, o.Dead)
	case dead < 0 && added < 0 && len(o.Roles) == 0:
		return cmdutil.Usagef("%s is no longer in the layout, so its roles are not known: give those of %s with --role", o.Dead, o.New)
	}
	if dead < 0 {
		fmt.Fprintf(o.Factory.IO.Err, "%s is no longer in the layout\n", o.Dead)
		return addRun(ctx, add)
	}
	if len(o.Roles) == 0 {
		add.New.Roles = c.Layout.MachineList[dead].Roles
	}
	if err := o.try(ctx, add, machines); err != nil {
		return hint.Wrap(fmt.Errorf("%s: %w; nothing was changed", o.New, err), hint.Of(err))
	}
	// The virtual clusters get the cells of the dead machine back if the new machine has as many cells.
	add.cells.former = c.Source(config.ServicesFile)
	flags := o.Flags
	flags.Limit = []string{c.Layout.MachineList[dead].Hostname}
	err = removeRun(ctx, &RemoveOptions{Factory: o.Factory, Flags: flags, Output: o.Output, Force: o.Force, DrainTimeout: drainTimeout, replaced: true})
	if _, partial := errors.AsType[*engine.PartialError](err); partial {
		// If only the update of other machines failed, the machine is already removed, and the new machine can be added.
		if now, lerr := config.Load(o.Flags.Dir); lerr != nil || slices.ContainsFunc(now.Layout.MachineList, func(m layout.Machine) bool { return m.Hostname == flags.Limit[0] }) {
			return err
		}
		fmt.Fprintf(o.Factory.IO.Err, "%s is removed from the cluster; continuing with %s despite an error: %v\n", o.Dead, o.New, err)
	} else if err != nil {
		return err
	}
	return addRun(ctx, add)
}

// try checks that the new machine can be added. This is done before the old machine is removed.
func (o *ReplaceOptions) try(ctx context.Context, add *AddOptions, machines []layout.Machine) error {
	s, err := session.Open(ctx, o.Factory, &o.Flags, session.Needs{Bundle: true, ReadOnly: true, Format: "quiet"})
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range machines {
		machines[i].Roles = add.New.Roles
	}
	_, err = planAdd(ctx, s, machines, &cells{})
	return err
}
