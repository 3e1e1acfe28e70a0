package main

import (
	"fmt"
	"io"
	"strconv"
)

// longest is the maximum number of characters of a sentence in a line of the report.
const longest = 100

// String returns the finding as a line of the report.
func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: write %s: %s", f.file, f.line, cut(f.found, 40), f.write, cut(f.text, longest))
}

// cut shortens a text to at most most characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// thousands formats a number with commas as thousands separators.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// reportStats prints the number of findings for each rule and area.
func reportStats(rs rules, found []finding, out io.Writer) error {
	count := map[string]map[area]int{}
	total := map[area]int{}
	for _, f := range found {
		if count[f.rule] == nil {
			count[f.rule] = map[area]int{}
		}
		count[f.rule][f.area]++
		total[f.area]++
	}
	fmt.Fprintf(out, "%-12s %8s %8s %8s %8s\n", "rule", docs, messages, comments, "all")
	for _, r := range rs {
		statsRow(out, r.name, count[r.name])
	}
	statsRow(out, "all", total)
	return nil
}

func statsRow(w io.Writer, name string, n map[area]int) {
	fmt.Fprintf(w, "%-12s %8d %8d %8d %8d\n", name, n[docs], n[messages], n[comments], n[docs]+n[messages]+n[comments])
}
