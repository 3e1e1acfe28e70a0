// Package page reads the project's documents, for tests.
// In: Markdown. Out: its blocks of code with their places and marks, the commands in the blocks, its links and headings.
package page

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Page is a document.
type Page struct {
	Name   string // its path below the root of the repository
	Text   string
	Blocks []Block
}

// Block is a block of code, fenced or indented.
type Block struct {
	Page string
	Line int    // its first line of text, from 1
	Lang string // the text after the fence; "" for an indented block
	Text string
	// Marks holds the comments directly above the block. The comment "<!-- unchecked: REASON -->" is {"unchecked": "REASON"}.
	Marks map[string]string
}

// Place returns the position of a block, in the form that editors accept.
func (b Block) Place() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Read reads the documents of a repository whose paths match one of the patterns.
func Read(root string, patterns ...string) ([]Page, error) {
	var out []Page
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("no document is called %s", pattern)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			out = append(out, Parse(filepath.ToSlash(name), string(text)))
		}
	}
	return out, nil
}

var mark = regexp.MustCompile(`^<!-- ([a-z]+): (.+) -->$`)

// Parse returns a document with its blocks.
func Parse(name, text string) Page {
	p := Page{Name: name, Text: text}
	lines := strings.Split(text, "\n")
	marks := map[string]string{}
	blank := func(i int) bool { return i < 0 || strings.TrimSpace(lines[i]) == "" }
	for i := 0; i < len(lines); i++ {
		block := Block{Page: name, Line: i + 1, Marks: marks}
		var body []string
		switch line := lines[i]; {
		case strings.HasPrefix(line, "```"):
			block.Line++
			block.Lang = strings.TrimPrefix(line, "```")
			for i++; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
				body = append(body, lines[i])
			}
		case strings.HasPrefix(line, "    ") && blank(i-1):
			for ; i < len(lines) && (strings.HasPrefix(lines[i], "    ") || blank(i)); i++ {
				body = append(body, strings.TrimPrefix(lines[i], "    "))
			}
			i--
		case mark.MatchString(line):
			m := mark.FindStringSubmatch(line)
			marks[m[1]] = m[2]
			continue
		case blank(i):
			continue
		default:
			marks = map[string]string{}
			continue
		}
		marks = map[string]string{}
		block.Text = strings.TrimRight(strings.Join(body, "\n"), "\n") + "\n"
		p.Blocks = append(p.Blocks, block)
	}
	return p
}

// Step is a command in a "console" block, and its output according to the page.
type Step struct {
	Block   Block
	Line    int
	Command string   // of several lines where it has a document for its input
	Shows   []string // lines of its output; "…" in a line stands for any text
}

var heredoc = regexp.MustCompile(`<<-?\s*['"]?([A-Za-z_]+)['"]?`)

// Steps returns the commands in the "console" blocks of a page, in the order of the page. A line that begins with "$ " is a command. If the command
// has a here-document, the following lines belong to the command. Other lines are its output; the line "[…]" matches any number of output lines.
func (p Page) Steps() []Step {
	var out []Step
	for _, b := range p.Blocks {
		if b.Lang != "console" {
			continue
		}
		lines := strings.Split(strings.TrimRight(b.Text, "\n"), "\n")
		for i := 0; i < len(lines); i++ {
			command, ok := strings.CutPrefix(lines[i], "$ ")
			if !ok {
				if shown := strings.TrimSpace(lines[i]); shown != "" && shown != "[…]" && len(out) > 0 {
					out[len(out)-1].Shows = append(out[len(out)-1].Shows, strings.TrimRight(lines[i], " "))
				}
				continue
			}
			step := Step{Block: b, Line: b.Line + i}
			for strings.HasSuffix(command, `\`) && i+1 < len(lines) {
				i++
				command += "\n" + lines[i]
			}
			if m := heredoc.FindStringSubmatch(command); m != nil {
				for i++; i < len(lines); i++ {
					command += "\n" + lines[i]
					if strings.TrimSpace(lines[i]) == m[1] {
						break
					}
				}
			}
			step.Command = command
			out = append(out, step)
		}
	}
	return out
}

// Inputs returns the files that the commands of a block write from here-documents, "cat > NAME <<END", by name.
func (b Block) Inputs() map[string]string {
	out := map[string]string{}
	lines := strings.Split(b.Text, "\n")
	for i := 0; i < len(lines); i++ {
		m := heredoc.FindStringSubmatch(lines[i])
		target := into.FindStringSubmatch(lines[i])
		if m == nil || target == nil {
			continue
		}
		var body []string
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != m[1]; i++ {
			body = append(body, lines[i])
		}
		out[target[1]] = strings.Join(body, "\n") + "\n"
	}
	return out
}

var into = regexp.MustCompile(`>\s*([^\s<>]+)`)
