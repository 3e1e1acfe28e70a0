// Package cluster turns machines into a Kubernetes cluster, changes it, and removes machines from it: one file for each operation.
// In: a configuration, a bundle and a dialer for the hosts. Out: typed changes, and a stream of events that reports them.
// The package engine takes machines through phases; the package phases has the phases.
package cluster
