// Package e2e runs paictl like its user, on sandbox hosts. Each host runs sshd, systemd, containerd and a kubelet.
// In: PAICTL_E2E=1, root on Linux, PAICTL_BUNDLE (a finished bundle). Out: no files remain.
package e2e
