// Package sim runs the scheduler's core without a cluster: step by step, from a file (Replay),
// or a trace of jobs in virtual time (Run).
//
// In: a configuration, and steps or jobs. Out: one answer per step, or a report on the quality and the speed of the
// core's placements. It is the same core as in a cluster. Steps have annotations, which Replay reads and writes as in a
// cluster. The jobs of a trace are passed to the core as requests, and only the core's time counts as the time of
// decisions.
package sim
