package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// literals collects messages, which are string literals. Literals that are added to each other are joined.
type literals struct {
	files *token.FileSet
	out   []passage
}

func (l *literals) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return nil
	case *ast.Field:
		if n.Type != nil {
			ast.Walk(l, n.Type)
		}
		return nil
	case *ast.CallExpr:
		if s, ok := n.Fun.(*ast.SelectorExpr); ok && strings.Contains(s.Sel.Name, "Compile") {
			return nil
		}
	case *ast.BasicLit, *ast.BinaryExpr:
		return l.expression(n.(ast.Expr))
	}
	return l
}

// expression reads an expression as one text. The expression is a string literal, or a sum that contains a string literal.
func (l *literals) expression(e ast.Expr) ast.Visitor {
	if !hasText(e) {
		return l
	}
	p := passage{area: messages}
	l.join(&p, e)
	if strings.Contains(p.text, " ") && !isCode(p.text) {
		l.out = append(l.out, p.split()...)
	}
	return nil
}

func hasText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (hasText(e.X) || hasText(e.Y))
	}
	return false
}

// join appends the text of an expression to a passage. A value that isn't a literal becomes %s.
func (l *literals) join(p *passage, e ast.Expr) {
	lit, isLit := e.(*ast.BasicLit)
	sum, isSum := e.(*ast.BinaryExpr)
	switch {
	case !hasText(e):
		p.add(l.files.Position(e.Pos()).Line, "%s")
		ast.Walk(l, e)
	case isLit:
		l.add(p, lit)
	case isSum:
		l.join(p, sum.X)
		l.join(p, sum.Y)
	}
}

func (l *literals) add(p *passage, lit *ast.BasicLit) {
	value, err := strconv.Unquote(lit.Value)
	if err != nil {
		return
	}
	line := l.files.Position(lit.Pos()).Line
	raw := strings.HasPrefix(lit.Value, "`")
	for i, text := range strings.SplitAfter(value, "\n") {
		if raw {
			p.add(line+i, text)
		} else {
			p.add(line, text)
		}
	}
}

var code = regexp.MustCompile(`^#!|\bset -eu|&&|\|\||\$\(|\$\{|\]; then|<<|\(\?|\[\^|\\[dswb]|:=|^\s*[{<]|` +
	`^(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|PRAGMA|BEGIN|VACUUM|ATTACH)\b|\b(AND|FROM|WHERE) [a-z_.]+ `)

// isCode reports whether a literal is code instead of prose, such as a script, a query, a pattern or a template.
func isCode(text string) bool { return code.MatchString(text) }
