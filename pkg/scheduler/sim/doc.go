// Package sim runs the scheduler's core without a cluster: Replay runs the steps of a file, and Run runs a trace of jobs in
// virtual time.
//
// In: a configuration, and steps or jobs. Out: one answer per step, or a report on the quality and the speed of the core's
// placements. The core is the same as in a cluster. Steps contain annotations, which Replay reads and writes as in a cluster.
// Run passes the jobs of a trace to the core as requests, and counts only the core's time as the time of decisions.
package sim
