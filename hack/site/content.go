package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// front is the front matter of a page, which Hugo reads.
type front struct {
	Title  string `json:"title"`
	URL    string `json:"url"`
	Params params `json:"params"`
}

type params struct {
	Lang     string        `json:"lang"`
	Source   string        `json:"source"` // in the repository
	Address  string        `json:"address"`
	Other    string        `json:"other,omitempty"` // the page in the other language, from the root of the site
	Version  string        `json:"version"`
	Made     string        `json:"made"`
	Versions []versionLink `json:"versions"`
}

// content returns a page in the form that Hugo reads.
func (d *doc) content(versions []versionLink) []byte {
	f := front{Title: d.Title, URL: "/" + d.Out()}
	f.Params = params{Lang: "en", Source: d.Name, Version: d.v.Name, Made: d.v.made, Versions: versions}
	f.Params.Address = fmt.Sprintf("%s/blob/%s/%s", address, d.v.Ref, d.Name)
	if !strings.HasSuffix(d.Name, ".md") {
		f.Params.Address = fmt.Sprintf("%s/tree/%s/%s", address, d.v.Ref, d.Name)
	}
	if d.Chinese() {
		f.Params.Lang = "zh-CN"
	}
	if d.Other != "" {
		f.Params.Other = "/" + pageOut(d.Other)
	}
	head, err := json.Marshal(f)
	if err != nil {
		panic(err) // it contains only texts
	}
	return append(append(head, "\n\n"...), withoutNotes(d.Text)...)
}

var (
	// contents matches the paragraph of a long page that lists the sections of the page. The site shows the sections next to the page instead.
	contents = regexp.MustCompile(`(?s)\n\*\*(?:Contents:|目录：)\*\*.*?\n\n`)
	// note matches a comment that is on separate lines. Such comments are only for the tests.
	note = regexp.MustCompile(`(?ms)^<!--.*?-->\n`)
	// wide matches a line break within a Chinese sentence. A browser would show the line break as a space.
	wide   = regexp.MustCompile(`([\p{Han}，。；：、）」])\n([\p{Han}（「])`)
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
)

// withoutNotes removes the parts of a page that are only for tests or for readers of the plain text. It also joins the lines of Chinese sentences.
func withoutNotes(text string) string {
	text = contents.ReplaceAllString(text, "\n")
	prose := func(part string) string { return wide.ReplaceAllString(note.ReplaceAllString(part, ""), "$1$2") }
	var b strings.Builder
	at := 0
	for _, block := range fenced.FindAllStringIndex(text, -1) {
		b.WriteString(prose(text[at:block[0]]))
		b.WriteString(text[block[0]:block[1]])
		at = block[1]
	}
	b.WriteString(prose(text[at:]))
	return b.String()
}
