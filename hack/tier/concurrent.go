package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// shared lists imports of code that starts goroutines, that guards data shared by goroutines, or that the goroutines of a server call. An import
// with a slash at the end includes all imports below it.
var shared = []string{"sync", "sync/atomic", "golang.org/x/sync/", "testing/synctest", "net/http/httptest"}

// concurrent reads lines of the form "IMPORT-PATH FOLDER". It returns the import paths of the packages whose code or tests use concurrency.
func concurrent(r io.Reader) (packages []string, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		pkg, dir, found := strings.Cut(lines.Text(), " ")
		if !found {
			return nil, fmt.Errorf("%q is not an import path and a folder", lines.Text())
		}
		yes, err := folder(dir)
		if err != nil {
			return nil, err
		}
		if yes {
			packages = append(packages, pkg)
		}
	}
	return packages, lines.Err()
}

// folder reports whether a Go file in a folder uses concurrency.
func folder(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false, err
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if file(f) {
			return true, nil
		}
	}
	return false, nil
}

func file(f *ast.File) (yes bool) {
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value) // the parser has ensured it
		yes = yes || slices.ContainsFunc(shared, func(s string) bool {
			return path == s || strings.HasSuffix(s, "/") && strings.HasPrefix(path, s)
		})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType:
			yes = true
		case *ast.CallExpr: // t.Parallel()
			s, ok := n.Fun.(*ast.SelectorExpr)
			yes = yes || ok && s.Sel.Name == "Parallel" && len(n.Args) == 0
		}
		return !yes
	})
	return yes
}
