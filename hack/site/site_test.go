package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree writes files to a new folder, and returns the folder as a version.
func tree(t *testing.T, files map[string]string) version {
	t.Helper()
	v := version{Name: unreleased, Ref: "main", root: t.TempDir(), made: "abc, 2026-11-30"}
	for name, text := range files {
		require.NoError(t, put(filepath.Join(v.root, filepath.FromSlash(name)), []byte(text)))
	}
	return v
}

// small returns the files of a repository with the pages that the site needs.
func small() map[string]string {
	return map[string]string{
		"README.md":             "# paictl\n\nSee [the pages](docs/README.md), [one](docs/one.md#b) and [中文](README.zh.md).\n",
		"README.zh.md":          "# paictl\n\n见[文档](docs/README.md)。\n",
		"docs/README.md":        "# Documentation\n\n## Newcomers\n\n| page |\n|---|\n| [One](one.md) |\n| [One](one.md#b), [fix](how-to/fix.md) |\n\n## Contributors\n\n[Decisions](adr/README.md)\n",
		"docs/one.md":           "# *One* `x`\n\n**Contents:** [A](#a) ·\n[B](#b)\n\n## A\n\nGo [there](how-to/fix.md), to [a file](../LICENSE) or [a folder](../examples).\n\n## B\n\n<!-- unchecked: it is a test -->\n\n```\n<!-- kept -->\n```\n",
		"docs/how-to/fix.md":    "# Fix it\n\n[back](../one.md)\n",
		"docs/adr/README.md":    "# Decisions\n\n[1](0001-a.md)\n",
		"docs/adr/0001-a.md":    "# 0001 A\n",
		"LICENSE":               "MIT\n",
		"examples/quick.yaml":   "a: 1\n",
		"docs/unlinked/page.md": "# Nobody links this\n",
	}
}

func documents(t *testing.T, files map[string]string) map[string]*doc {
	t.Helper()
	docs, err := read(tree(t, files))
	require.NoError(t, err)
	out := map[string]*doc{}
	for _, d := range docs {
		out[d.Name] = d
	}
	return out
}

func TestPagesThatLinksLeadToAreRead(t *testing.T) {
	docs := documents(t, small())
	assert.Len(t, docs, 7)
	assert.NotContains(t, docs, "docs/unlinked/page.md")
	assert.Equal(t, "index.html", docs["README.md"].Out())
	assert.Equal(t, "index.zh.html", docs["README.zh.md"].Out())
	assert.Equal(t, "docs/adr/index.html", docs["docs/adr/README.md"].Out())
	assert.Equal(t, "README.zh.md", docs["README.md"].Other)
	assert.Equal(t, "README.md", docs["README.zh.md"].Other)
	assert.Empty(t, docs["docs/one.md"].Other)
}

func TestLinksLeadToPagesOfTheSite(t *testing.T) {
	one := documents(t, small())["docs/one.md"]
	assert.Equal(t, "One x", one.Title)
	assert.Contains(t, one.Text, "[there](how-to/fix.html)")
	assert.Contains(t, one.Text, "[a file](../LICENSE.txt)")
	assert.Equal(t, []string{"LICENSE"}, one.Files)
	assert.Contains(t, one.Text, "[a folder](https://github.com/openpai/paictl/tree/main/examples)")
	assert.Contains(t, one.Links, docLink{File: "docs/one.md", Line: 8, Href: "how-to/fix.html"})
	assert.Contains(t, documents(t, small())["README.md"].Text, "(docs/one.html#b)")
}

func TestNotesForTheTestsAreLeftOut(t *testing.T) {
	content := string(documents(t, small())["docs/one.md"].content(nil))
	assert.NotContains(t, content, "Contents:")
	assert.NotContains(t, content, "it is a test")
	assert.Contains(t, content, "<!-- kept -->")
	assert.Contains(t, content, `"url":"/docs/one.html"`)
	assert.Contains(t, content, `"address":"https://github.com/openpai/paictl/blob/main/docs/one.md"`)
}

