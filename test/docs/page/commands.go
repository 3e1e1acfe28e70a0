package page

import (
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Call is a command line that calls a program.
type Call struct {
	Line int
	Text string // in the form of the page
	Args []string
}

// Calls returns the command lines of a block that call a program, in any spelling of the program's path. It splits them like the shell, and includes
// the calls in pipes and lists. It treats "[--flag]" as a flag that is given, and ignores remarks, which follow two spaces.
func (b Block) Calls(program string) ([]Call, error) {
	var out []Call
	lines := strings.Split(b.Text, "\n")
	begins := regexp.MustCompile(`(^|[;&|] *|\$\(|sudo )((\./)?bin/)?` + regexp.QuoteMeta(program) + ` `)
	for i := 0; i < len(lines); i++ {
		at := i
		line := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(lines[i]), "$ "), "# ")
		if !begins.MatchString(line) || strings.HasPrefix(strings.TrimSpace(lines[i]), "# ") {
			continue
		}
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + strings.TrimSpace(lines[i])
		}
		calls, err := parse(withoutRemark(line), program)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", b.Page, b.Line+at, line, err)
		}
		for _, args := range calls {
			out = append(out, Call{Line: b.Line + at, Text: line, Args: args})
		}
	}
	return out, nil
}

// Inline returns the calls of a program between backquotes in the sentences of a page. It leaves out text that isn't a command after the program's
// name. Calls may be incomplete, such as `paictl node add`.
func (p Page) Inline(program string) []Call {
	var out []Call
	for _, m := range regexp.MustCompile("`"+program+`\s+([^`+"`"+`]+)`+"`").FindAllStringSubmatchIndex(prose(p.Text), -1) {
		text := strings.Join(strings.Fields(p.Text[m[2]:m[3]]), " ")
		calls, err := parse(program+" "+text, program)
		if err != nil || len(calls) == 0 {
			continue
		}
		out = append(out, Call{Line: 1 + strings.Count(p.Text[:m[0]], "\n"), Text: program + " " + text, Args: calls[0]})
	}
	return out
}

var fence = regexp.MustCompile("(?ms)^```.*?^```$")

// prose replaces the fenced blocks of a text with blanks.
func prose(text string) string {
	return fence.ReplaceAllStringFunc(text, func(s string) string {
		return strings.Join(blanks(strings.Split(s, "\n")), "\n")
	})
}

// blanks replaces all bytes of each line with blanks, so that positions stay the same.
func blanks(lines []string) []string {
	for i := range lines {
		lines[i] = strings.Repeat(" ", len(lines[i]))
	}
	return lines
}

// withoutRemark removes the text after two spaces, unless that text is a flag or an optional part.
func withoutRemark(line string) string {
	quote := rune(0)
	runes := []rune(line)
	for i, r := range runes {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == ' ' && i+2 < len(runes) && runes[i+1] == ' ' && !strings.ContainsRune(" [-", runes[i+2]):
			return string(runes[:i])
		}
	}
	return line
}

var optional = regexp.MustCompile(`\[([^\]]*)\]`)

func parse(line, program string) ([][]string, error) {
	line = optional.ReplaceAllString(line, "$1")
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, err
	}
	var out [][]string
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		var words []string
		for _, w := range call.Args {
			text, err := expand.Literal(nil, w)
			if err != nil { // of a program that would be run
				text = "VALUE"
			}
			words = append(words, text)
		}
		if words[0] == "sudo" {
			words = words[1:]
		}
		if len(words) > 0 && (words[0] == program || strings.HasSuffix(words[0], "bin/"+program)) {
			out = append(out, words[1:])
		}
		return true
	})
	return out, nil
}
