// Package progress shows a run of pkg/cluster or of pkg/services to whoever watches.
// In: the run's event stream. Out: plain lines for logs, JSON lines for programs, or a
// live table for a person at a terminal; all three tell the same story.
//
// What a run has become is a board, whatever its events are. hosts.go and services.go read the
// events of the two kinds of run into it; nothing else here knows them.
package progress
