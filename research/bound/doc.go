// Package bound computes the best figures that any scheduler could reach, so that a scheduler's figures can be judged.
//
// A guaranteed job waits inside its quota if enough GPUs are free but no node has enough free GPUs. Model is a single virtual cluster with random
// arrivals and ends. It is small enough for an exact computation of the best policy among all policies that don't move jobs. Ideal replays a trace
// for a scheduler that moves running jobs at any moment without a cost.
package bound
