// Package peers is what the controller tells all tasks of a job once each has an address, and which
// ports they have.
// In: addresses. Out: the message, small enough that a thousand tasks may get it at once.
package peers

// Peers is the message. It is published once per attempt, so its cost is one message per task.
type Peers struct {
	// Attempt is the Framework attempt that it belongs to; a task of another ignores it.
	Attempt int32
	Roles   []Role
}

// Role has one entry per task in each list, by index.
type Role struct {
	Name   string // in the Framework
	PodIPs []string
	// HostIPs are those of the machines.
	HostIPs []string
	// PodUIDs are only there with the host network: ports are drawn by them.
	PodUIDs []string
}
