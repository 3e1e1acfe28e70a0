// Package cluster creates Kubernetes clusters on machines, changes clusters, and removes machines from clusters. Each operation has its own file.
// In: a configuration, a bundle and a dialer for the hosts. Out: typed changes, and a stream of events that reports the changes.
// Package engine runs phases on machines, and package phases contains the phases.
package cluster
