package logapi

import "time"

// Parameters of the two requests by position, at the path of a log:
//
//	?view=window&at=&before=&lines=&longest=&wait=   Window
//	?view=matches&match=&at=&limit=                  Matches
//
// A position is the offset of a line's first byte in the complete log since the start of the container. The container runtime writes this log. A
// position stays the same when files are rotated, compressed or removed. at is a position, AtStart, AtEnd or a time in RFC 3339.
const (
	ViewWindow  = "window"
	ViewMatches = "matches"
	AtStart     = "start"
	AtEnd       = "end"
)

// These constants limit the response to a request by position.
const (
	WindowLines = 2000
	// WindowBytes limits the total size of the lines in a window, and the size of each line.
	WindowBytes = 1 << 20
	// LineBytes is the default of the parameter longest. ManyBytes is the maximum of longest for requests of several lines.
	LineBytes = 8 << 10
	ManyBytes = 64 << 10
	// WindowWait limits the time that a request waits for lines.
	WindowWait = 20 * time.Second
	// MatchesLimit limits the number of matches in a response.
	MatchesLimit = 1000
)

// PlacedLine is a line with its position in the log.
type PlacedLine struct {
	At int64 `json:"at"`
	Line
	// Bytes is the complete size of the line in this window. Bytes is set only if Text contains only the beginning of the line.
	Bytes int64 `json:"bytes,omitempty"`
	// Continued reports whether the line begins before the window. If Continued is true, At is the position of the remaining part of the line.
	Continued bool `json:"continued,omitempty"`
}

// Span is the stored range of a log.
type Span struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Gaps is the number of positions with missing lines. Limit is the maximum number of stored bytes of a log.
	Gaps  int   `json:"gaps,omitempty"`
	Limit int64 `json:"limit"`
}

// Window is a part of a log. Window contains the lines that begin at or after From and before To.
type Window struct {
	Span
	Lines []PlacedLine `json:"lines"`
	From  int64        `json:"from"`
	To    int64        `json:"to"`
}

// Match is a matching line, or the part of a long line around the match.
type Match struct {
	At    int64  `json:"at"`
	Stamp string `json:"stamp,omitempty"`
	Text  []byte `json:"text"`
	// From and To are the offsets of the first match in Text, in bytes.
	From int `json:"from"`
	To   int `json:"to"`
}

// Matches contains the matching lines that begin at or after From and before To. If To isn't the end of the log, the search can continue at To.
type Matches struct {
	Span
	Items []Match `json:"items"`
	From  int64   `json:"from"`
	To    int64   `json:"to"`
}
