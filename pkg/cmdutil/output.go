package cmdutil

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Output is the value of -o: table, json, yaml or name.
type Output struct {
	format  string
	allowed []string
}

// AddOutputFlag adds -o/--output with the given formats; the first is the default.
func AddOutputFlag(cmd *cobra.Command, o *Output, formats ...string) {
	if len(formats) == 0 {
		formats = []string{"table", "json", "yaml", "name"}
	}
	o.format, o.allowed = formats[0], formats
	cmd.Flags().VarP(o, "output", "o", "output format: "+strings.Join(formats, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format.
func (o *Output) String() string { return o.format }

// Type names the value in help texts.
func (o *Output) Type() string { return "format" }

// Set refuses a format that the command doesn't know.
func (o *Output) Set(s string) error {
	if !slices.Contains(o.allowed, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(o.allowed, ", "))
	}
	o.format = s
	return nil
}

// Is tells whether the format is f.
func (o *Output) Is(f string) bool { return o.format == f }

// Table is what a listing shows to a person: a header and rows of equal length. The
// first column is the name.
type Table struct {
	Header []string
	Rows   [][]string
}

// Write prints v as JSON or YAML, or t as a table or its first column.
func (o *Output) Write(w io.Writer, v any, t Table) error {
	switch o.format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		b, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	case "name":
		for _, r := range t.Rows {
			fmt.Fprintln(w, r[0])
		}
		return nil
	default:
		return t.write(w)
	}
}

func (t Table) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if len(t.Header) > 0 {
		fmt.Fprintln(tw, strings.Join(t.Header, "\t"))
	}
	for _, r := range t.Rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	return tw.Flush()
}
