// Package engine takes the machines of a cluster through phases.
// In: a configuration, a bundle and a way to reach the hosts. Out: the answers of the machines, the plan of changes, and a run that applies and
// verifies them host by host, with events that report it.
package engine
