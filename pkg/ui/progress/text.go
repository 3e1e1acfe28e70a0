package progress

import (
	"fmt"
	"time"

	"github.com/openpai/paictl/pkg/ui/terminal"
)

// stepsBelow distinguishes the two meanings of Total in an event: a smaller number counts steps, a larger number counts bytes. Transfers of
// fewer bytes take so little time that they need no progress.
const stepsBelow = 1000

// duration formats d for a person: "0.4 s", "38 s", "2 min 05 s", "1 h 02 min".
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0.0 s"
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute-500*time.Millisecond:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// amount formats the progress of a step: "12/310 MB" for bytes, "3/12" for steps, "" if the total is unknown.
func amount(done, total int64) string {
	switch {
	case total <= 0:
		return ""
	case total < stepsBelow:
		return fmt.Sprintf("%d/%d", done, total)
	}
	unit, name := float64(1e3), "kB"
	switch {
	case total >= 1e9:
		unit, name = 1e9, "GB"
	case total >= 1e6:
		unit, name = 1e6, "MB"
	}
	digits := 0
	if float64(total)/unit < 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f/%.*f %s", digits, float64(done)/unit, digits, float64(total)/unit, name)
}

// percent formats a share of total, for example "38%". total must be positive.
func percent(done, total int64) string {
	return fmt.Sprintf("%d%%", min(max(done, 0), total)*100/total)
}

// mark returns the sign of a change: + for additions, - for removals, ~ for other changes.
func mark(action string) string {
	switch action {
	case "create", "load", "import", "enable":
		return "+"
	case "delete", "remove", "disable", "unload":
		return "-"
	default:
		return "~"
	}
}

// line returns s as one safe line. The output of hosts may contain escape sequences, which must not reach the screen.
func line(s string) string { return terminal.Line(s) }

func lines(s string) []string { return terminal.Lines(s) }
