package rules

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Clean returns a program's output as valid UTF-8 text without control characters and escape sequences of terminals. Lines end
// only with a line feed. A carriage return also ends a line, so that a progress bar becomes many short lines instead of one
// line of several megabytes. Clean uses only the last MaxLog bytes.
func Clean(log []byte) string {
	if len(log) > MaxLog {
		log = log[len(log)-MaxLog:]
	}
	if plain(log) {
		return string(log)
	}
	var b strings.Builder
	b.Grow(len(log))
	for i := 0; i < len(log); {
		c := log[i]
		switch {
		case c == 0x1b:
			i += escapeLen(log[i:])
			continue
		case c == '\r':
			if i+1 >= len(log) || log[i+1] != '\n' {
				b.WriteByte('\n')
			}
		case c == '\n' || c == '\t' || c >= ' ' && c < 0x7f:
			b.WriteByte(c)
		case c < utf8.RuneSelf: // other control characters
		default:
			r, size := utf8.DecodeRune(log[i:])
			if r == utf8.RuneError && size == 1 {
				b.WriteByte('?')
			} else {
				b.Write(log[i : i+size])
			}
			i += size
			continue
		}
		i++
	}
	return b.String()
}

func plain(log []byte) bool {
	for _, c := range log {
		if c != '\n' && c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// escapeLen returns the length of the escape sequence at the start of b. It supports colors and cursor movements (ESC [ ...
// letter), and titles (ESC ] ... BEL) of at most 128 bytes. It treats all other sequences as two bytes.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	limit := min(len(b), 128)
	switch b[1] {
	case '[':
		for i := 2; i < limit; i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
	case ']':
		if i := bytes.IndexByte(b[:limit], 0x07); i > 0 {
			return i + 1
		}
	}
	return 2
}
