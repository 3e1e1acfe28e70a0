// Package trace is workloads for the simulator: jobs with arrival times, and a generator of them.
//
// In: a size and a seed, or a CSV file that an operator wrote. Out: jobs, and the cluster that they
// were made for. The generator is deterministic, so that two schedulers can be compared on the same
// work and a figure can be had again.
package trace
