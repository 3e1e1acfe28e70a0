// Package tui is the kit for drawing on a terminal: colours, widths, tables, bars, spinners, frames.
// In: plain text, sizes and times. Out: lines that fit. It is independent of clusters, services and jobs, and does no I/O; pkg/ui/progress and
// pkg/status/view use it to draw.
package tui
