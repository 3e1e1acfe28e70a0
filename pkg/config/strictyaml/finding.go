// Package strictyaml decodes YAML files that people write by hand, and explains every mistake in them at once.
// In: the bytes of one file and a Go value to fill. Out: the value, and findings with file, line, column, field, rule and remedy. The package
// doesn't panic for any content of a file.
package strictyaml

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/openpai/paictl/pkg/ui/plural"
)

// Severity determines whether a command continues after a finding.
type Severity string

// The severities. A command continues after a warning.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is one mistake or doubtful setting in a file.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`   // from 1; 0 if the finding has no place
	Column   int      `json:"column,omitempty"` // from 1
	Field    string   `json:"field,omitempty"`  // such as machine-list[2].hostip
	Rule     string   `json:"rule"`             // stable name, such as layout/duplicate-hostip
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy,omitempty"`
	// Derived means that the file doesn't contain the section of the field. The field's value then follows from other fields.
	Derived bool `json:"-"`
}

// String returns the finding on one line in the format of a compiler's message, without the remedy.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
	}
	b.WriteString(": ")
	if f.Severity == Warning {
		b.WriteString("warning: ")
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	fmt.Fprintf(&b, "%s [%s]", f.Message, f.Rule)
	return b.String()
}

// Findings contains findings about one or more files. It implements error.
type Findings []Finding

// Error lists all findings, each with its remedy.
func (fs Findings) Error() string {
	var b strings.Builder
	if len(fs) > 1 {
		what := fs[0].File
		if slices.ContainsFunc(fs, func(f Finding) bool { return f.File != what }) {
			what = "the configuration"
		}
		b.WriteString(what + " has " + fs.Summary() + "\n")
	}
	_ = fs.Write(&b)
	return strings.TrimSuffix(b.String(), "\n")
}

// Summary returns the number of findings by severity, for example "2 problems, 1 warning".
func (fs Findings) Summary() string {
	var parts []string
	if n := len(fs.Errors()); n > 0 {
		parts = append(parts, plural.Of(n, "problem"))
	}
	if n := len(fs.Warnings()); n > 0 {
		parts = append(parts, plural.Of(n, "warning"))
	}
	if len(parts) == 0 {
		return "no problems"
	}
	return strings.Join(parts, ", ")
}

// ExitCode returns 1.
func (fs Findings) ExitCode() int { return 1 }

// Write prints each finding on one line, with its remedy on the next line.
func (fs Findings) Write(w io.Writer) error {
	for _, f := range fs {
		line := f.String() + "\n"
		if f.Remedy != "" {
			line += "  -> " + f.Remedy + "\n"
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// Err returns the findings as an error if any has the severity Error, otherwise nil.
func (fs Findings) Err() error {
	if len(fs.Errors()) == 0 {
		return nil
	}
	return fs
}

// Errors returns the findings of severity Error.
func (fs Findings) Errors() Findings { return fs.with(Error) }

// Warnings returns the findings of severity Warning.
func (fs Findings) Warnings() Findings { return fs.with(Warning) }

func (fs Findings) with(s Severity) Findings {
	var out Findings
	for _, f := range fs {
		if f.Severity == s {
			out = append(out, f)
		}
	}
	return out
}

// Sort sorts findings by file, line and column. Findings at the same position keep their order.
func (fs Findings) Sort() {
	sort.SliceStable(fs, func(i, j int) bool {
		a, b := fs[i], fs[j]
		switch {
		case a.File != b.File:
			return a.File < b.File
		case a.Line != b.Line:
			return a.Line < b.Line
		default:
			return a.Column < b.Column
		}
	})
}
