// Package bound computes how well any scheduler could do, so that a figure can be judged.
//
// A guaranteed job waits inside its quota if enough GPUs are free but no node has enough free GPUs. Model has one virtual cluster alone, with
// random arrivals and ends, small enough that the best of all policies that don't move jobs can be computed exactly. Ideal replays a trace for a
// scheduler that moves running jobs at any moment without a cost.
package bound
