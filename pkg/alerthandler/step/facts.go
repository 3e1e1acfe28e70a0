// Package step decides what happens next to an Action.
// In: an Action, facts about its target, its requester and the limits, and the time. Out: its next status, and the effect to have. It
// sends no requests, so that each step, and each crash between two steps, can be tested.
package step

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Facts are the facts about an Action that decide its next step.
type Facts struct {
	// Job is the target's Framework; nil if none has the name.
	Job *Job
	// Machine is the target's Node; nil if none has the name.
	Machine *Machine
	// Forbidden says why the requester may not ask for it now; nil if the requester may.
	Forbidden error
	// Limit says whether the limits of policies allow the operation now.
	Limit Limit
	// Stays says why policies don't return the machine to service, or don't requeue the job; "" if they may.
	Stays string
	// Hours are the hours when the Action may begin.
	Hours *Hours
	// Notice is the delivery of the notice before the end of a job; nil if none is sent.
	Notice *Notice
	// Jumped reports whether the machine's clock was set a short time ago: no Action begins, and none ends because its time has passed.
	Jumped bool
	// Unheard says since when Alertmanager hasn't repeated the alert that a policy acts on; "" if it has, or if there is no alert.
	Unheard string
	// Restarts reports whether the configuration allows restarts of machines. Restarting is another Action that restarts the machine, requeues the
	// job, or resets the GPU, or "".
	Restarts   bool
	Restarting string
	// Restarted is another Action that has restarted the machine, requeued the job, or reset the GPU since the alert began that a policy acts on, or "".
	Restarted string
	// Announced is the next Action of a policy that has announced another attempt of the same job; nil if no Action has. Withdrawn says why a person
	// has canceled an announced Action that this Action waited for, or is "".
	Announced *Announced
	Withdrawn string
	// Refused is the API server's response to the last try of the effect, if it rejected the effect, and RefusedSince is the time of the first
	// rejection.
	Refused      string
	RefusedSince time.Time
	// Spent says why policies don't restart the machine again; "" if they may.
	Spent string
	// DrainTimeout is how long a drain may take.
	DrainTimeout time.Duration
}

// Job is a Framework.
type Job struct {
	UID types.UID
	// Ended reports whether the job is done, Stopping whether its end was requested.
	Ended, Stopping bool
	// Requeued reports whether this Action has requested another attempt of the job.
	Requeued bool
	// Renewed reports whether the job's attempt began after the alert of the policy: the alert is about an earlier attempt.
	Renewed bool
	// Pending reports whether another attempt of the job was requested and hasn't begun: the tasks of the present one are being stopped.
	Pending bool
	// Finished reports whether the job's attempt has ended without a request for the next one: its tasks are being stopped, and another attempt follows
	// only if the job is retried. Retrying reports whether the next one waits for its time.
	Finished, Retrying bool
	// Missed reports whether the attempt had finished before the request of this Action.
	Missed bool
}

// Machine is a Node and its pods.
type Machine struct {
	UID types.UID
	// Version is the Node's resourceVersion: an effect applies only to the Node of that version.
	Version       string
	Unschedulable bool
	// Mark describes the Action that cordoned the Node; nil if it has no mark.
	Mark *v1.Mark
	// Returns are the times when policies returned the Node to service.
	Returns []time.Time
	// Sick says which GPUs the machine's agent finds broken; "" if none are.
	Sick string
	// Ready reports whether the kubelet is ready, and Boot is the boot ID that it reported last.
	Ready bool
	Boot  string
	// ControlPlane reports whether the machine belongs to the control plane, and Agent whether an agent has reported its GPUs.
	ControlPlane, Agent bool
	// Pods are the pods that a drain has to move.
	Pods []Pod
	// Reset is the answer that the machine's agent wrote to this Action; nil without an answer.
	Reset *Answer
	// Ordered reports whether the Node has this Action's order to restart the machine, and Restart is the agent's answer to the order, or nil.
	Ordered bool
	Restart *Answer
}

// Announced is an Action in its grace period, which ends at a time.
type Announced struct {
	Action string
	At     time.Time
}

// Pod is a pod that a drain has to move.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	// Managed reports whether a controller makes the pod again elsewhere.
	Managed bool
	// Leaving reports whether the pod is being deleted.
	Leaving bool
	// Refused is the API server's last response to the eviction of the pod, if it rejected the eviction.
	Refused string
}

// Notice is the delivery of a notice.
type Notice struct {
	// Unknown reports whether it isn't known yet, as after the start of the handler, and Waits whether no message could be sent yet.
	Unknown, Waits bool
	// Sent is when it was sent; zero if it wasn't.
	Sent time.Time
}

// Answer is the answer of an agent to a request.
type Answer struct {
	Done    bool
	Message string
}

// Limit is a decision about the limits of policies.
type Limit struct {
	// Refused says why the operation can't be done at all.
	Refused string
	// Wait says what to wait for, for After. Empty means that the operation may be done.
	Wait  string
	After time.Duration
}
