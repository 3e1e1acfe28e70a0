// Package cell implements the scheduler's allocation algorithm, which decides which GPUs a gang of pods gets.
//
// The input is a request (virtual cluster, priority, shape of the gang), and the output is a decision: bind, wait, preempt, or
// refuse. Physical hardware is a forest of cells. A virtual cluster owns virtual cells of the same types. A guaranteed gang is
// first placed in the virtual cells alone, and then mapped to physical cells. This ensures that a virtual cluster can't take
// the cells of another virtual cluster.
//
// The package is pure. It uses neither Kubernetes nor a clock nor random numbers, and its decisions don't depend on the order of
// maps. It is not safe for concurrent use, so its caller must hold a lock.
//
// The model comes from Zhao et al., HiveD: Sharing a GPU Cluster for Deep Learning with Guarantees, OSDI 2020.
package cell
