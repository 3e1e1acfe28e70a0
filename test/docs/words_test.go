package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/iostreams"
)

// instead has what the table "Words" of CONTRIBUTING.md says, as far as a test can tell it without false alarms:
// what not to write, and what to write.
var instead = map[string]string{
	"tells whether": "reports whether", "lets go of": "releases", "fickle": "unreliable", "as it were": "for example",
	"hands back": "returns", "takes them out": "removes them", "comes about": "happens", "cut off": "interrupted",
	"somebody": "someone", "nobody": "no one", "anybody": "anyone", "everybody": "everyone", "anew": "again",
	"for ever": "forever", "for good": "permanently", "all the same": "anyway", "any more": "no longer",
	"hands? out": "allocates", "handed out": "allocated", "mends?": "repair", "mended": "repaired",
	"lacks?": "is missing, or doesn't have",
}

var insteadOf = func() map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for word := range instead {
		out[word] = regexp.MustCompile(`(?i)\b` + word + `\b`)
	}
	return out
}()

// wordsOfTheField reports each word of text that readers don't look for.
func wordsOfTheField(t *testing.T, where, text string) {
	t.Helper()
	for word, re := range insteadOf {
		assert.False(t, re.MatchString(text), "%s: write %q instead of %q: %s", where, instead[word], word, text)
	}
}

func TestTheDocumentsUseTheWordsOfTheField(t *testing.T) {
	for _, p := range everyPage(t) {
		if p.Name == "CONTRIBUTING.md" { // it has the table
			continue
		}
		for at, line := range strings.Split(p.Text, "\n") {
			wordsOfTheField(t, p.Name+":"+strconv.Itoa(at+1), line)
		}
	}
}

func TestTheHelpUsesTheWordsOfTheField(t *testing.T) {
	streams, _, _, _ := iostreams.Test()
	f := &cmdutil.Factory{IO: streams, Version: "test", Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler)}
	seen := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		seen++
		for _, text := range []string{c.Short, c.Long, c.Example} {
			wordsOfTheField(t, c.CommandPath(), text)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { wordsOfTheField(t, c.CommandPath()+" --"+f.Name, f.Usage) })
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cmd.NewCmdRoot(f))
	assert.Greater(t, seen, 60)
}

// Errors, remedies and what commands print are string literals of the packages.
func TestTheMessagesUseTheWordsOfTheField(t *testing.T) {
	for _, folder := range []string{"cmd", "pkg"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
					wordsOfTheField(t, files.Position(lit.Pos()).String(), lit.Value)
				}
				return true
			})
			return nil
		}))
	}
}
