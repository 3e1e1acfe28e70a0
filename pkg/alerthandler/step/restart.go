package step

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// restartTimeout limits the restart of a machine. It includes a slow start with much memory, and the agent's check of the GPUs.
const restartTimeout = 30 * time.Minute

// Never returns the reason why a machine may never be restarted, or "".
func (m *Machine) Never(name string) string {
	switch {
	case m.ControlPlane:
		return name + " belongs to the control plane: restart it by hand"
	case !m.Agent:
		return name + " has no GPUs, and so no agent that could restart it: restart it by hand"
	}
	return ""
}

// unfit returns the reason why a machine can't be restarted now, or "". A dry run of a policy doesn't require a drained machine.
func (d *decision) unfit() string {
	if d.a.Spec.Do != v1.OperationRestartMachine {
		return ""
	}
	m, name := d.f.Machine, d.a.Spec.Machine.Name
	switch {
	case !d.f.Restarts:
		return "restarts of machines are off: set restartMachines in the sections alert-handler and agent"
	case m.Never(name) != "":
		return m.Never(name)
	case m.Boot == "":
		return "the kubelet of " + name + " reports no boot ID, which shows whether it has restarted"
	case d.f.Restarting != "" && d.a.Spec.By.Kind != v1.ByPolicy:
		return fmt.Sprintf("the action %s restarts %s already", d.f.Restarting, name)
	case d.restarted(), d.a.Spec.DryRun && d.a.Spec.By.Kind == v1.ByPolicy:
		return ""
	}
	if problem := d.undrained(); problem != "" || d.a.Spec.By.Kind != v1.ByPolicy {
		return problem
	}
	switch {
	case m.Mark != nil && m.Mark.Stays:
		return name + " isn't restarted: " + m.Mark.Reason
	case d.f.Spent != "":
		return name + " isn't restarted again: " + d.f.Spent
	}
	return ""
}

// restarted reports whether a policy no longer needs the restart. Another Action, for example for another GPU, may have restarted the machine, and
// the agent reports no fault since. For the reset of a GPU, only faults of that GPU count.
func (d *decision) restarted() bool {
	sick := d.f.Machine.BrokenGPUs
	if d.a.Spec.Do == v1.OperationResetGPU && !strings.Contains(sick, fmt.Sprintf("GPU %d: ", *d.a.Spec.Machine.GPU)) {
		sick = ""
	}
	return d.a.Spec.By.Kind == v1.ByPolicy && d.f.Restarted != "" && sick == ""
}

// undrained returns the reason why the machine isn't drained, or "".
func (d *decision) undrained() string {
	m, name := d.f.Machine, d.a.Spec.Machine.Name
	switch {
	case !m.Unschedulable:
		return name + " isn't cordoned: drain it before it is restarted"
	case d.a.Spec.By.Kind == v1.ByPolicy && d.byPerson():
		return name + " was cordoned by a person, and a policy doesn't restart it"
	case d.a.Spec.By.Kind == v1.ByPolicy && !d.cordoned():
		return name + " is cordoned for another reason now, and isn't restarted"
	case len(m.Pods) > 0:
		return fmt.Sprintf("%s isn't drained, and has %s: drain it before it is restarted", name, plural.Of(len(m.Pods), "pod"))
	}
	return ""
}

// restart decides about a machine whose restart has begun. The status contains the boot ID from before the order. A different boot ID on the Node
// means that the machine has restarted, and it isn't restarted again.
func (d *decision) restart() Next {
	m, name := d.f.Machine, d.a.Spec.Machine.Name
	d.status.Boot = cmp.Or(d.status.Boot, m.Boot)
	restarted := m.Boot != "" && m.Boot != d.status.Boot
	over := d.passed(d.status.StartTime.Add(restartTimeout))
	switch answer := m.Restart; {
	case answer != nil && !answer.Done:
		return d.end(v1.PhaseFailed, fmt.Sprintf("%s stays cordoned: %s", name, cmp.Or(answer.Message, "its agent couldn't restart it")))
	case answer != nil && restarted && m.Ready && m.BrokenGPUs == "":
		return d.end(v1.PhaseSucceeded, cmp.Or(answer.Message, name+" has restarted"))
	case over:
		return d.end(v1.PhaseFailed, fmt.Sprintf("%s stays cordoned: %s", name, d.overdue(restarted)))
	case m.Ordered && restarted:
		return d.effect(EffectNone, name+" has restarted, and waits until it is ready and its agent has checked its GPUs")
	case m.Ordered:
		return d.effect(EffectNone, "the agent is to restart "+name)
	case !restarted && d.f.Forbidden != nil: // the configuration or a right has changed since the decision
		return d.end(v1.PhaseFailed, fmt.Sprintf("%s isn't restarted: %s", name, d.f.Forbidden))
	case !restarted && d.unfit() != "":
		return d.end(v1.PhaseFailed, d.unfit())
	}
	return d.effect(EffectRestart, "the agent is to restart "+name)
}

// overdue returns the reason why a restart wasn't complete in time, and the remedy.
func (d *decision) overdue(restarted bool) string {
	m := d.f.Machine
	switch {
	case !restarted && m.Ready:
		return fmt.Sprintf("it hasn't restarted within %s; check that its agent runs (paictl service status -n agent), or restart it by hand", restartTimeout)
	case !restarted:
		return fmt.Sprintf("it hasn't come back within %s; look at its console, or restart it by its management controller", restartTimeout)
	case !m.Ready:
		return fmt.Sprintf("it has restarted, but isn't ready within %s; see journalctl -u kubelet on it", restartTimeout)
	case m.BrokenGPUs != "":
		return fmt.Sprintf("it has restarted, but its agent still finds a fault after %s: %s", restartTimeout, m.BrokenGPUs)
	}
	return fmt.Sprintf("it has restarted, but its agent hasn't checked its GPUs within %s; see paictl service status -n agent", restartTimeout)
}
