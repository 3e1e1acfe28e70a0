package docs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openpai/paictl/pkg/cluster/phases"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl"
	"github.com/openpai/paictl/templates"
)

// firstColumn returns the names in the first column of a table. The table is in the page name, below the line that begins with head.
func firstColumn(t *testing.T, name, head string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n"+head)
	require.True(t, found, "%s has no line %s", name, head)
	table, _, _ = strings.Cut(table, "\n\n")
	var out []string
	for line := range strings.Lines(table) {
		if m := regexp.MustCompile("^\\| `?([a-z0-9-]+)`? \\|").FindStringSubmatch(line); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

func TestThePhasesOfTheDocumentsAreThoseOfClusterUp(t *testing.T) {
	assert.Equal(t, phases.Names(), firstColumn(t, "docs/cluster.md", "| phase | on |"))
}

func TestTheImagesOfTheDocumentsAreThoseOfTheProgramsInTheCluster(t *testing.T) {
	assert.ElementsMatch(t, paictl.Programs(), firstColumn(t, "docs/images.md", "| image | what it does |"))
}

func TestEveryServiceIsInTheDocuments(t *testing.T) {
	entries, err := fs.ReadDir(templates.Charts(), "charts")
	require.NoError(t, err)
	var all strings.Builder
	for _, p := range within(everyPage(t), "docs") {
		all.WriteString(p.Text)
	}
	for _, e := range entries {
		if e.IsDir() {
			assert.Contains(t, all.String(), "`"+e.Name()+"`")
		}
	}
}

// The notes of a release contain the entries unchanged.
func TestEveryEntryOfTheChangelogSaysWhatKindOfChangeItIs(t *testing.T) {
	kinds := map[string]bool{"Breaking": true, "Security": true, "Bugfix": true, "Enhancement": true}
	seen := 0
	for _, p := range everyPage(t) {
		if p.Name != "changelog/template.md" && (path.Dir(p.Name) == "changelog" || !strings.HasPrefix(p.Name, "changelog/")) {
			continue
		}
		seen++
		first, rest, _ := strings.Cut(p.Text, "\n\n")
		kind, what, _ := strings.Cut(first, ": ")
		assert.True(t, kinds[kind], "%s: begin with one of %v and a colon", p.Name, slices.Sorted(maps.Keys(kinds)))
		assert.NotEmpty(t, what, p.Name)
		assert.False(t, strings.Contains(first, "\n") || strings.HasSuffix(first, "."), "%s: the first line is one sentence without a full stop", p.Name)
		assert.NotEmpty(t, strings.TrimSpace(rest), "%s: say what was before and what is now", p.Name)
		for _, m := range regexp.MustCompile(`See (\S+\.md)`).FindAllStringSubmatch(p.Text, -1) {
			if m[1] != "docs/PAGE.md" {
				assert.FileExists(t, filepath.Join(root, m[1]), p.Name)
			}
		}
	}
	assert.Greater(t, seen, 1, "entries are found")
}

// A reader of the list must not treat a decision as valid if a later decision has replaced it.
func TestTheListOfDecisionsNamesTheSuperseded(t *testing.T) {
	pages, seen := everyPage(t), 0
	list := named(t, pages, "docs/adr/README.md").Text
	for _, p := range within(pages, "docs/adr") {
		row := regexp.MustCompile(`(?m)^.*\]\(` + regexp.QuoteMeta(path.Base(p.Name)) + `\) \| .*$`).FindString(list)
		m := regexp.MustCompile(`(?s)^# [^\n]+\n\n\*Status: superseded( in part)? by (.*?)\*\n`).FindStringSubmatch(p.Text)
		if m == nil {
			assert.NotContains(t, row, "superseded", p.Name)
			continue
		}
		seen++
		var by []string
		for _, s := range regexp.MustCompile(`\[(\d{4})\]`).FindAllStringSubmatch(m[2], -1) {
			by = append(by, s[1])
		}
		assert.Contains(t, row, fmt.Sprintf(" (superseded%s by %s) |", m[1], strings.Join(by, " and ")), p.Name)
		assert.Regexp(t, `2\d{3}-\d\d-\d\d`, m[2], "%s: give the date", p.Name)
	}
	assert.Greater(t, seen, 5, "they are found")
}
