package v1

import (
	"encoding/json"
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

// Cordoned says who cordoned a machine, and why: "cordoned by root: a fan is loud". Either may be "".
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
