package app

import (
	"context"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/status"
)

// roomsTime limits how long a prediction waits for the state of the machines.
const roomsTime = 5 * time.Second

// Outlook predicts the start of the job if it were submitted now. If no prediction is possible, the Outlook contains the reason.
func (p *Prepared) Outlook(ctx context.Context) *job.Outlook {
	d := p.actions
	machines := rules.Class("vc.read", &d.caller.Subject) == nil
	if p.prepared.OnCells() {
		return d.app.Jobs.Outlook(ctx, p.prepared, d.outlookNames(), machines)
	}
	rooms, err := d.rooms(ctx)
	return p.prepared.CapacityOutlook(rooms, err, machines)
}

// outlookNames returns a function that returns the names of other jobs for an outlook. For a token that may only submit jobs, the function returns no
// names.
func (d *Actions) outlookNames() job.NameOf {
	if rules.Class("job.read", &d.caller.Subject) != nil {
		return func(string, string) string { return "" }
	}
	return d.nameOf
}

// rooms returns the free resources of the machines that run jobs.
func (d *Actions) rooms(ctx context.Context) ([]job.FreeCapacity, error) {
	ctx, cancel := context.WithTimeout(ctx, roomsTime)
	defer cancel()
	if d.app.Status == nil {
		return d.app.Jobs.FreeCapacity(ctx)
	}
	c, err := d.app.Status.Read(ctx)
	if err != nil {
		return nil, err
	}
	worker := func(m *status.Machine) bool { return slices.Contains(m.Roles, "pai-worker") }
	marked := slices.ContainsFunc(c.Machines, func(m status.Machine) bool { return worker(&m) })
	var out []job.FreeCapacity
	for i := range c.Machines {
		m := &c.Machines[i]
		if m.State == status.MachineReady && !m.Cordoned && (worker(m) || !marked) {
			out = append(out, job.FreeCapacity{Machine: m.Name, MilliCPU: m.CPU.Total - m.CPU.Used, MemoryMB: m.Memory.Total - m.Memory.Used})
		}
	}
	return out, nil
}
