package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// locate returns the positions of scalars in the text. yaml.v3 reports the beginning of a node, including its anchor and tag, but not its end. verify
// checks the result by parsing the text without these scalars.
func locate(text []byte, secrets []found) ([]span, error) {
	starts := lineStarts(text)
	var out []span
	for _, s := range secrets {
		start, err := offset(text, starts, s.node.Line, s.node.Column)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.field, err)
		}
		start = skipProperties(text, start)
		end := scalarEnd(text, start, s.node)
		if end <= start {
			return nil, fmt.Errorf("%s: its end is not found", s.field)
		}
		out = append(out, span{start, end, s.field})
	}
	return out, nil
}

// lineStarts returns the offsets at which lines begin. As in YAML 1.1, the characters NEL, LS and PS also end a line.
func lineStarts(text []byte) []int {
	out := []int{0}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		i += size
		if r == '\r' && i < len(text) && text[i] == '\n' {
			continue
		}
		if r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029 {
			out = append(out, i)
		}
	}
	return out
}

// offset converts a line and a column to an offset in bytes. The line and the column are counted from 1. The column is counted in characters.
func offset(text []byte, starts []int, line, column int) (int, error) {
	if line < 1 || line > len(starts) {
		return 0, errors.New("it is on no line")
	}
	at := starts[line-1]
	if line == 1 && bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		at += 3 // the parser doesn't count a byte order mark as a character
	}
	for range column - 1 {
		if at >= len(text) {
			return 0, errors.New("it is in no column")
		}
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at, nil
}

// skipProperties returns the offset of a value after its anchor and its tag.
func skipProperties(text []byte, at int) int {
	for at < len(text) && (text[at] == '&' || text[at] == '!') {
		for at < len(text) && !isSpace(text[at]) {
			at++
		}
		for at < len(text) && isSpace(text[at]) {
			at++
		}
	}
	return at
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// scalarEnd returns the offset after a scalar, or -1 if it can't determine the end.
func scalarEnd(text []byte, start int, n *yaml.Node) int {
	switch {
	case start >= len(text):
		return -1
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return quotedEnd(text, start, '"')
	case n.Style&yaml.SingleQuotedStyle != 0:
		return quotedEnd(text, start, '\'')
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return blockEnd(text, start)
	}
	return plainEnd(text, start, n.Value)
}

func quotedEnd(text []byte, start int, quote byte) int {
	if text[start] != quote {
		return -1
	}
	for i := start + 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// plainEnd compares the value of a plain scalar with the text. It returns the offset after the scalar, or -1. White space in the value matches any
// white space in the text, including line breaks.
func plainEnd(text []byte, start int, value string) int {
	at := start
	for i := 0; i < len(value); {
		if !isSpace(value[i]) {
			if at >= len(text) || text[at] != value[i] {
				return -1
			}
			at, i = at+1, i+1
			continue
		}
		before := at
		for at < len(text) && isSpace(text[at]) {
			at++
		}
		if at == before {
			return -1
		}
		for i < len(value) && isSpace(value[i]) {
			i++
		}
	}
	return at
}

// blockEnd returns the end of a block scalar, without the last line break. Blank lines at the end belong to the scalar only if the header contains
// "+".
func blockEnd(text []byte, start int) int {
	if text[start] != '|' && text[start] != '>' {
		return -1
	}
	header, _, _ := strings.Cut(string(text[start:lineEnd(text, start)]), "#")
	keep := strings.Contains(header, "+")
	indent, end := -1, -1
	for at := lineEnd(text, start) + 1; at < len(text); {
		stop := lineEnd(text, at)
		line := strings.TrimRight(string(text[at:stop]), "\r")
		spaces := len(line) - len(strings.TrimLeft(line, " "))
		blank := spaces == len(line)
		switch {
		case blank:
			if keep {
				end = stop
			}
		case indent < 0:
			indent, end = spaces, at+len(line)
		case spaces < indent:
			return end
		default:
			end = at + len(line)
		}
		at = stop + 1
	}
	return end
}

// lineEnd returns the offset of the first line break after at, or the length of the text.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}
