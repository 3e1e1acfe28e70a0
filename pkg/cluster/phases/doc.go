// Package phases implements the phases of "cluster up". Each phase makes one part of a machine match the configuration.
// In: the desired state and the current state of the machines. Out: scripts that detect and verify, changes, and scripts that make the changes.
//
// Some files don't implement a phase. list.go contains the order of the phases, rollout.go the waves in which a service restarts, check.go the
// conversion of the cluster for preflight, and initialise_restore.go the part of a restore that belongs to the phase init. kubeadm.go,
// certificates.go, podnet.go and proxy.go contain texts that several phases use.
package phases
