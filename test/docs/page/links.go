package page

import (
	"regexp"
	"strings"
	"unicode"
)

// Link is a link in a page.
type Link struct {
	Line   int
	At     int    // the first byte of the target in the page's text
	Target string // in the form of the page
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	code    = regexp.MustCompile("`(?:[^`\n]|\n[^`\n])*`") // within a paragraph
)

// Links returns the links in the sentences of a page.
func (p Page) Links() []Link {
	var out []Link
	text := code.ReplaceAllStringFunc(prose(p.Text), func(s string) string { return strings.Join(blanks(strings.Split(s, "\n")), "\n") })
	for _, m := range link.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, Link{Line: 1 + strings.Count(text[:m[0]], "\n"), At: m[2], Target: p.Text[m[2]:m[3]]})
	}
	return out
}

// Anchors returns the names that GitHub gives to the headings of a page. In a link, such a name follows "#".
func (p Page) Anchors() []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(prose(p.Text), -1) {
		out = append(out, Anchor(m[1]))
	}
	return out
}

// Anchor returns the name that GitHub gives to a heading.
func Anchor(heading string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// Begins returns the first paragraph after the title of a page, or "" if no paragraph follows the title.
func (p Page) Begins() string {
	text := regexp.MustCompile(`(?s)<!--.*?-->\n?`).ReplaceAllString(p.Text, "")
	_, rest, ok := strings.Cut(text, "\n\n")
	if !ok || !strings.HasPrefix(text, "# ") {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimLeft(rest, "\n"), "\n\n")
	if strings.HasPrefix(first, "#") || strings.HasPrefix(first, "|") || strings.HasPrefix(first, "    ") || strings.HasPrefix(first, "```") {
		return ""
	}
	return strings.Join(strings.Fields(first), " ")
}
