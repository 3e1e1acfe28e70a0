package rules

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxMatch is the maximum size of a matched text, because a regex such as (?s)a.*b may match megabytes.
const maxMatch = 2048

// text is a log that many regexes search. Most regexes require a word that the log doesn't contain. Searching for a word takes
// a hundredth of the time of a regex.
type text struct {
	log, lower string
}

func newText(log []byte) *text {
	s := Clean(log)
	return &text{log: s, lower: asciiLower(s)}
}

// asciiLower converts ASCII letters to lower case. Unlike strings.ToLower, it keeps the positions of all characters.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// logRegex is a regex with required words. Every match contains at least one of the words. words is empty if no such words are
// known.
type logRegex struct {
	*regexp.Regexp
	words []string // ASCII, lower case
}

func newLogRegex(expr string) (*logRegex, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	out := &logRegex{Regexp: re}
	if tree, err := syntax.Parse(expr, syntax.Perl); err == nil {
		out.words = words(tree.Simplify())
	}
	return out, nil
}

// words returns a list of words. Every match of re contains at least one of these words. It returns nil if it finds no such
// list. If re ignores case, words doesn't consider that the Kelvin sign matches k and the long s matches s.
func words(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r >= 0x80 {
				return nil
			}
		}
		return []string{asciiLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return words(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return words(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if w := words(sub); better(w, best) {
				best = w
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			w := words(sub)
			if w == nil {
				return nil
			}
			all = append(all, w...)
		}
		return all
	}
	return nil
}

// better reports whether the shortest word of a is longer than the shortest word of b. Longer words occur less often by chance.
func better(a, b []string) bool {
	return a != nil && (b == nil || shortest(a) > shortest(b))
}

func shortest(words []string) int {
	n := len(words[0])
	for _, w := range words {
		n = min(n, len(w))
	}
	return n
}

func (re *logRegex) mayMatch(lower string) bool {
	for _, w := range re.words {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return re.words == nil
}

// find searches the last lines of the log. It returns the lines of the first match and their position, or -1 without a match.
// With errorLine, it skips lines that are marked as less severe than an error.
func (t *text) find(re *logRegex, lines int, errorLine bool) (string, int) {
	from := lastLines(t.log, lines)
	for from <= len(t.log) && re.mayMatch(t.lower[from:]) {
		at := re.FindStringIndex(t.log[from:])
		if at == nil {
			break
		}
		begin, end := t.lines(from+at[0], from+at[1])
		if line, _, _ := strings.Cut(t.log[begin:end], "\n"); !errorLine || !harmless(line) {
			return clip(t.log[begin:end], maxMatch), begin
		}
		from = end + 1
	}
	return "", -1
}

// lines extends a match to whole lines. It omits empty lines before the match, because a match of ^\s* may begin on an earlier
// line.
func (t *text) lines(begin, end int) (int, int) {
	for begin < end && (t.log[begin] == '\n' || t.log[begin] == ' ') {
		begin++
	}
	begin = strings.LastIndexByte(t.log[:begin], '\n') + 1
	if end > begin && t.log[end-1] == '\n' {
		return begin, end - 1
	}
	if next := strings.IndexByte(t.log[end:], '\n'); next >= 0 {
		return begin, end + next
	}
	return begin, len(t.log)
}

var mark = regexp.MustCompile(`(?i)\b(?:warn|warning|userwarning|deprecationwarning|futurewarning|info|debug|notice|trace)\b`)

// harmless reports whether the first 120 bytes of a line mark it as a warning or less. It returns false if they also mark the
// line as an error.
func harmless(line string) bool {
	line = line[:min(len(line), 120)]
	at := mark.FindStringIndex(line)
	if at == nil {
		// glog and TensorFlow formats: W0102 03:04:05, or 2026-01-02 03:04:05.678901: W tensorflow/
		return glog.MatchString(line)
	}
	return !strings.Contains(strings.ToLower(line[:at[0]]), "error")
}

var glog = regexp.MustCompile(`^[WI]\d{4} |^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*: [WI] `)

// lastLines returns the position at which the last n lines of s begin, or 0 if n is 0.
func lastLines(s string, n int) int {
	if n <= 0 {
		return 0
	}
	end := len(strings.TrimRight(s, "\n"))
	for range n {
		end = strings.LastIndexByte(s[:end], '\n')
		if end < 0 {
			return 0
		}
	}
	return end + 1
}

// clip shortens a text to at most n bytes without splitting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
