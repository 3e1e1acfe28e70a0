package logapi

import "time"

// Parameters of the two questions by position, at the path of a log:
//
//	?view=window&at=&before=&lines=&longest=&wait=   Window
//	?view=matches&match=&at=&limit=                  Matches
//
// A position is the offset of a line's first byte in the log, as the container runtime wrote it, since the container began. It
// stays the same when files are rotated, compressed or removed. at is a position, AtStart, AtEnd or a time in RFC 3339.
const (
	ViewWindow  = "window"
	ViewMatches = "matches"
	AtStart     = "start"
	AtEnd       = "end"
)

// These are the limits of a response by position.
const (
	WindowLines = 2000
	// WindowBytes limits the texts of all lines of a window, and the longest line.
	WindowBytes = 1 << 20
	// LineBytes is the default for longest, and ManyBytes its limit if more than one line is requested.
	LineBytes = 8 << 10
	ManyBytes = 64 << 10
	// WindowWait limits how long a request waits for lines.
	WindowWait = 20 * time.Second
	// MatchesLimit limits the number of matches in a response.
	MatchesLimit = 1000
)

// PlacedLine is a line with its position.
type PlacedLine struct {
	At int64 `json:"at"`
	Line
	// Bytes is the size of the line in this window, if that is more than Text has: Text is its beginning.
	Bytes int64 `json:"bytes,omitempty"`
	// Continued reports whether the line begins before the window: At is the position of the rest.
	Continued bool `json:"continued,omitempty"`
}

// Span is the range of a log that is kept.
type Span struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Gaps is the number of places with missing lines, and Limit is the number of bytes of a log that are kept.
	Gaps  int   `json:"gaps,omitempty"`
	Limit int64 `json:"limit"`
}

// Window is a part of a log: the lines that begin at From or later, and before To.
type Window struct {
	Span
	Lines []PlacedLine `json:"lines"`
	From  int64        `json:"from"`
	To    int64        `json:"to"`
}

// Match is a line that matches, or the part of a long line around the match.
type Match struct {
	At    int64  `json:"at"`
	Stamp string `json:"stamp,omitempty"`
	Text  []byte `json:"text"`
	// From and To are the first match in Text, in bytes.
	From int `json:"from"`
	To   int `json:"to"`
}

// Matches are the matching lines that begin at From or later, and before To. If To isn't the end of the log, the search
// continues there.
type Matches struct {
	Span
	Items []Match `json:"items"`
	From  int64   `json:"from"`
	To    int64   `json:"to"`
}
