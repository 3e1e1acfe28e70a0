package logapi

import "time"

// Parameters of the two requests by position, at the path of a log:
//
//	?view=window&at=&before=&lines=&longest=&wait=   Window
//	?view=matches&match=&at=&limit=                  Matches
//
// A position is the offset of a line's first byte in the log as the container runtime has written it since the start of the container. It stays the
// same when files are rotated, compressed or removed. at is a position, AtStart, AtEnd or a time in RFC 3339.
const (
	ViewWindow  = "window"
	ViewMatches = "matches"
	AtStart     = "start"
	AtEnd       = "end"
)

// Limits of a response to a request by position.
const (
	WindowLines = 2000
	// WindowBytes limits the total size of the lines in a window, and the size of each line.
	WindowBytes = 1 << 20
	// LineBytes is the default of the parameter longest. ManyBytes is the limit of longest if more than one line is requested.
	LineBytes = 8 << 10
	ManyBytes = 64 << 10
	// WindowWait limits how long a request waits for lines.
	WindowWait = 20 * time.Second
	// MatchesLimit limits the number of matches in a response.
	MatchesLimit = 1000
)

// PlacedLine is a line with its position in the log.
type PlacedLine struct {
	At int64 `json:"at"`
	Line
	// Bytes is the size of the line in this window, if Text contains only the beginning of the line.
	Bytes int64 `json:"bytes,omitempty"`
	// Continued reports whether the line begins before the window. Then At is the position of the rest of the line.
	Continued bool `json:"continued,omitempty"`
}

// Span is the kept range of a log.
type Span struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Gaps is the number of places at which lines are missing, and Limit is the number of bytes of a log that are kept.
	Gaps  int   `json:"gaps,omitempty"`
	Limit int64 `json:"limit"`
}

// Window is a part of a log. It contains the lines that begin at or after From, and before To.
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

// Matches contains the matching lines that begin at or after From, and before To. If To isn't the end of the log, the search can continue at To.
type Matches struct {
	Span
	Items []Match `json:"items"`
	From  int64   `json:"from"`
	To    int64   `json:"to"`
}
