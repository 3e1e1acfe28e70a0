package main

import (
	"regexp"
	"strings"
)

// An area is a kind of text. The statistics contain a column for each area.
type area string

const (
	docs     area = "docs"
	comments area = "comments"
	messages area = "messages"
)

// A passage is a coherent text in one file, such as a paragraph, a table cell or a message.
type passage struct {
	area  area
	text  string
	marks []mark
	// documents is the kind of the Go declaration that the passage documents, or "".
	documents string
}

// A mark is the offset in a passage at which a line of the file begins.
type mark struct{ offset, line int }

// A sentence is one line of text. Quoted code is replaced, and reflowing the paragraph doesn't change the sentence.
type sentence struct {
	file string
	line int
	area area
	text string
	// documents is the kind of the declaration if the sentence is the first of its comment, and "" otherwise.
	documents string
}

// add appends the text of a line to the passage.
func (p *passage) add(line int, text string) {
	p.marks = append(p.marks, mark{len(p.text), line})
	p.text += text
}

// addLine appends a line of prose to the passage, after a space.
func (p *passage) addLine(line int, text string) {
	if p.text != "" {
		p.text += " "
	}
	p.add(line, strings.TrimSpace(text))
}

func (p *passage) line(offset int) int {
	line := 0
	for _, m := range p.marks {
		if m.offset > offset {
			break
		}
		line = m.line
	}
	return line
}

var (
	sentenceEnd   = regexp.MustCompile(`[.!?]+["')\]”*_]*(\s+|$)`)
	quotedCode    = regexp.MustCompile("````.*?````|```.*?```|``.*?``|`[^`]*`")
	abbreviations = regexp.MustCompile(`(^|[\s(])(e\.g|i\.e|etc|vs|cf|resp|approx|incl|\d+|[A-Z])\.$`)
)

// sentences returns the sentences of a passage in a file.
func (p *passage) sentences(file string) []sentence {
	var out []sentence
	start := 0
	for start < len(p.text) {
		end := endOfSentence(p.text, start)
		lead := len(p.text[start:end]) - len(strings.TrimLeft(p.text[start:end], " \t\n"))
		if text := normalise(p.text[start:end]); strings.Contains(text, " ") {
			next := sentence{file: file, line: p.line(start + lead), area: p.area, text: text}
			if start == 0 {
				next.documents = p.documents
			}
			out = append(out, next)
		}
		start = end
	}
	return out
}

// endOfSentence returns the offset after the sentence that begins at start. A period in code or after an abbreviation doesn't end a sentence.
func endOfSentence(text string, start int) int {
	for at := start; ; {
		m := sentenceEnd.FindStringIndex(text[at:])
		if m == nil {
			return len(text)
		}
		stop, end := at+m[0]+1, at+m[1]
		if strings.Count(text[start:stop], "`")%2 == 0 && !abbreviations.MatchString(text[start:stop]) {
			return end
		}
		at = end
	}
}

// normalise removes quoted code, emphasis and line breaks from a text.
func normalise(text string) string {
	text = quotedCode.ReplaceAllString(text, "`…`")
	text = strings.NewReplacer("**", "", "’", "'", "“", `"`, "”", `"`).Replace(text)
	return strings.Join(strings.Fields(text), " ")
}
