package main

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/test/docs/page"
)

// group is a group of pages in the navigation.
type group struct {
	Title   string    `json:"title"`
	Chinese string    `json:"chinese"` // the title on Chinese pages
	Pages   []navPage `json:"pages"`
	Index   *navPage  `json:"index,omitempty"` // shown instead of the pages, unless one of them is open
	Groups  []group   `json:"groups,omitempty"`
}

// navPage is a page in the navigation, with its translation.
type navPage struct {
	Title   string   `json:"title"`
	URL     string   `json:"url"`
	Chinese *navPage `json:"chinese,omitempty"`
}

// chinese maps the titles of groups to Chinese titles.
var chinese = map[string]string{
	"Newcomers": "新手", "Researchers": "研究人员", "Operators": "运维人员", "Contributors": "贡献者",
	"How to": "操作指南", "Commands": "命令", "Decisions": "设计决策", "Changes": "变更",
}

func newGroup(name string) group {
	g := group{Title: name, Chinese: chinese[name]}
	if g.Chinese == "" {
		g.Chinese = name
	}
	return g
}

var section = regexp.MustCompile(`^## (.+)$`)

// navigation returns the groups of the navigation next to each page. The first groups are the sections of docs/README.md, which links to each page
// according to a test. How-to pages, commands and decisions are subgroups of these.
func navigation(docs []*doc) []group {
	var out []group
	i := slices.IndexFunc(docs, func(d *doc) bool { return d.Name == "docs/README.md" })
	if i < 0 {
		return nil
	}
	for line := range strings.Lines(docs[i].Text) {
		if m := section.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			out = append(out, newGroup(m[1]))
		}
		if len(out) == 0 {
			continue
		}
		for _, l := range page.Parse("docs/README.md", line).Links() {
			out[len(out)-1].add(docs, path.Join("docs", l.Target))
		}
	}
	changes := newGroup("Changes")
	for _, d := range docs {
		if !strings.HasSuffix(d.Name, ".md") {
			changes.Pages = append(changes.Pages, d.entry(docs))
		}
	}
	out = append(out, changes)
	return slices.DeleteFunc(out, func(g group) bool { return len(g.Pages)+len(g.Groups) == 0 })
}

// entry returns the entry of a page in the navigation.
func (d *doc) entry(docs []*doc) navPage {
	p := navPage{Title: d.Title, URL: "/" + d.Out()}
	if i := slices.IndexFunc(docs, func(o *doc) bool { return o.Name == d.Other }); i >= 0 {
		p.Chinese = &navPage{Title: docs[i].Title, URL: "/" + docs[i].Out()}
	}
	return p
}

// add adds a page to a group, or to the subgroup for the page's folder. target is a link to the page.
func (g *group) add(docs []*doc, target string) {
	target, _, _ = strings.Cut(target, "#")
	i := slices.IndexFunc(docs, func(d *doc) bool { return d.Out() == target })
	if i < 0 {
		return
	}
	entry, folder := docs[i].entry(docs), path.Dir(target)
	switch {
	case folder == "docs/how-to":
		g.inner("How to").append(entry)
	case target == "docs/commands/index.html", target == "docs/adr/index.html":
		inner := g.inner(map[string]string{"docs/commands": "Commands", "docs/adr": "Decisions"}[folder])
		inner.Index = &entry
		for _, d := range docs {
			if path.Dir(d.Name) == folder && d.Out() != target {
				inner.append(d.entry(docs))
			}
		}
		slices.SortFunc(inner.Pages, func(a, b navPage) int { return strings.Compare(a.URL, b.URL) })
	default:
		g.append(entry)
	}
}

// append adds a page to a group unless the group already contains the page.
func (g *group) append(p navPage) {
	if !slices.ContainsFunc(g.Pages, func(o navPage) bool { return o.URL == p.URL }) {
		g.Pages = append(g.Pages, p)
	}
}

func (g *group) inner(name string) *group {
	i := slices.IndexFunc(g.Groups, func(o group) bool { return o.Title == name })
	if i < 0 {
		i = len(g.Groups)
		g.Groups = append(g.Groups, newGroup(name))
	}
	return &g.Groups[i]
}
