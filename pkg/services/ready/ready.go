// Package ready tells whether the objects of a release work, and why not.
// In: the manifest of a release and the cluster. Out: a state with one problem per cause:
// what, why, and what to do.
package ready

import "time"

// Problem is one reason why a service isn't ready.
type Problem struct {
	// Object is "pod/prometheus-0", "deployment/grafana", "node/gpu-3".
	Object string `json:"object"`
	// Reason is one word, such as ImagePullBackOff, Unschedulable, CrashLoopBackOff, OOMKilled,
	// ProbeFailed, QuotaExceeded.
	Reason  string `json:"reason"`
	Message string `json:"message"` // one line
	Hint    string `json:"hint,omitempty"`
	// Log are the last lines of a container that crashed.
	Log []string `json:"log,omitempty"`
	// Final problems don't go away by waiting: a wait ends when one stays for a while.
	Final bool `json:"final,omitempty"`
}

// State is what the objects of a release look like.
type State struct {
	Ready bool `json:"ready"`
	// Pods are those that should run, ReadyPods those that are ready in the current revision.
	Pods      int       `json:"pods"`
	ReadyPods int       `json:"readyPods"`
	Problems  []Problem `json:"problems,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}
