package v1

import (
	"encoding/json"
	"slices"
	"time"
)

// AnnotationRequeues is, on a Framework, a JSON list of the attempts that pai-alert-handler has requested. The patch that requests an attempt
// also adds it to the list, so that a restarted handler finds the requests that it made before it was killed.
const AnnotationRequeues = "paictl.openpai.org/requeues"

// mostRequeues is the maximum number of attempts that the annotation keeps for policies, which have a limit that counts them, and separately for
// people.
const mostRequeues = 10

// +kubebuilder:object:generate=false

// Requeue is one attempt that pai-alert-handler has requested.
type Requeue struct {
	// Restart is the value of AnnotationRestart that requests the attempt.
	Restart string `json:"restart"`
	// Action is the name of the Action, and Policy the name of the Action's policy. Both are empty if a person requested the attempt.
	Action string `json:"action"`
	Policy string `json:"policy,omitempty"`
	// Reason is one sentence that names the requester.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// ReadRequeues parses the annotation. The list starts with the oldest attempt. ReadRequeues returns nil if the annotation is missing or invalid.
func ReadRequeues(annotations map[string]string) (out []Requeue) {
	if json.Unmarshal([]byte(annotations[AnnotationRequeues]), &out) != nil {
		return nil
	}
	return out
}

// WriteRequeues returns the value of the annotation with one more attempt. It keeps the latest attempts that policies requested, and the latest
// attempts that people requested.
func WriteRequeues(before []Requeue, next Requeue) (string, error) {
	all := append(slices.Clone(before), next)
	same := 0
	for _, r := range all {
		if (r.Policy == "") == (next.Policy == "") {
			same++
		}
	}
	all = slices.DeleteFunc(all, func(r Requeue) bool {
		excess := (r.Policy == "") == (next.Policy == "") && same > mostRequeues
		if excess {
			same--
		}
		return excess
	})
	text, err := json.Marshal(all)
	return string(text), err
}

// FindRequeue returns the attempt that was requested with a value of AnnotationRestart, or nil.
func FindRequeue(all []Requeue, restart string) *Requeue {
	if i := slices.IndexFunc(all, func(r Requeue) bool { return r.Restart == restart }); i >= 0 {
		return &all[i]
	}
	return nil
}
