package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/test/docs/page"
)

// address is the address of the project on the web, which is also the module path.
const address = "https://github.com/openpai/paictl"

// first lists the pages from which links lead to all other pages, directly or through other pages.
var first = []string{"README.md", "README.zh.md"}

// doc is a page of the site.
type doc struct {
	Name  string // its path in the repository; that of a folder for a page that is made of its files
	Title string
	Text  string // Markdown, with the links of the site
	Links []docLink
	Files []string // other files of the repository that it links
	// Other is the name of the same page in another language, or "" if the page exists in only one language.
	Other string

	v version
}

// docLink is a link in a page, with its place in the source.
type docLink struct {
	File string
	Line int
	Href string // as the page of the site has it
}

// Out returns the path of the page in the site.
func (d *doc) Out() string { return pageOut(d.Name) }

// Chinese reports whether the page is a Chinese translation.
func (d *doc) Chinese() bool { return strings.HasSuffix(d.Name, ".zh.md") }

func pageOut(name string) string {
	dir, base := path.Split(name)
	base, ok := strings.CutSuffix(base, ".md")
	if !ok {
		return name + "/index.html"
	}
	if base == "README" || strings.HasPrefix(base, "README.") {
		base = "index" + strings.TrimPrefix(base, "README")
	}
	return dir + base + ".html"
}

// shown lists the extensions of files that browsers display. Other files get a name with an extension that browsers display as text.
var shown = []string{".json", ".png", ".svg", ".txt"}

func fileOut(name string) string {
	if slices.Contains(shown, path.Ext(name)) {
		return name
	}
	return name + ".txt"
}

// read reads all documents to which links lead from the first pages, and the changelog.
func read(v version) ([]*doc, error) {
	var out []*doc
	seen := map[string]bool{}
	queue := slices.Clone(first)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		text, err := os.ReadFile(filepath.Join(v.root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, ".zh.md") {
			continue // releases from before the translations
		}
		if err != nil {
			return nil, err
		}
		d, next := newDoc(v, name, string(text))
		out = append(out, d)
		queue = append(queue, next...)
	}
	changes, err := readChanges(v)
	if err != nil {
		return nil, err
	}
	out = append(out, changes...)
	for _, d := range out {
		other := strings.TrimSuffix(d.Name, ".md") + ".zh.md"
		if d.Chinese() {
			other = strings.TrimSuffix(d.Name, ".zh.md") + ".md"
		}
		if seen[other] && slices.ContainsFunc(out, func(o *doc) bool { return o.Name == other }) {
			d.Other = other
		}
	}
	return out, nil
}

var title = regexp.MustCompile(`(?m)^# (.+)$`)

// newDoc converts a Markdown text to a page of the site. It also returns the documents to which the page links.
func newDoc(v version, name, text string) (d *doc, next []string) {
	d = &doc{Name: name, v: v}
	d.Title = name
	if m := title.FindStringSubmatch(text); m != nil {
		d.Title = plain(m[1])
	}
	var b strings.Builder
	at := 0
	for _, l := range page.Parse(name, text).Links() {
		href, target := d.link(l.Target)
		b.WriteString(text[at:l.At] + href)
		at = l.At + len(l.Target)
		d.Links = append(d.Links, docLink{File: name, Line: l.Line, Href: href})
		switch {
		case strings.HasSuffix(target, ".md"):
			next = append(next, target)
		case target != "":
			d.Files = append(d.Files, target)
		}
	}
	b.WriteString(text[at:])
	d.Text = b.String()
	return d, next
}

// link converts a link to its form in the site. It also returns the file in the repository to which the link leads. It doesn't change a dead link,
// because check reports it.
func (d *doc) link(target string) (href, file string) {
	file, anchor, _ := strings.Cut(target, "#")
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") || file == "" {
		return target, ""
	}
	file = path.Join(path.Dir(d.Name), file)
	onDisk := func(name string) (fs.FileInfo, error) {
		return os.Stat(filepath.Join(d.v.root, filepath.FromSlash(name)))
	}
	info, err := onDisk(file)
	if err != nil || !filepath.IsLocal(file) {
		return target, ""
	}
	if info.IsDir() {
		if _, err := onDisk(path.Join(file, "README.md")); err != nil {
			return fmt.Sprintf("%s/tree/%s/%s", address, d.v.Ref, file), ""
		}
		file = path.Join(file, "README.md")
	}
	out := fileOut(file)
	if strings.HasSuffix(file, ".md") {
		out = pageOut(file)
	}
	href = relative(d.Out(), out)
	if anchor != "" {
		href += "#" + anchor
	}
	return href, file
}

// relative returns a relative link from one file of the site to another file.
func relative(from, to string) string {
	up, err := filepath.Rel(filepath.FromSlash(path.Dir(from)), filepath.FromSlash(to))
	if err != nil {
		panic(err) // both are relative to the site
	}
	return filepath.ToSlash(up)
}

var marks = strings.NewReplacer("`", "", "*", "")

// plain returns the text of a heading without markup.
func plain(heading string) string {
	return marks.Replace(regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1"))
}
