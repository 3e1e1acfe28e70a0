package annotation

// The fast reader takes the part of YAML that the tools around the scheduler write: block maps and
// lists with one key or entry per line, plain and simply quoted scalars, and JSON or flow style on one
// line. It says "not mine" to everything else, and never gives another answer than the YAML library
// (FuzzFastReader). It is some fifty times as fast.

const (
	maxFastDepth = 24
	maxFastText  = 200 // of a key or scalar
)

// lines walks through a text line by line.
type lines struct {
	t    *tree
	text string
	// indent, from and to are the current line without indentation and trailing spaces; end is where
	// the next line begins.
	indent, from, to, end int
	eof                   bool
}

// readFast fills the tree from text, or returns false.
func (t *tree) readFast(text string) bool {
	t.source = text
	l := lines{t: t, text: text}
	if !l.advance() || l.eof || l.indent != 0 {
		return false
	}
	if c := text[l.from]; c == '{' || c == '[' {
		_, ok := l.scalarOrFlow(l.from)
		return ok && l.advance() && l.eof
	}
	_, ok := l.block(0, 0)
	return ok && l.eof
}

// advance goes to the next line that isn't blank. It returns false if the line holds what this reader
// doesn't take anywhere.
func (l *lines) advance() bool {
	s, i := l.text, l.end
	for {
		start := i
		for i < len(s) && s[i] == ' ' {
			i++
		}
		if i == len(s) {
			l.eof = true
			return true
		}
		if s[i] == '\n' {
			i++
			continue
		}
		l.indent, l.from = i-start, i
		last := i
		for ; i < len(s) && s[i] != '\n'; i++ {
			c := s[i]
			if c < ' ' || c > '~' || c == '#' {
				return false
			}
			if c != ' ' {
				last = i
			}
		}
		l.to, l.end = last+1, min(i+1, len(s))
		return true
	}
}

// block reads the map or list whose first entry is the current line, at the given column.
func (l *lines) block(indent, depth int) (int32, bool) {
	if depth > maxFastDepth {
		return 0, false
	}
	if l.text[l.from] == '-' {
		return l.list(indent, depth)
	}
	return l.mapping(indent, depth)
}

func (l *lines) list(indent, depth int) (int32, bool) {
	me, last := l.t.add(value{kind: kindList}), int32(0)
	for !l.eof && l.indent == indent {
		if l.text[l.from] != '-' {
			// A list may stand as deep as its key, and then the next key ends it.
			return me, depth > 0
		}
		i := l.from + 1
		for i < l.to && l.text[i] == ' ' {
			i++
		}
		if i == l.from+1 || i == l.to {
			return 0, false
		}
		var child int32
		var ok bool
		if keyEnd(l.text, i, l.to) > 0 {
			l.indent, l.from = l.indent+i-l.from, i
			child, ok = l.mapping(l.indent, depth+1)
		} else if child, ok = l.scalarOrFlow(i); ok {
			ok = l.advance()
		}
		if !ok {
			return 0, false
		}
		l.t.link(me, &last, child)
	}
	return me, l.eof || l.indent < indent
}

func (l *lines) mapping(indent, depth int) (int32, bool) {
	if depth > maxFastDepth {
		return 0, false
	}
	me, last := l.t.add(value{kind: kindMap}), int32(0)
	for !l.eof && l.indent == indent {
		colon := keyEnd(l.text, l.from, l.to)
		if colon == 0 {
			return 0, false
		}
		key := span{int32(l.from), int32(colon)}
		if l.t.has(me, key) {
			return 0, false
		}
		child, ok := l.valueOf(colon+1, indent, depth)
		if !ok {
			return 0, false
		}
		l.t.nodes[child].key = key
		l.t.link(me, &last, child)
	}
	return me, l.eof || l.indent < indent
}

// valueOf reads what follows a key: on the line from i, or on the next lines.
func (l *lines) valueOf(i, indent, depth int) (int32, bool) {
	for i < l.to && l.text[i] == ' ' {
		i++
	}
	if i < l.to {
		child, ok := l.scalarOrFlow(i)
		return child, ok && l.advance()
	}
	if !l.advance() {
		return 0, false
	}
	if !l.eof && (l.indent > indent || l.indent == indent && l.text[l.from] == '-' && l.from+1 < l.to && l.text[l.from+1] == ' ') {
		return l.block(l.indent, depth+1)
	}
	return l.t.add(value{kind: kindNull}), true
}

