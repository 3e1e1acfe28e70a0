// Package cluster makes machines a Kubernetes cluster, and takes them out of it again.
// In: a configuration, a bundle and a way to reach the hosts. Out: typed changes, applied
// phase by phase (Detect, Diff, Apply, Verify), and a stream of events that tells of them.
package cluster
