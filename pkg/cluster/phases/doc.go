// Package phases holds the phases of "cluster up": each makes one part of a machine match the configuration.
// In: the desired state, and the answers of the machines. Out: scripts that detect and verify, changes, and scripts that make them.
package phases
