// Package tui contains the parts for drawing on a terminal: colors, widths, tables, bars, spinners, frames.
// In: plain text, sizes and times. Out: lines that fit. The package doesn't depend on clusters, services or jobs, and does no I/O;
// pkg/ui/progress and pkg/status/view use it to draw.
package tui
