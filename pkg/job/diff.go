package job

import (
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/openpai/paictl/pkg/hint"
)

// diffContext is how many unchanged lines a diff shows around each change.
const diffContext = 3

// Diff returns the difference of the job files of two jobs as a unified diff, or "" if they are the same. Secrets are masked in both files.
func Diff(before, after *Job) (string, error) {
	for _, j := range []*Job{before, after} {
		if j.Config == "" {
			return "", hint.Errorf("compare jobs that were submitted as job files, and that you may read", "%s has no job file that you may read", j.Title())
		}
	}
	if before.Config == after.Config {
		return "", nil
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: diffLines(before.Config), B: diffLines(after.Config), FromFile: before.Title(), ToFile: after.Title(), Context: diffContext,
	})
	if err != nil {
		return "", fmt.Errorf("compare %s with %s: %w", after.Title(), before.Title(), err)
	}
	return text, nil
}

// diffLines splits a job file into lines, which keep their line breaks.
func diffLines(text string) []string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	return lines[:len(lines)-1]
}