// has reports whether a map has a key.
func (t *tree) has(parent int32, key span) bool {
	text := t.part(key)
	for i := t.nodes[parent].first; i != 0; i = t.nodes[i].next {
		if t.key(i) == text {
			return true
		}
	}
	return false
}

// keyEnd returns the position of the colon of a plain key that begins at i, 0 if there is none.
func keyEnd(s string, i, to int) int {
	start := i
	for i < to && isWord(s[i]) {
		i++
	}
	if i == start || i == to || s[i] != ':' || i-start > maxFastText || !isLetter(s[start]) || i+1 < to && s[i+1] != ' ' || reserved(s[start:i]) {
		return 0
	}
	return i
}

// Classes of characters.
const (
	letter uint8 = 1 << iota
	digit
	word // what a plain scalar may have anywhere behind its first character
)

var classes = func() (c [256]uint8) {
	for b := range c {
		switch {
		case b|0x20 >= 'a' && b|0x20 <= 'z':
			c[b] = letter | word
		case b >= '0' && b <= '9':
			c[b] = digit | word
		case b == '-' || b == '_' || b == '.' || b == '/' || b == '~':
			c[b] = word
		}
	}
	return c
}()

func isLetter(c byte) bool { return classes[c]&letter != 0 }

func isDigit(c byte) bool { return classes[c]&digit != 0 }

func isWord(c byte) bool { return classes[c]&word != 0 }

// reserved are words that YAML, or some version of it, doesn't read as text.
func reserved(s string) bool {
	if len(s) > 5 {
		return false
	}
	var b [5]byte
	for i := range len(s) {
		b[i] = s[i] | 0x20
	}
	switch string(b[:len(s)]) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return true
	}
	return false
}

// scalarOrFlow reads the value that begins at i and fills the rest of the line.
func (l *lines) scalarOrFlow(i int) (int32, bool) {
	switch l.text[i] {
	case '{', '[':
		f := flow{t: l.t, text: l.text[:l.to], at: i}
		child, ok := f.value(0)
		return child, ok && f.at == l.to
	case '"', '\'':
		end := quotedEnd(l.text, i, l.to)
		if end != l.to {
			return 0, false
		}
		return l.t.add(value{kind: kindText, text: span{int32(i + 1), int32(end - 1)}}), true
	}
	k, ok := plain(l.text[i:l.to])
	if !ok {
		return 0, false
	}
	return l.t.add(value{kind: k, text: span{int32(i), int32(l.to)}}), true
}

// quotedEnd returns the position after the closing quote of the text that begins at i, 0 if the text
// has escapes.
func quotedEnd(s string, i, to int) int {
	quote := s[i]
	for j := i + 1; j < to && j-i < maxFastText; j++ {
		switch s[j] {
		case '\\':
			if quote == '"' {
				return 0
			}
		case quote:
			if j+1 < to && s[j+1] == quote {
				return 0
			}
			return j + 1
		}
	}
	return 0
}

// plain says what a plain scalar is; false if that isn't simple.
func plain(s string) (kind, bool) {
	if len(s) == 0 || len(s) > maxFastText {
		return 0, false
	}
	first := s[0]
	switch {
	case s == "~" || s == "null":
		return kindNull, true
	case s == "true" || s == "false":
		return kindBool, true
	case !isLetter(first) && !isDigit(first) && first != '/' && (first != '-' || len(s) == 1 || !isDigit(s[1])):
		return 0, false
	}
	digits := true
	for i := range len(s) {
		digits = digits && (isDigit(s[i]) || i == 0)
		if !isWord(s[i]) && s[i] != ' ' {
			return 0, false
		}
	}
	switch {
	case digits && isDigit(first) && len(s) < 10 && (first != '0' || len(s) == 1), digits && first == '-' && len(s) < 10 && s[1] != '0':
		return kindInt, true
	case isLetter(first) && !reserved(s):
		return kindText, true
	case reserved(s):
		return 0, false
	}
	return kindOther, true
}
