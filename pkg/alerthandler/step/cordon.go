package step

import (
	"fmt"
	"strings"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// cordoned reports whether the machine is cordoned for this Action. If a person requests an Action, any cordon by a person is enough, and the
// person takes over the cordon of a policy, so that the policy doesn't end it. If a policy requests it, the alert must be part of the mark.
func (d *decision) cordoned() bool {
	m := d.f.Machine
	if !m.Unschedulable || d.byPerson() {
		return m.Unschedulable
	}
	return d.a.Spec.By.Kind == v1.ByPolicy && (m.Mark.Holds(d.a.Name) || m.Mark.Full())
}

// byPerson reports whether a person rather than a policy has cordoned the machine. In that case, the mark names a person, or the machine has no
// mark, as after kubectl cordon and while paictl changes the machine.
func (d *decision) byPerson() bool {
	m := d.f.Machine
	return m.Unschedulable && (m.Mark == nil || m.Mark.By.Kind != v1.ByPolicy)
}

// returned reports whether this policy's alert isn't, or is no longer, part of the mark. In that case, the cordon belongs to other alerts.
func (d *decision) returned() bool {
	m := d.f.Machine
	return d.a.Spec.By.Kind == v1.ByPolicy && m.Mark != nil && !m.Mark.Holds(d.a.Name)
}

// stuck adds to the final message of a policy's Action that the machine stays cordoned, and how a person can return it to service, because no later
// step will do so.
func (d *decision) stuck(message string) string {
	m := d.f.Machine
	if d.a.Spec.By.Kind != v1.ByPolicy || d.a.Spec.Machine == nil || m == nil || !m.Unschedulable || d.byPerson() || d.returned() || strings.Contains(message, "stays cordoned") {
		return message
	}
	return fmt.Sprintf("%s; %s stays cordoned: return it to service by paictl node uncordon %[2]s --reason TEXT", message, d.a.Spec.Machine.Name)
}
