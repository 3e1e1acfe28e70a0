// Package cluster makes machines a Kubernetes cluster, and removes machines from it again.
// In: a configuration, a bundle and a way to reach the hosts. Out: typed changes, applied
// phase by phase (Detect, Diff, Apply, Verify), and a stream of events that reports them.
package cluster
