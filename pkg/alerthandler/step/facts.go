// Package step decides what happens next to an Action.
// In: an Action, facts about its target, its requester and the limits, and the time. Out: the next status, and the effect to carry out. The package
// sends no requests, so that tests can cover each step and each crash between two steps.
package step

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Facts holds the facts that determine the next step of an Action.
type Facts struct {
	// Job is the Framework with the target's name, or nil if it doesn't exist.
	Job *Job
	// Machine is the Node with the target's name, or nil if it doesn't exist.
	Machine *Machine
	// Forbidden is the reason why the requester may not request the Action now, or nil.
	Forbidden error
	// Limit is the decision about the limits of policies for this Action.
	Limit Limit
	// NoReturn is the reason why policies don't return the machine to service or don't requeue the job, or "".
	NoReturn string
	Hours    *Hours
	// Notice is the delivery of the notice that announces the end of a job, or nil if no such notice is sent.
	Notice *Notice
	// Jumped reports whether the machine's clock was set a short time ago. While Jumped is true, no Action begins, and no Action ends because of the
	// time.
	Jumped bool
	// Unheard is a message with the time since which Alertmanager hasn't repeated the alert of a policy's Action. It is "" if Alertmanager repeats
	// the alert, or if the Action has no alert.
	Unheard string
	// Restarts reports whether the configuration allows restarts of machines. Restarting is the name of another Action that is restarting the
	// machine, stopping or requeuing the job, or resetting the GPU, or "".
	Restarts   bool
	Restarting string
	// Restarted is the name of another Action that has restarted the machine, requeued the job or reset the GPU since the alert began, or "".
	Restarted string
	// Announced is the next Action of a policy that has announced another attempt or the end of the same job, or nil. Withdrawn is the reason if a
	// person has canceled an announced Action for which this Action waited, or "".
	Announced *Announced
	Withdrawn string
	// Refused is the API server's response if the API server rejected the last try of the effect. RefusedSince is the time of the first rejection.
	Refused      string
	RefusedSince time.Time
	// Spent is the reason why policies don't restart the machine again, or "".
	Spent string
	// DrainTimeout is the maximum duration of a drain.
	DrainTimeout time.Duration
}

// Job holds the facts about a job's Framework.
type Job struct {
	UID types.UID
	// Ended reports whether the job is finished. Stopping reports whether the end of the job was requested.
	Ended, Stopping bool
	Requeued        bool
	// Renewed reports whether the job's attempt began after the alert. The alert is then about an earlier attempt.
	Renewed bool
	// Pending reports whether another attempt of the job was requested and hasn't begun. The tasks of the current attempt are then being stopped.
	Pending bool
	// Finished reports whether the job's attempt has ended and no other attempt was requested. Its tasks are then being stopped, and another attempt
	// follows only if the job is retried. Retrying reports whether the retry waits for its start time.
	Finished, Retrying bool
	// Missed reports whether the attempt had already finished when this Action requested the next attempt.
	Missed bool
}

// Machine holds the facts about a Node and its pods.
type Machine struct {
	UID types.UID
	// Version is the Node's resourceVersion. An effect is applied only if the Node still has this version.
	Version       string
	Unschedulable bool
	// Mark is the mark of the Action that cordoned the Node, or nil.
	Mark *v1.Mark
	// Returns holds the times at which policies returned the Node to service.
	Returns []time.Time
	// BrokenGPUs describes the broken GPUs that the machine's agent reports, or is "".
	BrokenGPUs string
	// Ready reports whether the Node is Ready. Boot is the last boot ID that the kubelet reported.
	Ready bool
	Boot  string
	// ControlPlane reports whether the machine belongs to the control plane. Agent reports whether an agent has reported the machine's GPUs.
	ControlPlane, Agent bool
	Pods                []Pod
	// Reset is the answer of the machine's agent to this Action's request, or nil.
	Reset *Answer
	// Ordered reports whether the Node contains this Action's order to restart the machine. Restart is the agent's answer to that order, or nil.
	Ordered bool
	Restart *Answer
}

// Announced describes an Action in its grace period. At is the end of the grace period.
type Announced struct {
	Action string
	At     time.Time
}

// Pod is a pod that a drain must move.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	// Managed reports whether a controller creates the pod again on another machine.
	Managed bool
	Leaving bool
	// Refused is the API server's last response if the API server rejected the eviction of the pod.
	Refused string
}

// Notice describes the delivery of a notice.
type Notice struct {
	// Unknown reports whether the state of delivery isn't loaded yet, for example after a start of the handler. Waits reports whether no message with
	// the notice was sent yet.
	Unknown, Waits bool
	// Sent is the time at which the notice was sent, or zero.
	Sent time.Time
}

// Answer is an agent's answer to a request.
type Answer struct {
	Done    bool
	Message string
}

// Limit is the decision about the limits of policies for one Action.
type Limit struct {
	// Refused is the reason why the operation can't be carried out at all, or "".
	Refused string
	// Wait is the reason why the operation must wait, and After is the time until the next check. If Wait is empty, the operation may begin.
	Wait  string
	After time.Duration
}
