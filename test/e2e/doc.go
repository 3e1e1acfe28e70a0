// Package e2e runs paictl as its user does, on sandbox hosts with their own sshd, systemd,
// containerd and kubelet.
// In: PAICTL_E2E=1, root on Linux, PAICTL_BUNDLE (a finished bundle). Out: no files remain.
package e2e
