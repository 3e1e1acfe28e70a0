package v1

import (
	"slices"
	"strings"
	"time"
)

// mostAlso limits the number of additional Actions in a mark.
const mostAlso = 64

// Holds reports whether the machine is cordoned for the alert of a policy's Action. The mark may contain another step or an earlier incident of the
// same alert.
func (m *Mark) Holds(action string) bool {
	return alertOf(m.Action) == alertOf(action) || slices.ContainsFunc(m.Also, func(o Mark) bool { return alertOf(o.Action) == alertOf(action) })
}

// Since returns the time of the cordon for the first alert. It is truncated to seconds, like the times in the status of Actions.
func (m *Mark) Since() time.Time {
	since := m.At
	for _, o := range m.Also {
		if o.At.Before(since) {
			since = o.At
		}
	}
	return since.Truncate(time.Second)
}

// Full reports whether the mark has reached its maximum number of Actions.
func (m *Mark) Full() bool { return len(m.Also) >= mostAlso }

// With returns the mark with another Action added.
func (m *Mark) With(other Mark) Mark {
	out := *m
	out.Also = append(slices.Clone(m.Also), other)
	return out
}

// KeptOut returns the mark of a machine that policies don't return to service, with the reason. The mark still contains all Actions for which the
// machine is cordoned.
func (m *Mark) KeptOut(reason string) Mark {
	out := *m
	out.Reason, out.Stays = reason, true
	return out
}

// Without returns the mark without the alert of an Action. It returns nil if no other alert needs the cordon.
func (m *Mark) Without(action string) *Mark {
	all := slices.DeleteFunc(append([]Mark{*m}, m.Also...), func(o Mark) bool { return alertOf(o.Action) == alertOf(action) })
	if len(all) == 0 {
		return nil
	}
	out := all[0]
	out.Tainted = m.Tainted
	out.Also = append([]Mark(nil), all[1:]...)
	return &out
}

// alertOf returns the part of an Action's name that is the same for all steps and incidents of an alert. The name of a policy's Action is
// POLICY-ALERT-INCIDENT-STEP.
func alertOf(action string) string {
	for range 2 {
		if at := strings.LastIndexByte(action, '-'); at > 0 {
			action = action[:at]
		}
	}
	return action
}
