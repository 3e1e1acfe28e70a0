package node

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// cells adapts the virtual clusters when machines are added or removed, and keeps the changes for the output.
type cells struct {
	takeFrom string
	// asks means that the command has the flag --take-from.
	asks bool
	// decided means that the change can't be rejected, because the machine has already been removed from the cluster.
	decided bool
	// former is the content of services-configuration.yaml before another machine was removed. It is restored if it fits the current machines.
	former []byte
	// changes describes the changes, one per line.
	changes []string
}

func (c *cells) rules() config.ServiceRules {
	return config.ServiceRules{Adapt: c.settle, Check: catalogue.CheckMachines}
}

func (c *cells) settle(before, after *config.Cluster) ([]byte, error) {
	c.changes = nil
	text := before.Source(config.ServicesFile)
	have, err := vc.Read(text)
	if err != nil || len(have) == 0 {
		return nil, err
	}
	if c.former != nil {
		if back, err := after.WithServices(c.former); err == nil && catalogue.CheckMachines(back).Err() == nil {
			now, err := vc.Read(c.former)
			changes := map[string]*vc.Definition{}
			for name, d := range now {
				if was := have[name]; was.String() != d.String() {
					changes[name] = &d
				}
			}
			c.changes = vc.Difference(have, changes)
			return c.former, err
		}
	}
	was, found := catalogue.SchedulerConfig(before)
	if err := found.Err(); err != nil {
		return nil, err
	}
	is, _ := catalogue.SchedulerConfig(after) // its findings concern the cells that are decided here
	changes, err := vc.FitHardware(have, was, is, c.takeFrom, c.decided)
	if err != nil {
		return nil, hint.Wrap(fmt.Errorf("nothing was changed: %w", err), cmp.Or(c.choose(err), hint.Of(err)))
	}
	if len(changes) == 0 {
		return nil, nil
	}
	c.changes = vc.Difference(have, changes)
	return vc.Edit(text, changes)
}

// choose returns a remedy: how to choose the virtual cluster that gives up cells. It returns "" if the error has another cause.
func (c *cells) choose(err error) string {
	e, ok := errors.AsType[*vc.OwnersError](err)
	switch {
	case !ok:
		return ""
	case c.asks:
		return "say which one gives them up: --take-from " + strings.Join(e.Owners, ", or --take-from ")
	}
	return fmt.Sprintf("write fewer cells of the type %s for one of them into %s, and run the command again", e.CellType, config.ServicesFile)
}

// String describes the changes for the user. It returns "" if there are no changes.
func (c *cells) String() string {
	if len(c.changes) == 0 {
		return ""
	}
	return fmt.Sprintf("virtual clusters in %s:\n  %s\n", config.ServicesFile, strings.Join(c.changes, "\n  "))
}
