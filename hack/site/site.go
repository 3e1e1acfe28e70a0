package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

//go:embed all:theme
var theme embed.FS

// site holds the data of all pages. The site consists of the documents of the checkout, and below them the documents of each release.
type site struct {
	root, out, hugo string
	progress        io.Writer

	versions []version
	pages    int
}

// names returns the names of all versions on the site.
func (s *site) names() (out []string) {
	for _, v := range s.versions {
		out = append(out, v.Name)
	}
	return out
}

// build writes the pages of all versions. It returns an error that lists the dead links.
func (s *site) build(ctx context.Context) error {
	work, err := os.MkdirTemp("", "paictl-site-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if s.versions, err = versions(ctx, s.root, work, s.progress); err != nil {
		return err
	}
	if err := os.RemoveAll(s.out); err != nil {
		return err
	}
	docs := make([][]*doc, len(s.versions))
	for i, v := range s.versions {
		if docs[i], err = read(v); err != nil {
			return fmt.Errorf("read the documents of %s: %w", v.Name, err)
		}
	}
	for i, v := range s.versions {
		fmt.Fprintf(s.progress, "writing %d pages of %s\n", len(docs[i]), v.Name)
		dest := filepath.Join(s.out, v.Folder)
		if err := s.write(ctx, filepath.Join(work, fmt.Sprint("hugo-", i)), dest, i, docs); err != nil {
			return fmt.Errorf("write the site of %s: %w", v.Name, err)
		}
		if err := writeIndex(dest, docs[i]); err != nil {
			return err
		}
		s.pages += len(docs[i])
	}
	return s.check(docs)
}

// check returns an error that lists the dead links in all versions. It checks the versions together, because they link to each other.
func (s *site) check(docs [][]*doc) error {
	var dead []error
	for i, v := range s.versions {
		found, err := check(filepath.Join(s.out, v.Folder), s.out, docs[i])
		if err != nil {
			return err
		}
		for _, f := range found {
			if v.Folder != "" {
				f = v.Folder + ": " + f
			}
			dead = append(dead, errors.New(f))
		}
	}
	return errors.Join(dead...)
}

// write renders the documents of one version with Hugo.
func (s *site) write(ctx context.Context, work, dest string, at int, docs [][]*doc) error {
	if err := os.CopyFS(work, sub(theme, "theme")); err != nil {
		return err
	}
	v := s.versions[at]
	for i, d := range docs[at] {
		// If a page were named index.md, Hugo would treat the other pages in its folder as parts of that page.
		if err := put(filepath.Join(work, "content", fmt.Sprintf("page-%d.md", i)), d.content(s.others(at, d, docs))); err != nil {
			return err
		}
		for _, file := range d.Files {
			if err := copyFile(filepath.Join(v.root, filepath.FromSlash(file)), filepath.Join(work, "static", filepath.FromSlash(fileOut(file)))); err != nil {
				return err
			}
		}
	}
	data, err := json.Marshal(navigation(docs[at]))
	if err != nil {
		return err
	}
	if err := put(filepath.Join(work, "data", "nav.json"), data); err != nil {
		return err
	}
	absolute, err := filepath.Abs(dest)
	if err != nil {
		return err
	}
	_, err = command(ctx, work, s.progress, s.hugo, "--quiet", "--panicOnWarning", "--noBuildLock", "--destination", absolute, "--cacheDir", filepath.Join(work, "cache"))
	return err
}

// others returns links from a page to the same page in each version. If a version doesn't contain the page, the link leads to the version's first
// page.
func (s *site) others(at int, d *doc, docs [][]*doc) []versionLink {
	var out []versionLink
	for i, v := range s.versions {
		target := "index.html"
		for _, other := range docs[i] {
			if other.Name == d.Name {
				target = other.Out()
			}
		}
		from := path.Join(s.versions[at].Folder, d.Out())
		out = append(out, versionLink{Name: v.Name, Href: relative(from, path.Join(v.Folder, target)), Current: i == at})
	}
	return out
}

func sub(all fs.FS, dir string) fs.FS {
	out, err := fs.Sub(all, dir)
	if err != nil {
		panic(err) // the folder's name is a constant
	}
	return out
}

// put writes a file, and creates the folders that it needs.
func put(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return put(to, data)
}
