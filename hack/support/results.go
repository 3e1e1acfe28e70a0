package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// result is the newest result of one kind of run for one row of a table.
type result struct {
	Row    string `json:"row"`    // its name, such as "debian 12"
	Run    string `json:"run"`    // gate, more, hosts, or other
	Commit string `json:"commit"` // ten digits of its hash
	Date   string `json:"date"`   // 2026-11-30
	Text   string `json:"text"`
	// Source is the page that documents the result if there is no report for it.
	Source string `json:"source,omitempty"`
}

// results holds all known results. There is at most one for each row and kind of run.
type results []result

func readResults(file string) (results, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out results
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, r := range out {
		if _, err := time.Parse(time.DateOnly, r.Date); err != nil || r.Commit == "" || r.Text == "" || !slices.Contains(rowNames(), r.Row) || !slices.Contains(runs, r.Run) {
			return nil, fmt.Errorf("%s: entry %d (%s, %s): give a row of the table, a run (%s), commit, date and text", file, i+1, r.Row, r.Run, strings.Join(runs, ", "))
		}
	}
	return out, nil
}

func (all results) write(file string) error {
	slices.SortFunc(all, func(a, b result) int { return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Run, b.Run)) })
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// of returns the result of a kind of run for a row, and reports whether there is one.
func (all results) of(row, run string) (result, bool) {
	i := slices.IndexFunc(all, func(r result) bool { return r.Row == row && r.Run == run })
	if i < 0 {
		return result{}, false
	}
	return all[i], true
}

// add adds results, and replaces older results. It returns the rows that have changed.
func (all *results) add(some []result) []string {
	var changed []string
	for _, r := range some {
		old, known := all.of(r.Row, r.Run)
		if known && (old.Date > r.Date || old == r) {
			continue
		}
		*all = append(slices.DeleteFunc(*all, func(o result) bool { return o.Row == r.Row && o.Run == r.Run }), r)
		changed = append(changed, r.Row)
	}
	return changed
}

// report holds the fields of a report of hack/tier that are needed.
type report struct {
	Tier     string    `json:"tier"`
	Commit   string    `json:"commit"`
	Tree     string    `json:"tree"`
	Started  time.Time `json:"started"`
	Finished bool      `json:"finished"`
	Only     string    `json:"only"`
	Steps    []struct {
		Error string `json:"error"`
	} `json:"steps"`
	Tests    int      `json:"tests"`
	Listed   int      `json:"listed"` // conformance tests, whether they ran or not
	Failed   []string `json:"failed"`
	Flaky    []string `json:"flaky"` // tests that failed, and passed alone
	Platform struct {
		System     string `json:"system"`
		Cgroup     string `json:"cgroup"`
		Arch       string `json:"arch"`
		Kubernetes string `json:"kubernetes"`
	} `json:"platform"`
	PassedTests map[string]float64 `json:"passedTests"`
}

// unusableError is the error for a report that can't be used. why is the reason.
type unusableError struct{ why string }

func (e unusableError) Error() string { return e.why }

func readReport(file string) (*report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &report{}
	return r, json.Unmarshal(data, r)
}

// usable returns an error if a report can't be used, because the run was incomplete or the files differed from the files of the commit.
func (r *report) usable(ctx context.Context, root string) error {
	switch {
	case r.Tier != conformance && !slices.Contains(runs, r.Tier):
		return unusableError{fmt.Sprintf("%q isn't a tier of tests", r.Tier)}
	case !r.Finished || r.Only != "":
		return unusableError{"the run was not whole"}
	case r.Platform.Arch == "":
		return unusableError{"it doesn't name its platform: it was written by an earlier version"}
	}
	cmd := exec.CommandContext(ctx, "git", "rev-parse", "--verify", "--quiet", r.Commit+"^{tree}")
	cmd.Dir = root
	tree, err := cmd.Output()
	if err != nil {
		return unusableError{"this repository doesn't have its commit " + r.Commit}
	}
	if strings.TrimSpace(string(tree)) != r.Tree {
		return unusableError{"it ran with changes that are not committed"}
	}
	return nil
}

// results returns the results in a report, one for each row that matches the report's platform.
func (r *report) results() []result {
	if r.Tier == conformance {
		return []result{{Row: conformance, Run: other, Commit: r.Commit, Date: r.Started.UTC().Format(time.DateOnly), Text: r.conformance()}}
	}
	text := fmt.Sprintf("passed, %d tests", r.Tests)
	broken := 0
	for _, s := range r.Steps {
		if s.Error != "" {
			broken++
		}
	}
	switch {
	case len(r.Failed) > 0:
		text = fmt.Sprintf("**%d of %d tests failed**", len(r.Failed), r.Tests)
	case broken > 0:
		text = fmt.Sprintf("**%s failed**, %d tests", plural.Of(broken, "step"), r.Tests)
	case len(r.Flaky) > 0:
		text += fmt.Sprintf(", %d of them when repeated", len(r.Flaky))
	}
	kubernetes := ""
	if parts := strings.Split(strings.TrimPrefix(r.Platform.Kubernetes, "v"), "."); len(parts) == 3 {
		kubernetes = "kubernetes " + parts[0] + "." + parts[1]
	}
	var out []result
	for _, row := range []string{r.Platform.System, "cgroup " + r.Platform.Cgroup, r.Platform.Arch, kubernetes} {
		if slices.Contains(rowNames(), row) {
			out = append(out, result{Row: row, Run: r.Tier, Commit: r.Commit, Date: r.Started.UTC().Format(time.DateOnly), Text: text})
		}
	}
	return out
}

// conformance describes the result of Kubernetes' conformance tests.
func (r *report) conformance() string {
	text := fmt.Sprintf("%d of %d tests passed", len(r.PassedTests), r.Listed)
	if r.Platform.Kubernetes != "" {
		text = "Kubernetes " + r.Platform.Kubernetes + ": " + text
	}
	if len(r.Flaky) > 0 {
		text += fmt.Sprintf(", %d of them when repeated", len(r.Flaky))
	}
	if len(r.Failed) > 0 {
		text += fmt.Sprintf("; **%d failed**: %s", len(r.Failed), strings.Join(r.Failed, ", "))
	}
	if left := r.Listed - len(r.PassedTests) - len(r.Failed); left > 0 {
		text += fmt.Sprintf("; %d were not run", left)
	}
	return text
}
