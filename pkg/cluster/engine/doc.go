// Package engine takes the machines of a cluster through phases.
// In: a configuration, a bundle and a way to reach the hosts. Out: the state of the machines, the plan of changes, and a run that applies and
// verifies these changes host by host and reports them as events.
package engine
