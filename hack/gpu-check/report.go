package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// These are the verdicts of a check.
const (
	verdictEqual   = "equal"
	verdictDiffers = "differs"
	verdictMissing = "only one has it" // not a fault by itself: drivers and cards report different values
	verdictSeen    = "listed"
	verdictPassed  = "passed"
	verdictFailed  = "failed"
	verdictNotRun  = "not run"
)

// report holds the results of all checks.
type report struct {
	At        time.Time `json:"at"`
	Machine   machine   `json:"machine"`
	Driver    string    `json:"driver"`
	CUDA      string    `json:"cuda"`
	Models    []string  `json:"models"`
	Instances []string  `json:"instances,omitempty"`
	Checks    []check   `json:"checks"`
	Costs     []cost    `json:"costs,omitempty"`
}

// check is the comparison of one property.
type check struct {
	Subject string `json:"subject"`
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Ours    string `json:"ours,omitempty"`
	Theirs  string `json:"theirs,omitempty"`
}

func (r *report) add(subject, name, verdict, ours, theirs string) {
	r.Checks = append(r.Checks, check{subject, name, verdict, ours, theirs})
}

// equal adds a check that compares two texts.
func (r *report) equal(subject, name, ours, theirs string) {
	verdict := verdictEqual
	if ours != theirs {
		verdict = verdictDiffers
	}
	r.add(subject, name, verdict, ours, theirs)
}

// secret adds a check that compares two texts that identify hardware. The report contains the texts only if they differ.
func (r *report) secret(subject, name, ours, theirs string) {
	if ours == theirs {
		r.add(subject, name, verdictEqual, "", "")
		return
	}
	r.add(subject, name, verdictDiffers, ours, theirs)
}

// failed reports whether at least one check has failed.
func (r *report) failed() bool {
	return slices.ContainsFunc(r.Checks, func(c check) bool { return c.Verdict == verdictDiffers || c.Verdict == verdictFailed })
}

// summary returns the number of checks for each verdict, as text.
func (r *report) summary() string {
	count := map[string]int{}
	for _, c := range r.Checks {
		count[c.Verdict]++
	}
	var out []string
	for _, v := range []string{verdictEqual, verdictPassed, verdictDiffers, verdictFailed, verdictMissing, verdictSeen, verdictNotRun} {
		if count[v] > 0 {
			out = append(out, fmt.Sprintf("%s: %d", v, count[v]))
		}
	}
	return strings.Join(out, ", ")
}

// models returns the number of GPUs for each model, such as "2 x NVIDIA-H100-80GB-HBM3".
func (r *report) models() string {
	var out []string
	models := slices.Sorted(slices.Values(r.Models))
	for len(models) > 0 {
		n := 0
		for n < len(models) && models[n] == models[0] {
			n++
		}
		out = append(out, fmt.Sprintf("%d x %s", n, models[0]))
		models = models[n:]
	}
	return cmp.Or(strings.Join(out, ", "), "no GPU")
}

// markdown returns the report as a section for docs/hardware.md.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s, driver %s\n\n", r.models(), cmp.Or(r.Driver, "unknown"))
	fmt.Fprintf(&b, "%s, %s, kernel %s, CUDA %s. %s.\n\n", r.At.Format(time.DateOnly), r.Machine.System, cmp.Or(r.Machine.Kernel, "unknown"), cmp.Or(r.CUDA, "unknown"), r.summary())
	b.WriteString("| | property | paictl | nvidia-smi | result |\n|---|---|---|---|---|\n")
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(c.Subject), cell(c.Name), cell(c.Ours), cell(c.Theirs), c.Verdict)
	}
	if len(r.Instances) > 0 {
		b.WriteString("\nInstances (MIG):\n\n")
		for _, i := range r.Instances {
			fmt.Fprintf(&b, "- %s\n", i)
		}
	}
	if len(r.Costs) > 0 {
		b.WriteString("\n| program | seconds | processor, % of a core | memory, MiB |\n|---|---|---|---|\n")
		for _, c := range r.Costs {
			fmt.Fprintf(&b, "| %s | %.0f | %.2f | %.1f |\n", c.Program, c.Seconds, c.CPU, c.Memory)
		}
	}
	return b.String()
}

// cell escapes a text for a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
}

// write writes the report to a folder, as JSON and as Markdown.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := indented(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), data, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "report.md"), []byte(r.markdown()), 0o644)
}
