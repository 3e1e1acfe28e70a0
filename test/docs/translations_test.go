package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/docs/page"
)

var update = flag.Bool("update", false, "note that the translations have the present headings and commands of their originals")

// translations maps the Chinese pages to their English originals.
func translations(t *testing.T) map[*page.Page]page.Page {
	t.Helper()
	pages := everyPage(t)
	out := map[*page.Page]page.Page{}
	for _, p := range pages {
		if original, ok := strings.CutSuffix(p.Name, ".zh.md"); ok {
			out[&p] = named(t, pages, original+".md")
		}
	}
	require.GreaterOrEqual(t, len(out), 5, "the translations are found")
	return out
}

var (
	remark       = regexp.MustCompile(`(?m)(^|\s+)# .*$`)
	headingLevel = regexp.MustCompile(`(?m)^(#+) `)
	tableRow     = regexp.MustCompile(`(?m)^\|([^|]*)\|`)
	english      = regexp.MustCompile(`(?m)^<!-- english: (\w+) -->$`)
)

// skeleton returns the parts that a translation must share with its original: the levels of headings, the number of table rows, and the blocks of
// code without remarks.
func skeleton(p page.Page) (levels []string, rows int, blocks []string) {
	text := p.Text
	for _, b := range p.Blocks {
		text = strings.Replace(text, b.Text, "\n", 1)
		blocks = append(blocks, strings.TrimSpace(remark.ReplaceAllString(b.Text, "")))
	}
	for _, m := range headingLevel.FindAllStringSubmatch(text, -1) {
		levels = append(levels, m[1])
	}
	return levels, len(tableRow.FindAllString(text, -1)), blocks
}

// digest returns a hash of the headings, the commands, and the first columns of the tables of a page.
func digest(p page.Page) string {
	var b strings.Builder
	text := p.Text
	for _, block := range p.Blocks {
		text = strings.Replace(text, block.Text, "\n", 1)
		b.WriteString(block.Text)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:#+ .*|\|[^|]*\|)`).FindAllString(text, -1) {
		b.WriteString(m + "\n")
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}

func TestTranslationsHaveTheCommandsOfTheirOriginals(t *testing.T) {
	for p, original := range translations(t) {
		levels, rows, blocks := skeleton(*p)
		wantLevels, wantRows, wantBlocks := skeleton(original)
		assert.Equal(t, wantLevels, levels, "%s: the headings of %s", p.Name, original.Name)
		assert.Equal(t, wantRows, rows, "%s: the rows of the tables of %s", p.Name, original.Name)
		assert.Equal(t, wantBlocks, blocks, "%s: the commands of %s; only remarks may differ", p.Name, original.Name)
	}
}

// The levels of headings don't show whether the text of a heading has changed. So each translation contains a digest of the headings, commands and
// tables of the English page.
func TestTranslationsAreOfThePresentOriginals(t *testing.T) {
	for p, original := range translations(t) {
		want := digest(original)
		if *update {
			text := english.ReplaceAllString(p.Text, "<!-- english: "+want+" -->")
			require.NoError(t, os.WriteFile(filepath.Join(root, p.Name), []byte(text), 0o600))
			continue
		}
		m := english.FindStringSubmatch(p.Text)
		if assert.NotNil(t, m, "%s: add <!-- english: %s -->", p.Name, want) {
			assert.Equal(t, want, m[1], "headings, commands or tables of %s changed: translate the change in %s, then run go test ./test/docs -run Translations -update", original.Name, p.Name)
		}
	}
}

func TestTranslationsSayThatNoNativeSpeakerCheckedThem(t *testing.T) {
	for p, original := range translations(t) {
		assert.Contains(t, p.Text, "> 本页译自[英文版]("+filepath.Base(original.Name)+")，尚未由母语者审校。如有出入，以英文版为准。\n", p.Name)
		assert.False(t, slices.ContainsFunc(p.Links(), func(l page.Link) bool {
			target, _, _ := strings.Cut(l.Target, "#")
			_, err := os.Stat(filepath.Join(root, filepath.Dir(p.Name), strings.TrimSuffix(target, ".md")+".zh.md"))
			return strings.HasSuffix(target, ".md") && target != filepath.Base(original.Name) && err == nil
		}), "%s links an English page that has a translation", p.Name)
	}
}

func TestAChangedHeadingOrCommandChangesTheDigest(t *testing.T) {
	of := func(text string) string { return digest(page.Parse("p.md", text)) }
	before := of("# A\n\ntext\n\n    paictl x\n\n| `a` | b |\n")
	assert.Equal(t, before, of("# A\n\nother text\n\n    paictl x\n\n| `a` | c |\n"))
	for _, changed := range []string{"# B\n\n    paictl x\n\n| `a` | b |\n", "# A\n\n    paictl y\n\n| `a` | b |\n", "# A\n\n    paictl x\n\n| `b` | b |\n"} {
		assert.NotEqual(t, before, of(changed))
	}
}
