package vc

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// tellState prints notes about the state of the scheduler, which explain the numbers.
func tellState(io *iostreams.IOStreams, s *state) {
	if !s.Running {
		io.Say("%s: this is what the configuration says", s.Note)
	}
	if s.Problem != "" {
		io.Say("warning: the latest configuration was refused, an earlier one is in use: %s", s.Problem)
	}
}

// cellsText lists the cells that a virtual cluster owns, for example "2 x 8x-a100, pinned special".
func cellsText(v *api.VirtualCluster) string {
	var parts []string
	for _, c := range v.Cells {
		parts = append(parts, fmt.Sprintf("%d x %s", c.CellNumber, c.CellType))
	}
	for _, id := range v.PinnedCells {
		parts = append(parts, "pinned "+id)
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// policyText returns the name of a policy, followed by its description.
func policyText(name string) string {
	name = cell.PolicyName(name)
	for _, p := range cell.Policies {
		if p.Name == name {
			return name + ": " + p.About
		}
	}
	return name // a policy of a newer scheduler
}

func quotaText(q *api.Quota) string {
	if q == nil {
		return "-"
	}
	var parts []string
	if q.PerUser > 0 {
		parts = append(parts, fmt.Sprintf("%d a user", q.PerUser))
	}
	if q.PerGroup > 0 {
		parts = append(parts, fmt.Sprintf("%d a group", q.PerGroup))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Users)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, limit(q.Users[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Groups)) {
		parts = append(parts, fmt.Sprintf("group %s %s", name, limit(q.Groups[name])))
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

func limit(n int) string {
	if n == 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func levelsText(levels []cell.LevelCount) string {
	var parts []string
	for _, l := range levels {
		if l.Count > 0 {
			parts = append(parts, fmt.Sprintf("%d x %s", l.Count, l.CellType))
		}
	}
	return strings.Join(parts, ", ")
}

// writeFields writes one line for each field, with aligned values.
func writeFields(w io.Writer, fields [][2]string) error {
	width := 0
	for _, f := range fields {
		width = max(width, len(f[0]))
	}
	for _, f := range fields {
		if _, err := fmt.Fprintf(w, "  %-*s  %s\n", width, f[0], terminal.Line(f[1])); err != nil {
			return err
		}
	}
	return nil
}

// writeValidation prints the effects of a change on virtual clusters and gangs.
func writeValidation(w io.Writer, v *api.Validation) error {
	var b strings.Builder
	for _, p := range v.Problems {
		fmt.Fprintln(&b, terminal.Line(p.Severity+": "+join(p.Path, p.Message)))
		if p.Remedy != "" {
			fmt.Fprintln(&b, "  -> "+terminal.Line(p.Remedy))
		}
	}
	for _, c := range v.VirtualClusters {
		fmt.Fprintln(&b, terminal.Line(c.Name+": "+ownership(&c)))
	}
	for _, c := range v.Changes {
		fmt.Fprintln(&b, terminal.Line(c.VC+"/"+c.Group+" "+effectText(&c)))
	}
	if v.Valid && len(v.Changes) == 0 {
		b.WriteString("no gang is affected\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func join(path, message string) string {
	if path == "" {
		return message
	}
	return path + ": " + message
}

func ownership(c *api.ChangedVirtualCluster) string {
	switch {
	case c.Before == nil:
		return "is new and owns " + owned(c.After) + also(limits(&api.VirtualCluster{}, c.After))
	case c.After == nil:
		return "ends; it owned " + owned(c.Before)
	case c.Before.Guaranteed == c.After.Guaranteed && cellsText(c.Before) == cellsText(c.After):
		return limits(c.Before, c.After)
	}
	return "owns " + owned(c.After) + " instead of " + owned(c.Before) + also(limits(c.Before, c.After))
}

func also(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// limits describes the changes to the quota and to the policy of a virtual cluster.
func limits(before, after *api.VirtualCluster) string {
	var parts []string
	if a, b := quotaText(before.Quota), quotaText(after.Quota); a != b {
		parts = append(parts, fmt.Sprintf("quota %s instead of %s", b, a))
	}
	if a, b := cell.PolicyName(before.Policy), cell.PolicyName(after.Policy); a != b {
		parts = append(parts, fmt.Sprintf("policy %s instead of %s", b, a))
	}
	return strings.Join(parts, ", ")
}

func owned(v *api.VirtualCluster) string {
	if len(v.Cells) == 0 && len(v.PinnedCells) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s (%s)", cellsText(v), amounts(v))
}

// amounts formats the number of GPUs and of CPU cells that a virtual cluster owns.
func amounts(v *api.VirtualCluster) string {
	switch {
	case v.CPUCells() == 0:
		return plural.Of(v.Guaranteed, "GPU")
	case v.Guaranteed == 0:
		return plural.Of(v.CPUCells(), "CPU cell")
	}
	return plural.Of(v.Guaranteed, "GPU") + " and " + plural.Of(v.CPUCells(), "CPU cell")
}

func effectText(c *api.Change) string {
	what := c.Held()
	if c.User != "" {
		what += " of " + c.User
	}
	text := map[string]string{
		api.Downgraded: "loses its guarantee: it continues to run, and the owners of its cells may preempt it",
		api.Restored:   "has its guarantee again",
		api.Refused:    "waits, and could never start",
		api.Orphaned:   "continues to run without a guarantee, as now; a retry would be refused",
	}[c.Effect]
	if c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	return "(" + what + ") " + cmp.Or(text, c.Effect)
}
