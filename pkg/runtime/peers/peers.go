// Package peers encodes the addresses that the controller sends to all tasks of a job when each has one, and computes
// their ports. In: addresses. Out: the message, small enough that a thousand tasks may get it at once.
package peers

// Peers is the message. It is published once per attempt, so its cost is one message per task.
type Peers struct {
	// Attempt is the Framework attempt of the message. Tasks of other attempts ignore it.
	Attempt int32
	Roles   []Role
}

// Role holds one entry per task in each list, by index.
type Role struct {
	Name   string // in the Framework
	PodIPs []string
	// HostIPs are the addresses of the machines.
	HostIPs []string
	// PodUIDs are only set with the host network, where they determine the ports.
	PodUIDs []string
}
