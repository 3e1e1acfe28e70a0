package main

import (
	"regexp"
	"strings"
)

var listItem = regexp.MustCompile(`^\s*([-*•]|\d+[.)])\s+`)

// paragraphs joins lines to passages. An empty line, a list item or indented code ends a passage.
type paragraphs struct {
	area   area
	indent int // number of spaces before code
	out    []passage
	open   *passage
	list   bool // the open paragraph is a list item
}

func (b *paragraphs) addLine(line int, text string) {
	item := listItem.FindString(text)
	indent := len(text) - len(strings.TrimLeft(text, " \t"))
	switch {
	case strings.TrimSpace(text) == "", strings.HasPrefix(text, "\t") && item == "", item == "" && !b.list && indent >= b.indent:
		b.stop()
		return
	case item != "":
		b.stop()
		b.list = true
	case b.list && indent < 2:
		b.stop()
	}
	if b.open == nil {
		b.open = &passage{area: b.area}
	}
	b.open.addLine(line, text[len(item):])
}

// stop ends the open passage, and returns all passages.
func (b *paragraphs) stop() []passage {
	if b.open != nil {
		b.out = append(b.out, *b.open)
	}
	b.open, b.list = nil, false
	return b.out
}

// split splits a literal with several lines into paragraphs.
func (p *passage) split() []passage {
	if !strings.Contains(p.text, "\n") {
		return []passage{*p}
	}
	b := paragraphs{area: p.area, indent: 2}
	offset := 0
	for text := range strings.Lines(p.text) {
		b.addLine(p.line(offset), strings.TrimRight(text, "\n"))
		offset += len(text)
	}
	return b.stop()
}
