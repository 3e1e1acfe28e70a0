// Package cluster makes machines a Kubernetes cluster, changes it, and removes machines from it again: one file for each operation.
// In: a configuration, a bundle and a way to reach the hosts. Out: typed changes, and a stream of events that reports them.
// The package engine takes machines through phases; the package phases holds the phases.
package cluster
