package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

var directive = regexp.MustCompile(`^//(go:|nolint|line |export |\+|[a-z]+:[a-z])`)

// readGo returns the comments of a Go file. Unless the file is a test, it also returns the messages and help texts.
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
	documented := map[*ast.CommentGroup]string{}
	if !strings.HasSuffix(name, "_test.go") {
		documented = documentedBy(file)
	}
	for _, group := range file.Comments {
		found := readComment(files, group)
		if len(found) > 0 {
			found[0].documents = documented[group]
		}
		out = append(out, found...)
	}
	if !strings.HasSuffix(name, "_test.go") {
		l := literals{files: files}
		ast.Walk(&l, file)
		out = append(out, l.out...)
	}
	return out, nil
}

// documentedBy returns the comments that document declarations, with the kind of the declaration: func, type, var or const. It returns only comments
// that begin with the name of the declaration.
func documentedBy(file *ast.File) map[*ast.CommentGroup]string {
	out := map[*ast.CommentGroup]string{}
	add := func(doc *ast.CommentGroup, name *ast.Ident, kind token.Token) {
		if doc != nil && strings.HasPrefix(doc.Text(), name.Name+" ") {
			out[doc] = kind.String()
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Doc, d.Name, token.FUNC)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(cmp.Or(s.Doc, d.Doc), s.Name, d.Tok)
				case *ast.ValueSpec:
					add(cmp.Or(s.Doc, d.Doc), s.Names[0], d.Tok)
				}
			}
		}
	}
	return out
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
