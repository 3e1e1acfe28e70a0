package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// runs lists the columns with results, by their names in a report. The last column is for runs without a report.
var runs = []string{"gate", "more", "hosts", other}

const other = "other"

// conformance is the tier of Kubernetes' conformance tests, and their row in the tables.
const conformance = "conformance"

// row is a row of a table.
type row struct{ name, title string }

// table is a table in the page, between marks that contain its name.
type table struct {
	name string
	head string
	runs []string
	rows []row
}

var (
	tiers  = "| | gate | servers, race detector | sandbox hosts | other |\n|---|---|---|---|---|\n"
	tables = []table{
		{"systems", tiers, runs, []row{{"debian 12", "Debian 12"}, {"debian 13", "Debian 13"}, {"ubuntu 22.04", "Ubuntu 22.04"}, {"ubuntu 24.04", "Ubuntu 24.04"}}},
		{"cgroups", tiers, runs, []row{{"cgroup v1", "control groups v1, also hybrid"}, {"cgroup v2", "control groups v2"}}},
		{"architectures", tiers, runs, []row{{"amd64", "amd64"}, {"arm64", "arm64"}}},
		{"kubernetes", tiers, runs, []row{{"kubernetes 1.36", "Kubernetes 1.36"}, {"kubernetes 1.35", "Kubernetes 1.35"}, {"kubernetes 1.34", "Kubernetes 1.34"}}},
		{"gpus", "| | result |\n|---|---|\n", []string{other}, []row{{"nvidia", "NVIDIA GPUs"}, {"amd", "AMD GPUs"}}},
		{"conformance", "| | result |\n|---|---|\n", []string{other}, []row{{conformance, "Kubernetes' conformance tests"}}},
	}
)

func rowNames() []string {
	var out []string
	for _, t := range tables {
		for _, r := range t.rows {
			out = append(out, r.name)
		}
	}
	return out
}

// text returns the table with its results, as Markdown.
func (t table) text(all results) string {
	var b strings.Builder
	b.WriteString(t.head)
	for _, r := range t.rows {
		b.WriteString("| " + r.title)
		for _, run := range t.runs {
			b.WriteString(" | " + cell(all.of(r.name, run)))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

func cell(r result, known bool) string {
	if !known {
		return "not run"
	}
	text := fmt.Sprintf("%s (`%s`, %s)", r.Text, r.Commit, r.Date)
	if r.Source != "" {
		text = fmt.Sprintf("%s ([%s](%s), `%s`, %s)", r.Text, r.Source, r.Source, r.Commit, r.Date)
	}
	return text
}

// filled returns a page in which the text between the marks "<!-- table: NAME -->" and "<!-- end -->" is replaced with new tables.
func filled(page string, all results) (string, error) {
	for _, t := range tables {
		begin := "<!-- table: " + t.name + " -->\n"
		before, rest, ok := strings.Cut(page, begin)
		_, after, ends := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !ends {
			return "", fmt.Errorf("%s has no table between %q and <!-- end -->", pageFile, strings.TrimSpace(begin))
		}
		page = before + begin + "\n" + t.text(all) + "\n<!-- end -->\n" + after
	}
	return page, nil
}

// fill updates the tables in the file of the page.
func fill(file string, all results) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	page, err := filled(string(text), slices.Clone(all))
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(page), 0o644)
}
