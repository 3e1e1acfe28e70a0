package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const docsPage = "../../docs/config.md"

// The tables in docs/config.md contain the same texts as the comments of generated files and the schemas.
func TestTheDocumentedFieldsAndRulesAreCurrent(t *testing.T) {
	var fields strings.Builder
	fields.WriteString("## Fields\n\nA `*` stands for any name, `[]` for the entries of a list.\n")
	for _, name := range SchemaNames() {
		fmt.Fprintf(&fields, "\n### %s\n\n| field | meaning |\n|---|---|\n", name)
		docs := fieldDocs(name)
		for _, field := range sortedKeys(docs) {
			fmt.Fprintf(&fields, "| `%s` | %s |\n", field, docs[field])
		}
	}
	b, err := os.ReadFile(filepath.Join("testdata", "rules.txt"))
	require.NoError(t, err)
	groups := map[string][]string{"yaml": {"depth", "duplicate-key", "empty", "empty-entry", "encoding", "key", "merge", "number", "several-documents", "size", "syntax", "tag", "type", "unknown-key"}}
	for rule := range strings.FieldsSeq(string(b)) {
		group, name, _ := strings.Cut(rule, "/")
		groups[group] = append(groups[group], name)
	}
	var rules strings.Builder
	rules.WriteString("## Rules\n\n| group | rules |\n|---|---|\n")
	for _, group := range sortedKeys(groups) {
		fmt.Fprintf(&rules, "| `%s/` | %s |\n", group, strings.Join(groups[group], ", "))
	}
	page, err := os.ReadFile(docsPage)
	require.NoError(t, err)
	want := between(t, between(t, string(page), "fields", fields.String()), "rules", rules.String())
	if *update {
		require.NoError(t, os.WriteFile(docsPage, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(page), "run the test with -update")
}

func between(t *testing.T, page, mark, text string) string {
	t.Helper()
	begin := fmt.Sprintf("<!-- %s: made by \"go test ./pkg/config -update\" -->\n", mark)
	end := fmt.Sprintf("<!-- %s: end -->", mark)
	before, rest, ok := strings.Cut(page, begin)
	require.True(t, ok, mark)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, mark)
	return before + begin + "\n" + text + "\n" + end + after
}
