// Package phases holds the phases of "cluster up": each makes one part of a machine match the configuration.
// In: the desired state and the machines' answers. Out: scripts that detect and verify, changes, and scripts that make the changes.
//
// Some files hold no phase: list.go has the order of the phases, rollout.go the waves in which a service restarts, check.go the cluster in the
// form for preflight, and initialise_restore.go the part of a restore that belongs to the phase init. kubeadm.go, certificates.go, podnet.go and
// proxy.go have texts that several phases use.
package phases
