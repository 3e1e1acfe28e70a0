package v1

import (
	"slices"
	"strings"
)

// AnnotationNotify lists the changes of state that the owner of a job is notified of, separated by commas: the words of
// extras.jobStatusChangeNotification whose value is true. A job without the annotation follows the choices of its owner.
const AnnotationNotify = "paictl.openpai.org/notify"

// NotifyState is a change of a job's state, as OpenPAI names it.
type NotifyState string

// Changes of state.
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

// ReadNotify reads the annotation. Anyone may have written it, so it leaves out other words.
func ReadNotify(text string) (out []NotifyState) {
	for word := range strings.SplitSeq(text, ",") {
		if s := NotifyState(word); slices.Contains(NotifyStates(), s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// WriteNotify returns the value of the annotation.
func WriteNotify(states []NotifyState) string {
	words := make([]string, 0, len(states))
	for _, s := range states {
		words = append(words, string(s))
	}
	return strings.Join(words, ",")
}
