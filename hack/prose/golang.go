package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var directive = regexp.MustCompile(`^//(go:|nolint|line |export |\+|[a-z]+:[a-z])`)

// readGo returns the comments of a Go file and, unless it is a test, its messages and help.
func readGo(name string, text []byte) ([]passage, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var out []passage
	for _, group := range file.Comments {
		out = append(out, readComment(files, group)...)
	}
	if !strings.HasSuffix(name, "_test.go") {
		l := literals{files: files}
		ast.Walk(&l, file)
		out = append(out, l.out...)
	}
	return out, nil
}

func readComment(files *token.FileSet, group *ast.CommentGroup) []passage {
	b := paragraphs{area: comments, indent: 2}
	for _, c := range group.List {
		line := files.Position(c.Pos()).Line
		switch {
		case directive.MatchString(c.Text):
			b.stop()
		case strings.HasPrefix(c.Text, "//"):
			b.addLine(line, c.Text[2:])
		default:
			for i, text := range strings.Split(c.Text[2:len(c.Text)-2], "\n") {
				b.addLine(line+i, strings.TrimPrefix(strings.TrimSpace(text), "*"))
			}
		}
	}
	return b.stop()
}
