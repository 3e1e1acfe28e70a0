// Package peers encodes the addresses that the controller sends to all tasks of a job when each has one, and computes their
// ports. In: addresses. Out: the message, small enough for a thousand tasks at once.
package peers

// Peers is the content of the message. The controller publishes one message per attempt, with the addresses of all tasks.
type Peers struct {
	// Attempt is the number of the Framework's attempt. Tasks of other attempts ignore the message.
	Attempt int32
	Roles   []Role
}

// Role holds the addresses of a role's tasks. Each list has one entry per task, in the order of task indices.
type Role struct {
	Name   string // the name in the Framework
	PodIPs []string
	// HostIPs are the addresses of the tasks' machines.
	HostIPs []string
	// PodUIDs are set only on the host network, because they determine the ports there.
	PodUIDs []string
}
