package step

import (
	"fmt"
	"strings"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// cordoned reports whether the machine is cordoned for this Action. A person takes over the cordon of a policy, so that the policy doesn't end it,
// and each alert has its part in a cordon of policies.
func (d *decision) cordoned() bool {
	m := d.f.Machine
	if !m.Unschedulable || d.byPerson() {
		return m.Unschedulable
	}
	return d.a.Spec.By.Kind == v1.ByPolicy && (m.Mark.Holds(d.a.Name) || m.Mark.Full())
}

// byPerson reports whether the cordon of the machine isn't one of policies: it has the mark of a person, or none, as after kubectl cordon and while
// paictl changes the machine.
func (d *decision) byPerson() bool {
	m := d.f.Machine
	return m.Unschedulable && (m.Mark == nil || m.Mark.By.Kind != v1.ByPolicy)
}

// returned reports whether a policy has no part in the cordon of the machine, or no longer. Then the cordon belongs to other alerts.
func (d *decision) returned() bool {
	m := d.f.Machine
	return d.a.Spec.By.Kind == v1.ByPolicy && m.Mark != nil && !m.Mark.Holds(d.a.Name)
}

// stuck adds to the end of a policy's Action that its machine stays cordoned, and how a person returns it: no later step does.
func (d *decision) stuck(message string) string {
	m := d.f.Machine
	if d.a.Spec.By.Kind != v1.ByPolicy || d.a.Spec.Machine == nil || m == nil || !m.Unschedulable || d.byPerson() || d.returned() || strings.Contains(message, "stays cordoned") {
		return message
	}
	return fmt.Sprintf("%s; %s stays cordoned: return it to service by paictl node uncordon %[2]s --reason TEXT", message, d.a.Spec.Machine.Name)
}
