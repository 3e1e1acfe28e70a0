package step

import (
	"fmt"
	"strings"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// cordoned reports whether the machine is cordoned for this Action. A cordon by a person is enough for every Action. A cordon by a policy is enough
// only for the Action of a policy, if the mark is full or contains the alert. For a person's Action it isn't enough, because the policy would end
// the cordon.
func (d *decision) cordoned() bool {
	m := d.f.Machine
	if !m.Unschedulable || d.byPerson() {
		return m.Unschedulable
	}
	return d.a.Spec.By.Kind == v1.ByPolicy && (m.Mark.Holds(d.a.Name) || m.Mark.Full())
}

// byPerson reports whether a person rather than a policy has cordoned the machine. In this case, the mark names a person or is missing. The mark is
// missing after kubectl cordon and while paictl changes the machine.
func (d *decision) byPerson() bool {
	m := d.f.Machine
	return m.Unschedulable && (m.Mark == nil || m.Mark.By.Kind != v1.ByPolicy)
}

// returned reports whether the mark doesn't contain the alert of this policy's Action. The cordon then belongs to other alerts.
func (d *decision) returned() bool {
	m := d.f.Machine
	return d.a.Spec.By.Kind == v1.ByPolicy && m.Mark != nil && !m.Mark.Holds(d.a.Name)
}

// stuck adds a sentence to the final message of a policy's Action: the machine stays cordoned, and a person can return it to service. No later step
// will do so.
func (d *decision) stuck(message string) string {
	m := d.f.Machine
	if d.a.Spec.By.Kind != v1.ByPolicy || d.a.Spec.Machine == nil || m == nil || !m.Unschedulable || d.byPerson() || d.returned() || strings.Contains(message, "stays cordoned") {
		return message
	}
	return fmt.Sprintf("%s; %s stays cordoned: return it to service by paictl node uncordon %[2]s --reason TEXT", message, d.a.Spec.Machine.Name)
}
