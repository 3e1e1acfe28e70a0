package main

import (
	"regexp"
	"strings"
)

var (
	htmlComment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	markdownLink = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	tableRule    = regexp.MustCompile(`^[|:\- ]+$`)
	heading      = regexp.MustCompile(`^#{1,6} `)
	fence        = regexp.MustCompile("^\\s*(?:>\\s*)?(```+|~~~+)")
)

// readMarkdown returns the paragraphs, list items, headings and table cells of a Markdown text, without code and comments.
func readMarkdown(name string, text []byte) ([]passage, error) {
	b := paragraphs{area: docs, indent: 4}
	var open string
	section := ""
	for i, line := range strings.Split(withoutComments(string(text)), "\n") {
		if m := fence.FindStringSubmatch(line); m != nil && (open == "" || strings.HasPrefix(m[1], open)) {
			b.stop()
			if open == "" {
				open = m[1]
			} else {
				open = ""
			}
			continue
		}
		if open != "" {
			continue
		}
		line = markdownLink.ReplaceAllString(strings.TrimPrefix(line, "> "), "$1")
		switch {
		case heading.MatchString(line):
			section = heading.ReplaceAllString(line, "")
			b.single(i+1, section)
		case strings.HasPrefix(line, "|"):
			if name != "CONTRIBUTING.md" || section != "Words" {
				b.row(i+1, line)
			}
		default:
			b.addLine(i+1, line)
		}
	}
	return b.stop(), nil
}

// withoutComments removes comments from a text, but keeps the line numbers.
func withoutComments(text string) string {
	return htmlComment.ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
}

// single adds a passage that consists of one line.
func (b *paragraphs) single(line int, text string) {
	b.stop()
	b.open = &passage{area: b.area}
	b.open.addLine(line, text)
	b.stop()
}

// row adds the cells of a table row as passages.
func (b *paragraphs) row(line int, text string) {
	b.stop()
	if tableRule.MatchString(text) {
		return
	}
	text = quotedCode.ReplaceAllString(text, "`…`")
	for _, cell := range strings.Split(strings.ReplaceAll(text, `\|`, "/"), "|") {
		if strings.TrimSpace(cell) != "" {
			b.single(line, cell)
		}
	}
}
