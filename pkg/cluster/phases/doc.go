// Package phases implements the phases of "cluster up". Each phase makes one part of a machine match the configuration.
// In: the desired state and the current state of the machines. Out: scripts that detect and verify, changes, and scripts that make the changes.
//
// Some files don't implement a phase. list.go contains the order of the phases. rollout.go contains the waves in which a service restarts. check.go
// converts the cluster for preflight. initialise_restore.go contains the part of a restore that belongs to the phase init. kubeadm.go,
// certificates.go, podnet.go and proxy.go contain code that several phases use.
package phases