func TestTheLinesOfAChineseSentenceAreJoined(t *testing.T) {
	require.Equal(t, "一台机器，也可以是三台。\nOne\nline\n", withoutNotes("一台机器，\n也可以是三台。\nOne\nline\n"))
	require.Equal(t, "```\n# 中文\n中文\n```\n", withoutNotes("```\n# 中文\n中文\n```\n"))
}

func TestTheNavigationHasTheSectionsOfTheFirstPage(t *testing.T) {
	docs, err := read(tree(t, small()))
	require.NoError(t, err)
	nav := navigation(docs)
	require.Len(t, nav, 2)
	assert.Equal(t, "Newcomers", nav[0].Title)
	assert.Equal(t, "新手", nav[0].Chinese)
	assert.Equal(t, []navPage{{Title: "One x", URL: "/docs/one.html"}}, nav[0].Pages)
	assert.Equal(t, []navPage{{Title: "Fix it", URL: "/docs/how-to/fix.html"}}, nav[0].Groups[0].Pages)
	decisions := nav[1].Groups[0]
	assert.Equal(t, "/docs/adr/index.html", decisions.Index.URL)
	assert.Equal(t, []navPage{{Title: "0001 A", URL: "/docs/adr/0001-a.html"}}, decisions.Pages)
}

func TestChangesAreOnePageForEachRelease(t *testing.T) {
	files := small()
	files["changelog/0.2.0_2026-12-01/a.md"] = "Bugfix: Sorted\n\nIt was not.\n\nSee docs/one.md.\n"
	files["changelog/0.2.0_2026-12-01/b.md"] = "Breaking: Gone\n\nUse another.\n"
	files["changelog/unreleased/c.md"] = "Security: Closed\n\nIt was open.\n"
	docs := documents(t, files)
	d := docs["changelog/0.2.0_2026-12-01"]
	require.NotNil(t, d)
	assert.Equal(t, "changelog/0.2.0_2026-12-01/index.html", d.Out())
	assert.Equal(t, "# Changes in 0.2.0\n\nReleased on 2026-12-01.\n\n## Breaking changes\n\n### Gone\n\nUse another.\n\n"+
		"## Corrected errors\n\n### Sorted\n\nIt was not.\n\nSee [docs/one.md](../../docs/one.html).\n\n", d.Text)
	assert.Equal(t, "changelog/0.2.0_2026-12-01/a.md", d.Links[0].File)
	assert.Contains(t, docs["changelog/unreleased"].Text, "### Closed")

	files["changelog/unreleased/d.md"] = "Something\n"
	_, err := read(tree(t, files))
	require.ErrorContains(t, err, "changelog/unreleased/d.md: begin the first line with its kind")
}

