package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printed matches a command line in a text of the program. The command line extends to the end of the text or of the sentence.
var printed = regexp.MustCompile(`paictl( [a-z][^;:,()"'|\n]*)(.?)`)

// literals calls each with every string literal in the program's source.
func literals(t *testing.T, each func(at token.Position, text string)) {
	t.Helper()
	files := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					each(files.Position(l.Pos()), text)
				}
			}
			return true
		})
		return nil
	}))
}

// mistake describes a wrong flag of a command line in a sentence, or returns "" if the flags are right. Other words of the sentence may follow the
// command.
func mistake(top *cobra.Command, line, end string) string {
	c, words := top, strings.Fields(line)
	for len(words) > 0 {
		var next *cobra.Command
		for _, sub := range c.Commands() {
			if sub.Name() == words[0] || sub.HasAlias(words[0]) {
				next = sub
			}
		}
		if next == nil {
			break
		}
		c, words = next, words[1:]
	}
	c.InitDefaultHelpFlag()
	for i, word := range words {
		name, value, assigned := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		name = strings.TrimRight(name, ".?")
		switch {
		case c == top, word == "--":
			return ""
		case !strings.HasPrefix(word, "--"):
			continue
		}
		f := c.Flag(name)
		if f == nil {
			return c.CommandPath() + " has no flag --" + name
		}
		if bare := i == len(words)-1 && !strings.HasSuffix(line, " ") && end != "" && end != `"`; bare && f.NoOptDefVal == "" && (!assigned || value == "") {
			return "--" + name + " needs a value"
		}
	}
	return ""
}

func TestEveryCommandThatTheProgramPrintsIsAccepted(t *testing.T) {
	top, seen := newRoot(), 0
	literals(t, func(at token.Position, text string) {
		for _, m := range printed.FindAllStringSubmatch(text, -1) {
			for _, line := range strings.Split(m[1], " paictl ") {
				seen++
				assert.Empty(t, mistake(top, line, m[2]), "%s: paictl%s", at, line)
			}
		}
	})
	assert.Greater(t, seen, 300, "the commands are found")
}

func TestAPrintedCommandThatDoesNotExistIsFound(t *testing.T) {
	top := newRoot()
	for _, text := range []string{"paictl node driver upgrade --limit ", "paictl config diff --from; --force overwrites it", "run paictl job list --no-such-flag x"} {
		m := printed.FindStringSubmatch(text)
		assert.NotEmpty(t, mistake(top, m[1], m[2]), text)
	}
	for _, text := range []string{"paictl deletes --nothing", "paictl job list --limit ", "paictl job run x -- --flag", "paictl cluster status | kubectl --x y", `"paictl job list --user" is refused`, "paictl config diff --from DIR; --force overwrites it"} {
		m := printed.FindStringSubmatch(text)
		assert.Empty(t, mistake(top, m[1], m[2]), text)
	}
}
