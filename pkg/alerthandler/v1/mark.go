package v1

import (
	"encoding/json"
	"slices"
	"time"
)

// MarkAnnotation of a Node names the Action that cordoned it, a Mark as JSON.
const MarkAnnotation = "paictl.openpai.org/cordoned-by"

// +kubebuilder:object:generate=false

// Mark is the annotation of a Node that pai-alert-handler has cordoned.
type Mark struct {
	// Action is the name of the Action, By its requester.
	Action string    `json:"action"`
	By     Requester `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// Tainted is when the Node got the taint of the cordon; zero until then. If the Node's taint has another time, the Node has been uncordoned and
	// cordoned again.
	Tainted time.Time `json:"tainted,omitzero"`
	// Stays reports that policies have returned the machine to service too often, as the reason says. They don't return it again.
	Stays bool `json:"stays,omitempty"`
	// Also describes further Actions of policies for whose alerts the machine is cordoned. The last of them returns it.
	Also []Mark `json:"also,omitempty"`
}

// ReturnsAnnotation of a Node holds the times when policies returned the Node to service, as JSON. If a person returns the Node to service, the
// annotation is removed.
const ReturnsAnnotation = "paictl.openpai.org/returned"

// mostReturns bounds the times that are kept.
const mostReturns = 20

// ReadReturns reads the times when policies returned a Node to service; none if the annotation can't be read.
func ReadReturns(annotations map[string]string) (out []time.Time) {
	if json.Unmarshal([]byte(annotations[ReturnsAnnotation]), &out) != nil {
		return nil
	}
	return out
}

// WriteReturns returns the annotation with one more time.
func WriteReturns(before []time.Time, now time.Time) (string, error) {
	all := append(slices.Clone(before), now.UTC().Truncate(time.Second))
	text, err := json.Marshal(all[max(0, len(all)-mostReturns):])
	return string(text), err
}

// ReadMark reads the mark in the annotations of a Node; nil if it has no mark, or one that can't be read.
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

// Cordoned says who cordoned a machine, and why: "cordoned by root: a fan is loud". Either argument may be "".
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
