package v1

import (
	"encoding/json"
	"slices"
	"time"
)

// MarkAnnotation is the annotation of a cordoned Node that holds a Mark as JSON.
const MarkAnnotation = "paictl.openpai.org/cordoned-by"

// +kubebuilder:object:generate=false

// Mark describes why pai-alert-handler has cordoned a Node.
type Mark struct {
	// Action is the name of the Action that cordoned the Node. By is the Action's requester.
	Action string    `json:"action"`
	By     Requester `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Tainted is the time of the taint that belongs to this cordon. It is zero until the taint exists. If the taint of the Node has a different time,
	// the Node was uncordoned and cordoned again.
	Tainted time.Time `json:"tainted,omitzero"`
	// Stays reports whether policies no longer return the machine to service, because they have done so too often. Reason explains the decision.
	Stays bool `json:"stays,omitempty"`
	// Also holds additional Actions of policies for whose alerts the machine is cordoned. The machine returns to service when no alert needs the
	// cordon.
	Also []Mark `json:"also,omitempty"`
}

// ReturnsAnnotation is the annotation of a Node that holds, as JSON, the times at which policies returned the Node to service. It is removed when a
// person returns the Node to service.
const ReturnsAnnotation = "paictl.openpai.org/returned"

const mostReturns = 20

// ReadReturns returns the times at which policies returned a Node to service. It returns nil if the annotation is missing or invalid.
func ReadReturns(annotations map[string]string) (out []time.Time) {
	if json.Unmarshal([]byte(annotations[ReturnsAnnotation]), &out) != nil {
		return nil
	}
	return out
}

// WriteReturns returns the value of the annotation with the time now added.
func WriteReturns(before []time.Time, now time.Time) (string, error) {
	all := append(slices.Clone(before), now.UTC().Truncate(time.Second))
	text, err := json.Marshal(all[max(0, len(all)-mostReturns):])
	return string(text), err
}

// ReadMark returns the mark in the annotations of a Node. It returns nil if the mark is missing or invalid.
func ReadMark(annotations map[string]string) *Mark {
	text := annotations[MarkAnnotation]
	if text == "" {
		return nil
	}
	m := &Mark{}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return nil
	}
	return m
}

// Cordoned returns a text such as "cordoned by root: a fan is loud". Either argument may be "".
func Cordoned(by, reason string) string {
	switch {
	case by == "" && reason == "":
		return ""
	case by == "":
		return "cordoned: " + reason
	case reason == "":
		return "cordoned by " + by
	}
	return "cordoned by " + by + ": " + reason
}
