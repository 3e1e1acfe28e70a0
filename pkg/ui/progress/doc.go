// Package progress shows a run of pkg/cluster or of pkg/services to people and programs.
// In: the run's event stream. Out: plain lines for logs, JSON lines for programs, or a live table for a person at a terminal; all three render
// the same events.
//
// A board holds the current state of a run. hosts.go and services.go apply the events of the two kinds of runs to the board; the other files
// don't depend on the kind of the run.
package progress
