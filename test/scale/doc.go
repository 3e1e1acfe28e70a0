// Package scale runs the scheduler on a real API server with many simulated nodes.
// In: a bundle; PAICTL_SCALE_NODES, 1024 for the figures of docs/performance.md, few otherwise. Out:
// gangs bound, even if kube-scheduler and pai-scheduler are killed in the middle, and their speed.
package scale
