// Package phases holds the phases of "cluster up": each makes one part of a machine match the configuration.
// In: the desired state, and the answers of the machines. Out: scripts that detect and verify, changes, and scripts that make them.
//
// Files that hold no phase: list.go has their order, rollout.go the waves in which a service restarts, check.go the cluster in the form for preflight,
// initialise_restore.go the part of a restore in the phase init, and kubeadm.go, certificates.go, podnet.go and proxy.go have texts that phases share.
package phases
