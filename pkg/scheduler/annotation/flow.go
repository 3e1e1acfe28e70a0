package annotation

// flow reads JSON and flow style on one line.
type flow struct {
	t    *tree
	text string
	at   int
}

func (f *flow) blanks() {
	for f.at < len(f.text) && f.text[f.at] == ' ' {
		f.at++
	}
}

// peek returns the next character behind blanks, 0 at the end.
func (f *flow) peek() byte {
	f.blanks()
	if f.at == len(f.text) {
		return 0
	}
	return f.text[f.at]
}

func (f *flow) value(depth int) (int32, bool) {
	if depth > maxFastDepth {
		return 0, false
	}
	switch f.peek() {
	case '{':
		return f.entries(depth, kindMap, '}')
	case '[':
		return f.entries(depth, kindList, ']')
	}
	text, k, ok := f.scalar()
	if !ok {
		return 0, false
	}
	return f.t.add(value{kind: k, text: text}), true
}

// scalar reads a scalar inside brackets.
func (f *flow) scalar() (span, kind, bool) {
	start := f.at
	if start == len(f.text) {
		return span{}, 0, false
	}
	if c := f.text[start]; c == '"' || c == '\'' {
		end := quotedEnd(f.text, start, len(f.text))
		if end == 0 {
			return span{}, 0, false
		}
		f.at = end
		return span{int32(start + 1), int32(end - 1)}, kindText, true
	}
	for f.at < len(f.text) && isWord(f.text[f.at]) {
		f.at++
	}
	k, ok := plain(f.text[start:f.at])
	return span{int32(start), int32(f.at)}, k, ok
}

// entries reads a map or a list, from its opening bracket to the closing one.
func (f *flow) entries(depth int, k kind, closing byte) (int32, bool) {
	me, last := f.t.add(value{kind: k}), int32(0)
	f.at++
	if f.peek() == closing {
		f.at++
		return me, true
	}
	for {
		var key span
		if k == kindMap {
			var ok bool
			if key, ok = f.key(); !ok || f.t.has(me, key) {
				return 0, false
			}
		}
		child, ok := f.value(depth + 1)
		if !ok {
			return 0, false
		}
		f.t.nodes[child].key = key
		f.t.link(me, &last, child)
		switch f.peek() {
		case ',':
			f.at++
		case closing:
			f.at++
			return me, true
		default:
			return 0, false
		}
	}
}

// key reads a key and its colon.
func (f *flow) key() (span, bool) {
	f.blanks()
	start := f.at
	key, k, ok := f.scalar()
	if !ok || k != kindText {
		return span{}, false
	}
	quoted := f.text[start] == '"'
	if f.at == len(f.text) || f.text[f.at] != ':' || f.text[start] == '\'' {
		return span{}, false
	}
	f.at++
	// Behind a plain key, the colon needs a blank.
	if !quoted && (f.at == len(f.text) || f.text[f.at] != ' ') {
		return span{}, false
	}
	return key, true
}
