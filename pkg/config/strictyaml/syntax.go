package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// searchBytes limits the size of files in which mistake searches for the exact position, because the search parses a file about 20 times.
const searchBytes = 8 << 20

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntaxError returns the position of a syntax error, the message of the parser, and a remedy.
func syntaxError(data []byte, err error) (line, column int, text, remedy string) {
	line, text = parserError(err)
	if len(data) <= searchBytes {
		line = mistake(data, err, line, text)
	}
	if at, column, c := oddSpace(data, line); at > 0 {
		return at, column, text, fmt.Sprintf("write a space in the place of this character, %U", c)
	}
	return line, column1(data, line), text, syntaxRemedy(text)
}

func parserError(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	line = 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	// The parser quotes the text after * and !, which may be a part of a password.
	if i := strings.IndexByte(text, '\''); i >= 0 && strings.Contains(text, "anchor") {
		text = "unknown anchor"
	}
	return line, text
}

// mistake returns the line of a syntax error. For some errors, the parser reports an earlier line, such as the first line of the surrounding block.
// mistake therefore searches for the shortest beginning of the file that results in the same error. The last line of this beginning contains the
// error.
func mistake(data []byte, err error, line int, text string) int {
	switch {
	case strings.Contains(text, "did not find expected ',' or"):
		// A bracket isn't closed. For this error, the parser counts lines from 0.
		if i := strings.IndexAny(lineOf(data, line+1), "[{"); i >= 0 {
			return line + 1
		}
		return line
	case !strings.Contains(text, "did not find expected") && !strings.Contains(text, "tab character"):
		return line
	}
	ends := lineEnds(data)
	first := sort.Search(len(ends), func(i int) bool {
		e := parseError(data[:ends[i]])
		return e != nil && e.Error() == err.Error()
	})
	if first == len(ends) {
		return line
	}
	if first > 0 {
		// An unclosed quote ends at the next quote, so the parser reports an error in the text after the next quote.
		if e := parseError(data[:ends[first-1]]); e != nil && strings.Contains(e.Error(), "unexpected end of stream") {
			line, _ = parserError(e)
			return line
		}
	}
	return first + 1
}

// parseError returns the parser's error about a text, or nil.
func parseError(data []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for range 2 { // a second document is an error
		var n yaml.Node
		if err := dec.Decode(&n); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
	return nil
}

// lineEnds returns the offsets at which the lines end: the length of the first line, of the first two lines, and so on.
func lineEnds(data []byte) []int {
	var out []int
	for i, c := range data {
		if c == '\n' {
			out = append(out, i+1)
		}
	}
	if n := len(data); n > 0 && data[n-1] != '\n' {
		out = append(out, n)
	}
	return out
}

// lineOf returns the line with the given number, counted from 1. It returns "" for a number beyond the end.
func lineOf(data []byte, line int) string {
	i := 1
	for l := range bytes.Lines(data) {
		if i == line {
			return string(l)
		}
		i++
	}
	return ""
}

// column1 returns the column of the first character in a line that isn't a space.
func column1(data []byte, line int) int {
	l := strings.TrimRight(lineOf(data, line), "\r\n")
	if indent := len(l) - len(strings.TrimLeft(l, " ")); indent < len(l) {
		return indent + 1
	}
	return 1
}

func syntaxRemedy(text string) string {
	switch {
	case strings.Contains(text, "directive"), strings.Contains(text, "YAML document"):
		return "remove the line that begins with %"
	case strings.Contains(text, "tab"), strings.Contains(text, "cannot start any token"):
		return "indent with spaces, never with tabs, and put values that begin with a special character such as @ or ` in quotes"
	case strings.Contains(text, "mapping values are not allowed"):
		return "check the indentation of the line, and put a value that contains a colon followed by a space in single quotes"
	case strings.Contains(text, "could not find expected ':'"):
		return "write the key, a colon, a space and the value"
	case strings.Contains(text, "unexpected end of stream"):
		return "close the quote that is opened on this line"
	case strings.Contains(text, "expected ',' or"):
		return "close the bracket that is opened on this line, and put a comma between its values"
	case strings.Contains(text, "unknown anchor"):
		return "put a value that begins with * in single quotes"
	case strings.Contains(text, "did not find expected"):
		return "check this line's quotes, and its indentation: the keys of one map, and the items of one list, begin in the same column"
	}
	return "put values with special characters in single quotes, and write a single quote inside them twice"
}