func TestReleasesAreReadFromTags(t *testing.T) {
	v := tree(t, small())
	git := func(args ...string) {
		t.Helper()
		_, err := command(t.Context(), v.root, io.Discard, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		require.NoError(t, err)
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	list := func() []version {
		t.Helper()
		out, err := versions(t.Context(), v.root, t.TempDir(), os.Stderr)
		require.NoError(t, err)
		return out
	}
	assert.Len(t, list(), 1)
	git("tag", "v0.9.0")
	require.NoError(t, os.WriteFile(filepath.Join(v.root, "LICENSE"), []byte("other\n"), 0o600))
	git("commit", "-q", "-a", "-m", "second")
	for _, tag := range []string{"v0.10.0", "v0.10.0-rc.1", "vision"} {
		git("tag", tag)
	}
	var names []string
	for _, v := range list() {
		names = append(names, v.Name)
	}
	assert.Equal(t, []string{unreleased, "v0.10.0", "v0.10.0-rc.1", "v0.9.0"}, names)
	oldest := list()[3]
	text, err := os.ReadFile(filepath.Join(oldest.root, "LICENSE"))
	require.NoError(t, err)
	assert.Equal(t, "MIT\n", string(text))
	docs, err := read(oldest)
	require.NoError(t, err)
	assert.Contains(t, string(docs[0].content(nil)), "/blob/v0.9.0/README.md")
}

func TestAPageLinksItselfInOtherVersions(t *testing.T) {
	files := small()
	now := tree(t, files)
	delete(files, "docs/how-to/fix.md")
	files["docs/one.md"] = "# One\n"
	files["docs/README.md"] = "# Documentation\n"
	before := tree(t, files)
	before.Name, before.Folder = "v0.1.0", "v0.1.0"
	s := site{versions: []version{now, before}}
	var docs [][]*doc
	for _, v := range s.versions {
		d, err := read(v)
		require.NoError(t, err)
		docs = append(docs, d)
	}
	page := func(at int, name string) []versionLink {
		for _, d := range docs[at] {
			if d.Name == name {
				return s.others(at, d, docs)
			}
		}
		t.Fatalf("%s is missing", name)
		return nil
	}
	assert.Equal(t, []versionLink{{unreleased, "one.html", true}, {"v0.1.0", "../v0.1.0/docs/one.html", false}}, page(0, "docs/one.md"))
	assert.Equal(t, "../../v0.1.0/index.html", page(0, "docs/how-to/fix.md")[1].Href)
	assert.Equal(t, "../../docs/one.html", page(1, "docs/one.md")[0].Href)
}

// pages writes pages in the form in which Hugo writes them, and returns their folder.
func pages(t *testing.T, bodies map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range bodies {
		require.NoError(t, put(filepath.Join(dir, filepath.FromSlash(name)), []byte("<!doctype html><body><article>"+body+"</article>")))
	}
	return dir
}

func TestDeadLinksAreFoundWithTheirPlace(t *testing.T) {
	dir := pages(t, map[string]string{
		"index.html": `<a href="a.html#there">1</a> <a href="a.html#gone">2</a> <a href="b.html">3</a> <a href="#x">4</a> <a href="docs">5</a>
			<a href="https://example.org/x">6</a> <a href="/a.html">7</a> <a href="../out.html">8</a> <a href="mailto:a@b">9</a>
			<img src="https://example.org/a.png"> <script src="//example.org/a.js"></script> <a href="c.html">10</a>`,
		"a.html":          `<h2 id="there">There</h2>`,
		"docs/index.html": "",
	})
	require.NoError(t, put(filepath.Join(dir, "site.css"), []byte(`@import "https://example.org/font.css"; a { background: url("none.svg") }`)))
	d := &doc{Name: "README.md", Links: []docLink{{"README.md", 3, "a.html#gone"}, {"README.md", 4, "b.html"}}}
	found, err := check(dir, dir, []*doc{d})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"README.md:3: a.html#gone leads to nothing: a.html has no heading gone",
		"README.md:4: b.html leads to nothing: b.html doesn't exist",
		"hack/site/theme, in index.html: #x leads to nothing: index.html has no heading x",
		"hack/site/theme, in index.html: docs leads to a folder: a browser shows its index.html only if a server sends it",
		"hack/site/theme, in index.html: /a.html begins with a slash: the site must work in any folder",
		"hack/site/theme, in index.html: ../out.html leads out of the site",
		"hack/site/theme, in index.html: https://example.org/a.png is loaded from another host: the site must work offline",
		"hack/site/theme, in index.html: //example.org/a.js is loaded from another host: the site must work offline",
		"hack/site/theme, in index.html: c.html leads to nothing: c.html doesn't exist",
		"hack/site/theme: site.css: https://example.org/font.css is loaded from another host: the site must work offline",
		"hack/site/theme: site.css: none.svg leads to nothing: none.svg doesn't exist",
	}, found)
}

func TestTheIndexHasTheTextByHeadings(t *testing.T) {
	dir := pages(t, map[string]string{"index.html": `<h1 id="t">T</h1><p>First</p><h2 id="b">B <a class="anchor" href="#b">#</a></h2><table><tr><td>x</td><td>y</td></tr></table><h4 id="c">C</h4>`})
	got, err := sectionsOf(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	assert.Equal(t, []indexSection{{Text: "First"}, {Anchor: "b", Heading: "B", Text: "x y"}, {Anchor: "c", Heading: "C"}}, got)
	require.NoError(t, writeIndex(dir, []*doc{{Name: "README.md", Title: "T"}}))
	text, err := os.ReadFile(filepath.Join(dir, indexFile))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), `window.paictlIndex = {"pages":[{"href":"index.html","title":"T","lang":"en"}],`), "%.90s", text)
}
