package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/test/docs/page"
)

const root = "../.."

// everyPage reads all documents that a reader of the repository may open.
func everyPage(t *testing.T) []page.Page {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, file)
		if d.IsDir() && (slices.Contains([]string{"bin", "dist", "testdata", "node_modules"}, d.Name()) || strings.HasPrefix(d.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	}))
	pages, err := page.Read(root, names...)
	require.NoError(t, err)
	require.Greater(t, len(pages), 40)
	return pages
}

// within returns the pages in a folder, without the pages in its subfolders.
func within(pages []page.Page, folder string) []page.Page {
	return slices.DeleteFunc(slices.Clone(pages), func(p page.Page) bool { return path.Dir(p.Name) != folder })
}

// leadsTo returns the set of files in the repository to which a page links.
func leadsTo(p page.Page) map[string]bool {
	out := map[string]bool{}
	for _, l := range p.Links() {
		target, _, _ := strings.Cut(l.Target, "#")
		out[path.Join(path.Dir(p.Name), target)] = true
	}
	return out
}

func TestTheFirstPageLeadsToEveryOther(t *testing.T) {
	pages := everyPage(t)
	for _, folder := range []string{"docs", "docs/tutorials", "docs/how-to", "docs/commands", "docs/adr"} {
		index := "docs/README.md"
		if folder == "docs/commands" || folder == "docs/adr" {
			assert.True(t, leadsTo(named(t, pages, index))[folder+"/README.md"], "%s doesn't link %s/README.md", index, folder)
			index = folder + "/README.md"
		}
		linked := leadsTo(named(t, pages, index))
		for _, p := range within(pages, folder) {
			assert.True(t, p.Name == index || linked[p.Name], "%s doesn't link %s: add a line that says what one can do with it", index, p.Name)
		}
	}
}

func named(t *testing.T, pages []page.Page, name string) page.Page {
	t.Helper()
	i := slices.IndexFunc(pages, func(p page.Page) bool { return p.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s is missing", name)
	return pages[i]
}

// The first sentence of a page must help readers to decide whether they need the page.
func TestEveryPageBeginsWithWhatItIsFor(t *testing.T) {
	pages := everyPage(t)
	for _, p := range slices.Concat(within(pages, "docs"), within(pages, "docs/tutorials"), within(pages, "docs/how-to"), within(pages, "docs/commands")) {
		begins, use := p.Begins(), "Use this "
		if strings.HasSuffix(p.Name, ".zh.md") {
			use = "本"
		}
		assert.True(t, strings.HasPrefix(begins, use), "%s: begin with a sentence that says what for: Use this page to …; it begins %.60q", p.Name, begins)
	}
}

// A how-to page solves one task, and fits on about one screen.
func TestHowToPagesAreShort(t *testing.T) {
	pages := within(everyPage(t), "docs/how-to")
	assert.Greater(t, len(pages), 10, "the pages are found")
	for _, p := range pages {
		assert.LessOrEqual(t, strings.Count(p.Text, "\n"), 60, "%s: move what isn't needed for the task to the reference", p.Name)
		for _, part := range []string{"You need ", "**Check", "**If it fails**", "Reference: "} {
			assert.Contains(t, strings.Join(strings.Fields(p.Text), " "), part, p.Name)
		}
	}
}

// Readers of a long page choose a section first.
func TestLongPagesBeginWithTheirContents(t *testing.T) {
	pages, seen := everyPage(t), 0
	for _, p := range slices.Concat(within(pages, "docs"), within(pages, "docs/tutorials"), []page.Page{named(t, pages, "CONTRIBUTING.md")}) {
		var want []string
		for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(p.Text, -1) {
			want = append(want, fmt.Sprintf("[%s](#%s)", m[1], page.Anchor(m[1])))
		}
		if strings.Count(p.Text, "\n") <= 200 || len(want) < 3 {
			continue
		}
		seen++
		begin := "\n\n**Contents:** "
		if strings.HasSuffix(p.Name, ".zh.md") {
			begin = "\n\n**目录：** "
		}
		_, contents, _ := strings.Cut(p.Text, begin)
		contents, _, _ = strings.Cut(contents, "\n\n")
		assert.Equal(t, strings.Join(want, " · "), strings.Join(strings.Fields(contents), " "), "%s: list the sections below the first paragraph, after **Contents:**", p.Name)
	}
	assert.Greater(t, seen, 8, "long pages are found")
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	pages := everyPage(t)
	for _, p := range pages {
		for _, l := range p.Links() {
			target, anchor, _ := strings.Cut(l.Target, "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := p.Name
			if target != "" {
				file = path.Join(path.Dir(p.Name), target)
			}
			_, err := os.Stat(filepath.Join(root, file))
			if !assert.NoError(t, err, "%s:%d", p.Name, l.Line) || anchor == "" || !strings.HasSuffix(file, ".md") {
				continue
			}
			at := named(t, pages, file)
			assert.True(t, slices.Contains(at.Anchors(), anchor) || strings.Contains(at.Text, fmt.Sprintf(`id="%s"`, anchor)), "%s:%d: %s has no heading %s", p.Name, l.Line, file, anchor)
		}
	}
}
