// Package trace contains workloads for the simulator: jobs with arrival times, and a generator of such jobs.
//
// In: a size and a seed, or a CSV file that an operator wrote. Out: jobs, and their cluster. The generator is deterministic, so two schedulers can be
// compared on the same work, and figures can be reproduced.
package trace
