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
)

// kinds lists the parts of a page of changes. Entries belong to a part according to their first word.
var kinds = []struct{ word, heading string }{
	{"Breaking", "Breaking changes"}, {"Security", "Security"}, {"Enhancement", "Enhancements"}, {"Bugfix", "Corrected errors"},
}

// readChanges returns a page for each folder of the changelog, the newest first. Each file in a folder is an entry of the page.
func readChanges(v version) ([]*doc, error) {
	folders, err := os.ReadDir(filepath.Join(v.root, "changelog"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []*doc
	for _, f := range slices.Backward(folders) {
		if !f.IsDir() {
			continue
		}
		d, err := changesOf(v, "changelog/"+f.Name())
		if err != nil {
			return nil, err
		}
		if len(d.Text) > 0 {
			out = append(out, d)
		}
	}
	return out, nil
}

// seeAlso matches the references at the end of an entry. A reference is a path from the root of the repository.
var seeAlso = regexp.MustCompile(`(See |, |and )((?:[\w-]+/)*[\w-]+\.md)\b`)

// changesOf returns a page with the entries in a folder. If there are no entries, the text of the page is empty.
func changesOf(v version, folder string) (*doc, error) {
	number, date, _ := strings.Cut(path.Base(folder), "_")
	d := &doc{Name: folder, Title: "Changes in " + number, v: v}
	if number == unreleased {
		d.Title = "Changes that are not released yet"
	}
	files, err := filepath.Glob(filepath.Join(v.root, filepath.FromSlash(folder), "*.md"))
	if err != nil {
		return nil, err
	}
	parts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := folder + "/" + filepath.Base(file)
		entry, _ := newDoc(v, name, seeAlso.ReplaceAllString(string(text), "${1}[$2](../../$2)"))
		d.Links = append(d.Links, entry.Links...)
		d.Files = append(d.Files, entry.Files...)
		first, rest, _ := strings.Cut(entry.Text, "\n")
		kind, what, ok := strings.Cut(first, ": ")
		if !ok || !slices.ContainsFunc(kinds, func(k struct{ word, heading string }) bool { return k.word == kind }) {
			return nil, fmt.Errorf("%s: begin the first line with its kind and a colon: changelog/README.md has the kinds", name)
		}
		parts[kind] += "### " + what + "\n" + rest + "\n"
	}
	if len(parts) == 0 {
		return d, nil
	}
	d.Text = "# " + d.Title + "\n\n"
	if date != "" {
		d.Text += "Released on " + date + ".\n\n"
	}
	for _, k := range kinds {
		if parts[k.word] != "" {
			d.Text += "## " + k.heading + "\n\n" + parts[k.word]
		}
	}
	return d, nil
}
