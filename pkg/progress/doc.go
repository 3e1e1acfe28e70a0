// Package progress shows a run of pkg/cluster to whoever watches.
// In: the run's event stream. Out: plain lines for logs, JSON lines for programs, or a
// live table for a person at a terminal; all three are cluster.Sink and tell the same story.
package progress
