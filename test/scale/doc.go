// Package scale runs the scheduler on a real API server with many simulated nodes.
// In: a bundle; PAICTL_SCALE_NODES, which is 1024 for the figures of docs/performance.md, and small otherwise. Out: gangs that are bound, even if
// kube-scheduler and pai-scheduler are killed during the test, and the speed of the scheduler.
package scale
