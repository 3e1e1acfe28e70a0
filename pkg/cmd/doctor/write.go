package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/diagnose/doctor"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// listed is one check in the output of --list.
type listed struct {
	ID    string   `json:"id"`
	Group string   `json:"group"`
	Title string   `json:"title"`
	Looks string   `json:"looksAt"`
	Needs []string `json:"needs"`
	Docs  string   `json:"docs"`
}

func writeList(w io.Writer, out *cmdutil.Output, checks []*doctor.Check) error {
	t := cmdutil.Table{Header: []string{"CHECK", "GROUP", "NEEDS", "TITLE"}}
	all := make([]listed, 0, len(checks))
	for _, c := range checks {
		all = append(all, listed{c.ID, c.Group, c.Title, c.Examines, c.Needs.Names(), c.Docs()})
		needs := strings.Join(c.Needs.Names(), ",")
		if needs == "" {
			needs = "-"
		}
		t.Rows = append(t.Rows, []string{c.ID, c.Group, needs, c.Title})
	}
	return out.Write(w, all, t)
}

// writeReport prints the findings: first the problems, then the warnings, each with its remedy. At the end it prints how many checks passed.
func writeReport(w io.Writer, out *cmdutil.Output, r *doctor.Report, all bool) error {
	if !out.IsTable() {
		return out.Write(w, r, cmdutil.Table{})
	}
	var b strings.Builder
	for _, v := range []doctor.Verdict{doctor.Problem, doctor.Warning} {
		for i := range r.Results {
			for _, f := range r.Results[i].Findings {
				if f.Verdict == v {
					writeFinding(&b, &r.Results[i], f)
				}
			}
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if all {
		if err := out.WriteTable(w, checkTable(r)); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, summary(r, all))
	return err
}

// mostSeen limits the length of an observation in characters, because the URL of an API request can be very long.
const mostSeen = 600

func writeFinding(b *strings.Builder, r *doctor.Result, f doctor.Finding) {
	where := ""
	if f.Where != "" {
		where = f.Where + ": "
	}
	fmt.Fprintf(b, "%-8s %s [%s]\n", strings.ToUpper(string(f.Verdict)), terminal.Line(where+f.Message), r.ID)
	if f.Evidence != "" {
		seen := []rune(terminal.Line(f.Evidence))
		if len(seen) > mostSeen {
			seen = append(seen[:mostSeen:mostSeen], []rune("… (-o json has all of it)")...)
		}
		fmt.Fprintf(b, "         seen: %s\n", string(seen))
	}
	if f.Remedy != "" {
		fixable := ""
		if f.Fixable {
			fixable = " (--fix does it)"
		}
		fmt.Fprintf(b, "         -> %s%s\n", terminal.Line(f.Remedy), fixable)
	}
	fmt.Fprintf(b, "         %s\n", r.Docs)
}

func checkTable(r *doctor.Report) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"CHECK", "VERDICT", "TIME", "NOTE"}}
	for _, one := range r.Results {
		var notes []string
		for _, f := range one.Findings {
			if f.Verdict == doctor.OK || f.Verdict == doctor.Skipped {
				text := f.Message
				if f.Where != "" {
					text = f.Where + ": " + text
				}
				notes = append(notes, text)
			}
		}
		note := strings.Join(notes, "; ")
		if note == "" {
			note = one.Title
		}
		t.Rows = append(t.Rows, []string{one.ID, string(one.Verdict), fmt.Sprintf("%.1fs", one.Seconds), note})
	}
	return t
}

// summary returns the last lines of the report: how many checks passed, and why other checks were skipped.
func summary(r *doctor.Report, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s passed", plural.Of(r.Counts.OK, "check"))
	if r.Counts.Problem+r.Counts.Warning > 0 {
		fmt.Fprintf(&b, ", %d with problems, %d with warnings", r.Counts.Problem, r.Counts.Warning)
	}
	b.WriteString("\n")
	if all {
		return b.String()
	}
	// Print one line for each reason, because most skipped checks have the same reason.
	var order []string
	ids := map[string][]string{}
	for _, one := range r.Results {
		if one.Verdict == doctor.Skipped && len(one.Findings) > 0 {
			why := one.Findings[0].Message
			if ids[why] == nil {
				order = append(order, why)
			}
			ids[why] = append(ids[why], one.ID)
		}
	}
	for _, why := range order {
		names := strings.Join(ids[why], ", ")
		if n := len(ids[why]); n > 3 {
			names = plural.Of(n, "check")
		}
		fmt.Fprintf(&b, "skipped %s: %s\n", names, terminal.Line(why))
	}
	return b.String()
}
