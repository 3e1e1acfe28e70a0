// Command concurrent reads packages from its standard input, a line "IMPORT-PATH FOLDER" each, and prints
// the import paths of those whose own code or tests do several things at once. "make test" runs these under
// the race detector: anywhere else it finds nothing and makes tests several times as slow.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// shared are imports, with a slash at the end all below them, of those who start goroutines, guard what
// goroutines share, or are called by a server's.
var shared = []string{"sync", "sync/atomic", "golang.org/x/sync/", "testing/synctest", "net/http/httptest"}

func main() {
	if err := choose(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "concurrent:", err)
		os.Exit(1)
	}
}

func choose(r io.Reader, w io.Writer) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		pkg, dir, found := strings.Cut(lines.Text(), " ")
		if !found {
			return fmt.Errorf("%q is no import path and folder", lines.Text())
		}
		yes, err := folder(dir)
		if err != nil {
			return err
		}
		if yes {
			fmt.Fprintln(w, pkg)
		}
	}
	return lines.Err()
}

// folder reports whether a Go file of a folder does several things at once.
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
		path, _ := strconv.Unquote(i.Path.Value) // the parser has seen to it
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
