package terminal

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"
)

// Limits of the lengths of sequences, in characters. A longer sequence is treated as ordinary text.
const (
	maxControl = 64
	maxString  = 4096
)

// Filter removes control sequences from text that is written to a terminal; colors can be kept. A sequence may be split over several writes. It
// is passed on only when it is complete.
type Filter struct {
	w       io.Writer
	colours bool

	state    state
	seq      []byte // the incomplete control sequence, after its introducer
	length   int    // length of a control string, so far
	part     []byte // the incomplete character
	out      bytes.Buffer
	coloured bool
}

type state int

// The states of the parser, as in ECMA-48.
const (
	ground  state = iota
	escape        // after ESC
	control       // after CSI: colours, the cursor, modes
	text          // after OSC, DCS and the like: titles, the clipboard
	ending        // after ESC in such a string
)

// Colours returns a filter that passes text, colors and carriage returns. Progress bars in logs use carriage returns.
func Colours(w io.Writer) *Filter { return &Filter{w: w, colours: true} }

// Plain returns a filter that passes only text and line ends.
func Plain(w io.Writer) *Filter { return &Filter{w: w} }

// Write implements io.Writer.
func (f *Filter) Write(p []byte) (int, error) {
	rest := p
	if len(f.part) > 0 {
		rest = slices.Concat(f.part, p)
	}
	f.out.Reset()
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, size := utf8.DecodeRune(rest)
		f.take(r)
		rest = rest[size:]
	}
	f.part = append([]byte(nil), rest...)
	if f.out.Len() > 0 {
		if _, err := f.w.Write(f.out.Bytes()); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Close turns colors off, because the next line on the screen belongs to another program. It doesn't close the writer.
func (f *Filter) Close() error {
	if !f.coloured {
		return nil
	}
	f.coloured = false
	_, err := io.WriteString(f.w, "\x1b[0m")
	return err
}

// take processes one character. If the character can't be part of the current sequence, the sequence ends, and the character counts as text.
func (f *Filter) take(r rune) {
	switch f.state {
	case escape:
		f.afterEscape(r)
	case control:
		f.inControl(r)
	case text:
		f.inString(r)
	case ending:
		if f.state = ground; r != '\\' {
			f.state = escape
			f.take(r)
		}
	default:
		f.onGround(r)
	}
}

func (f *Filter) onGround(r rune) {
	switch {
	case r == 0x1b:
		f.state = escape
	case r == 0x9b:
		f.begin(control)
	case r == 0x90, r == 0x98, r == 0x9d, r == 0x9e, r == 0x9f:
		f.begin(text)
	case r == '\n', r == '\t', r == '\r' && f.colours, !Hidden(r):
		f.out.WriteRune(r)
	}
}

func (f *Filter) begin(s state) { f.state, f.seq, f.length = s, f.seq[:0], 0 }

func (f *Filter) afterEscape(r rune) {
	switch {
	case r == '[':
		f.begin(control)
	case r == ']', r == 'P', r == 'X', r == '^', r == '_':
		f.begin(text)
	case r >= 0x20 && r <= 0x2f: // one more character of the same sequence
	case r >= 0x30 && r <= 0x7e:
		f.state = ground
	default:
		f.again(r)
	}
}

// again ends the current sequence, and processes a character that doesn't belong to it.
func (f *Filter) again(r rune) {
	f.state = ground
	f.take(r)
}

func (f *Filter) inControl(r rune) {
	switch {
	case r >= 0x20 && r <= 0x3f && len(f.seq) < maxControl:
		f.seq = append(f.seq, byte(r))
	case r == 'm' && f.colours && isColour(f.seq):
		f.state, f.coloured = ground, true
		f.out.WriteString("\x1b[")
		f.out.Write(f.seq)
		f.out.WriteByte('m')
	case r >= 0x40 && r <= 0x7e:
		f.state = ground
	default:
		f.again(r)
	}
}

// isColour reports whether a sequence sets colors and other graphics (SGR). It excludes xterm's own sequences, which begin with a mark such as
// ">".
func isColour(seq []byte) bool {
	for _, c := range seq {
		if (c < '0' || c > '9') && c != ';' && c != ':' {
			return false
		}
	}
	return true
}

func (f *Filter) inString(r rune) {
	f.length++
	switch {
	case r == 0x07, r == 0x9c:
		f.state = ground
	case r == 0x1b:
		f.state = ending
	case r == '\n', f.length > maxString:
		f.again(r)
	}
}
