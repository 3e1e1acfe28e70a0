// Package ready reports whether the objects of a release work, and the reasons if they don't. In: the manifest of a release and the cluster. Out: a
// state with one problem per cause: object, reason, and remedy.
package ready

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
)

// ReasonMissing is the reason of a problem if an object doesn't exist.
const ReasonMissing = "Missing"

// Problem is a reason why a service isn't ready.
type Problem struct {
	// Object is the object with the problem, such as "pod/prometheus-0", "deployment/grafana" or "node/gpu-3".
	Object string `json:"object"`
	// Reason is a single word, such as ImagePullBackOff, Unschedulable, CrashLoopBackOff, OOMKilled, ProbeFailed or QuotaExceeded.
	Reason string `json:"reason"`
	// Message is a single line. Message also explains Reason.
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Log contains the last log lines of a crashed container.
	Log []string `json:"log,omitempty"`
	// Final means that the problem doesn't resolve itself. A wait ends if a final problem persists.
	Final bool `json:"final,omitempty"`
}

// Text returns the object and the message on one line.
func (p *Problem) Text() string { return p.Object + ": " + p.Message }

// TextWithTerm returns Text followed by the reason, for users who search for the reason.
func (p *Problem) TextWithTerm() string { return p.Text() + " (" + p.Reason + ")" }

// State is the state of the objects of a release.
type State struct {
	Ready bool `json:"ready"`
	// Pods is the desired number of pods. ReadyPods is the number of ready pods of the current revision.
	Pods      int       `json:"pods"`
	ReadyPods int       `json:"readyPods"`
	Problems  []Problem `json:"problems,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// Checker reads the state of a cluster. Checker can be used concurrently. Waits in the same namespace share their watches.
type Checker struct {
	client kubernetes.Interface

	lock  sync.Mutex
	feeds map[string]*feed
}

// New returns a Checker. New sends no request.
func New(client kubernetes.Interface) *Checker {
	return &Checker{client: client, feeds: map[string]*feed{}}
}

// Check returns the current state of the objects of a manifest.
func (c *Checker) Check(ctx context.Context, namespace, manifest string) (State, error) {
	targets, err := Targets(namespace, manifest)
	if err != nil {
		return State{}, err
	}
	states, err := c.CheckAll(ctx, [][]Target{targets})
	if err != nil {
		return State{}, err
	}
	return states[0], nil
}

// CheckAll checks the objects of many releases. CheckAll lists each kind of object only once per namespace.
func (c *Checker) CheckAll(ctx context.Context, releases [][]Target) ([]State, error) {
	var all []target
	each := make([][]target, len(releases))
	for i, targets := range releases {
		for _, t := range targets {
			each[i] = append(each[i], target{kind: t.Kind, namespace: t.Namespace, name: t.Name, passing: t.Passing})
		}
		all = append(all, each[i]...)
	}
	s, err := take(ctx, c.client, all)
	if err != nil {
		return nil, err
	}
	out := make([]State, len(releases))
	var group sync.WaitGroup
	for i := range each {
		group.Go(func() { out[i], _ = stateOf(ctx, each[i], s, newReader(c.client)) })
	}
	group.Wait()
	return out, nil
}

// stateOf judges the targets. stateOf reads details about objects that may have a problem. stateOf returns the state and the causes of the problems.
func stateOf(ctx context.Context, targets []target, s *snapshot, d details) (State, []cause) {
	v := judge(targets, s)
	out := State{Ready: v.ready, Pods: v.pods, ReadyPods: v.readyPods, Since: v.since}
	causes := resolve(ctx, v.found, d)
	for _, c := range causes {
		out.Problems = append(out.Problems, c.Problem)
	}
	return out, causes
}

// Tail returns the last lines of a container's log, without control characters. previous selects the log before the container's last restart.
func (c *Checker) Tail(ctx context.Context, namespace, pod, container string, previous bool, lines int) ([]string, error) {
	return tail(ctx, c.client, namespace, pod, container, previous, lines)
}

// NotReadyError is the error of a failed wait. NotReadyError contains the state at the end of the wait.
type NotReadyError struct {
	State State
	// Waited is the duration of the wait after a timeout. Waited is 0 if a final problem ended the wait.
	Waited time.Duration
}

// Error returns the first problem, or the progress, on one line.
func (e *NotReadyError) Error() string {
	text := fmt.Sprintf("%d of %d pods are ready", e.State.ReadyPods, e.State.Pods)
	if len(e.State.Problems) > 0 {
		text = e.State.Problems[0].Text()
		if more := len(e.State.Problems) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
	}
	if e.Waited > 0 {
		return fmt.Sprintf("not ready after %s: %s", e.Waited, text)
	}
	return text
}
