package v1

import (
	"encoding/json"
	"slices"
	"time"
)

// AnnotationRequeues of a Framework lists the attempts that pai-alert-handler has requested, as JSON. The patch that requests an
// attempt also adds it to the list, so that a handler which was killed finds its requests.
const AnnotationRequeues = "paictl.openpai.org/requeues"

// mostRequeues bounds the attempts that are kept: of policies, whose limit counts them, and of people.
const mostRequeues = 10

// +kubebuilder:object:generate=false

// Requeue is one attempt that pai-alert-handler has requested.
type Requeue struct {
	// Restart is the value of AnnotationRestart that requests it.
	Restart string `json:"restart"`
	// Action is the name of the Action, and Policy the name of its policy. Both are empty for a request of a person.
	Action string `json:"action"`
	Policy string `json:"policy,omitempty"`
	// Reason is one sentence that includes the requester.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// ReadRequeues reads the annotation, the oldest attempt first. It returns nil if it can't be read.
func ReadRequeues(annotations map[string]string) (out []Requeue) {
	if json.Unmarshal([]byte(annotations[AnnotationRequeues]), &out) != nil {
		return nil
	}
	return out
}

// WriteRequeues returns the annotation with one more attempt. It keeps the latest attempts that policies requested, and the
// latest attempts that people requested.
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

// FindRequeue returns the attempt that a value of AnnotationRestart requests, or nil.
func FindRequeue(all []Requeue, restart string) *Requeue {
	if i := slices.IndexFunc(all, func(r Requeue) bool { return r.Restart == restart }); i >= 0 {
		return &all[i]
	}
	return nil
}
