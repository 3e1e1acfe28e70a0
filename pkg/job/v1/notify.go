package v1

import (
	"slices"
	"strings"
)

// AnnotationNotify lists, separated by commas, the changes of state about which the job's owner is notified. These are the keys of
// extras.jobStatusChangeNotification whose value is true. For a job without the annotation, the settings of its owner apply.
const AnnotationNotify = "paictl.openpai.org/notify"

// NotifyState is a change of a job's state, with the name that OpenPAI uses.
type NotifyState string

// The changes of state about which owners can be notified.
const (
	NotifyRunning   NotifyState = "running"
	NotifySucceeded NotifyState = "succeeded"
	NotifyFailed    NotifyState = "failed"
	NotifyStopped   NotifyState = "stopped"
	NotifyRetried   NotifyState = "retried"
)

// NotifyStates returns all changes of state.
func NotifyStates() []NotifyState {
	return []NotifyState{NotifyRunning, NotifySucceeded, NotifyFailed, NotifyStopped, NotifyRetried}
}

// ReadNotify parses the annotation. It leaves out unknown words, because any user may have written the annotation.
func ReadNotify(text string) (out []NotifyState) {
	for word := range strings.SplitSeq(text, ",") {
		if s := NotifyState(word); slices.Contains(NotifyStates(), s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// WriteNotify returns the value of the annotation for states.
func WriteNotify(states []NotifyState) string {
	words := make([]string, 0, len(states))
	for _, s := range states {
		words = append(words, string(s))
	}
	return strings.Join(words, ",")
}
