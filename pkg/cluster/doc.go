// Package cluster turns machines into a Kubernetes cluster, changes it, and removes machines from it. Each operation has its own file.
// In: a configuration, a bundle and a dialer for the hosts. Out: typed changes, and a stream of events that reports them.
// Package engine takes machines through phases; package phases contains the phases.
package cluster
