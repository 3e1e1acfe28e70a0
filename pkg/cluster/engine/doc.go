// Package engine runs phases on the machines of a cluster.
// In: a configuration, a bundle and a way to reach the hosts. Out: the state of the machines, the plan of changes, and a run. The run makes and
// verifies the changes on each host, and reports them as events.
package engine
