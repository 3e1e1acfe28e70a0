// Package trace has workloads for the simulator: jobs with arrival times, and a generator of them.
//
// In: a size and a seed, or a CSV file that an operator wrote. Out: jobs, and the cluster that they
// are for. The generator is deterministic, so that two schedulers can be compared on the same
// work and figures can be reproduced.
package trace
