package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// built is a page that Hugo has written.
type built struct {
	ids   map[string]bool
	links []builtLink
}

type builtLink struct {
	href    string
	fetched bool // the browser loads it with the page
}

// checker finds dead links, and requests to other hosts, in the pages of a version.
type checker struct {
	dir   string // of the version
	site  string // of all versions; links between versions leave dir
	pages map[string]*built
}

// check returns the mistakes in the pages of a version, with their places in the sources.
func check(dir, site string, docs []*doc) ([]string, error) {
	c := checker{dir: dir, site: site, pages: map[string]*built{}}
	var out []string
	for _, d := range docs {
		p, err := c.page(d.Out())
		if err != nil {
			return nil, err
		}
		for _, l := range p.links {
			why, err := c.wrong(d.Out(), l)
			if err != nil {
				return nil, err
			}
			if why != "" {
				out = append(out, fmt.Sprintf("%s: %s %s", d.place(l.href), l.href, why))
			}
		}
	}
	styles, err := c.styles()
	return slices.Compact(append(out, styles...)), err
}

// place returns the file and the line of a link in the sources. If the sources of the page don't contain the link, it belongs to the layout.
func (d *doc) place(href string) string {
	for _, l := range d.Links {
		if l.Href == href {
			return fmt.Sprintf("%s:%d", l.File, l.Line)
		}
	}
	return "hack/site/theme, in " + d.Out()
}

// page reads a page of the site. It caches the pages.
func (c *checker) page(name string) (*built, error) {
	if p, ok := c.pages[name]; ok {
		return p, nil
	}
	file, err := os.Open(filepath.Join(c.dir, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	root, err := html.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &built{ids: map[string]bool{}}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				p.ids[a.Val] = true
			case "href":
				p.links = append(p.links, builtLink{href: a.Val, fetched: n.Data != "a"})
			case "src", "srcset", "poster", "data":
				p.links = append(p.links, builtLink{href: a.Val, fetched: true})
			}
		}
	}
	c.pages[name] = p
	return p, nil
}

// wrong returns the reason why a link in a page is wrong, or "" if the link is right.
func (c *checker) wrong(from string, l builtLink) (string, error) {
	u, err := url.Parse(l.href)
	switch {
	case err != nil:
		return "is not an address", nil //nolint:nilerr // that is the finding
	case u.Scheme == "data" || u.Scheme == "mailto":
		return "", nil
	case (u.Scheme != "" || u.Host != "") && l.fetched:
		return "is loaded from another host: the site must work offline", nil
	case u.Scheme != "" || u.Host != "":
		return "", nil
	case strings.HasPrefix(u.Path, "/"):
		return "begins with a slash: the site must work in any folder", nil
	}
	target := path.Join(path.Dir(from), u.Path)
	if u.Path == "" {
		target = from
	}
	// A link to another version may lead out of the folder of this version, but not out of the site.
	file := filepath.Join(c.dir, filepath.FromSlash(target))
	if within, err := filepath.Rel(c.site, file); err != nil || !filepath.IsLocal(within) {
		return "leads out of the site", nil //nolint:nilerr // that is the finding
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "leads to nothing: " + target + " doesn't exist", nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "leads to a folder: a browser shows its index.html only if a server sends it", nil
	case u.Fragment == "" || path.Ext(target) != ".html":
		return "", nil
	}
	p, err := c.page(target)
	if err != nil || p.ids[u.Fragment] {
		return "", err
	}
	return fmt.Sprintf("leads to nothing: %s has no heading %s", target, u.Fragment), nil
}

var loads = regexp.MustCompile(`(?:url\(|@import)\s*["']?([^"')\s;]+)`)

// styles returns descriptions of the files that style sheets would load from other hosts.
func (c *checker) styles() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "*.css"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range loads.FindAllStringSubmatch(string(text), -1) {
			if why, err := c.wrong(filepath.Base(file), builtLink{href: m[1], fetched: true}); why != "" || err != nil {
				out = append(out, fmt.Sprintf("hack/site/theme: %s: %s %s", filepath.Base(file), m[1], why))
			}
		}
	}
	return out, nil
}
