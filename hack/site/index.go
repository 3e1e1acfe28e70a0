package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// indexFile is the name of the search index. The index is a script, because pages that are opened from disk may load scripts but no other data.
const indexFile = "search-index.js"

// index is the content of the search index.
type index struct {
	Pages    []indexPage    `json:"pages"`
	Sections []indexSection `json:"sections"`
}

type indexPage struct {
	Href  string `json:"href"` // from the root of the version
	Title string `json:"title"`
	Lang  string `json:"lang"`
}

type indexSection struct {
	Page    int    `json:"page"`
	Anchor  string `json:"anchor,omitempty"`
	Heading string `json:"heading,omitempty"`
	Text    string `json:"text"`
}

// writeIndex writes the search index for the pages of a version.
func writeIndex(dir string, docs []*doc) error {
	var all index
	for i, d := range docs {
		sections, err := sectionsOf(filepath.Join(dir, filepath.FromSlash(d.Out())))
		if err != nil {
			return err
		}
		lang := "en"
		if d.Chinese() {
			lang = "zh-CN"
		}
		all.Pages = append(all.Pages, indexPage{Href: d.Out(), Title: d.Title, Lang: lang})
		for _, s := range sections {
			s.Page = i
			all.Sections = append(all.Sections, s)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return put(filepath.Join(dir, indexFile), fmt.Appendf(nil, "window.paictlIndex = %s;\n", data))
}

// sectionsOf returns the sections of a page's article, with their headings and texts.
func sectionsOf(file string) ([]indexSection, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	root, err := html.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for n := range root.Descendants() {
		if n.DataAtom == atom.Article {
			return sections(n), nil
		}
	}
	return nil, fmt.Errorf("%s has no article", file)
}

func sections(article *html.Node) []indexSection {
	out := []indexSection{{}}
	var text strings.Builder
	end := func() {
		out[len(out)-1].Text = strings.Join(strings.Fields(text.String()), " ")
		text.Reset()
	}
	for n := range article.ChildNodes() {
		switch n.DataAtom {
		case atom.H1:
			continue
		case atom.H2, atom.H3, atom.H4:
			end()
			out = append(out, indexSection{Anchor: attribute(n, "id"), Heading: strings.Join(strings.Fields(textOf(n)), " ")})
		default:
			text.WriteString(" " + textOf(n))
		}
	}
	end()
	return out
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text in an element, without text that the layout adds. Texts of blocks are separated by spaces.
func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	if attribute(n, "class") == "anchor" {
		return ""
	}
	var b strings.Builder
	for child := range n.ChildNodes() {
		b.WriteString(textOf(child))
	}
	switch n.DataAtom {
	case atom.P, atom.Li, atom.Td, atom.Th, atom.Tr, atom.Pre:
		b.WriteString(" ")
	}
	return b.String()
}
