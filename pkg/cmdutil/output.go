package cmdutil

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/terminal"
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
		return writeJSON(w, v)
	case "yaml":
		// By way of JSON, as yaml.Marshal goes; that one refuses what isn't escaped.
		var text bytes.Buffer
		if err := writeJSON(&text, v); err != nil {
			return err
		}
		b, err := yaml.JSONToYAML(text.Bytes())
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	case "name":
		for _, r := range t.Rows {
			fmt.Fprintln(w, terminal.Word(r[0]))
		}
		return nil
	default:
		return t.write(w)
	}
}

// writeJSON prints v. encoding/json escapes half of the characters that a terminal obeys; here are the rest.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, r := range b.String() {
		if r != '\n' && terminal.Hidden(r) { // only ends of lines stand outside of strings
			fmt.Fprintf(&out, "\\u%04x", r)
			continue
		}
		out.WriteRune(r)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// write prints the table. What is in it may come from objects that others wrote.
func (t Table) write(w io.Writer) error {
	rows := NewRows(w)
	if len(t.Header) > 0 {
		rows.Add(t.Header...)
	}
	for _, r := range t.Rows {
		rows.Add(r...)
	}
	return rows.Flush()
}

// Rows writes aligned columns. Each cell is one line of plain text, whoever wrote what is in it.
type Rows struct{ tw *tabwriter.Writer }

// NewRows writes to w once it is flushed.
func NewRows(w io.Writer) *Rows { return &Rows{tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)} }

// Add adds a row.
func (r *Rows) Add(cells ...string) {
	clean := make([]string, len(cells))
	for i, c := range cells {
		clean[i] = c[:len(c)-len(strings.TrimLeft(c, " "))] + terminal.Line(c) // what belongs to the row above is indented
	}
	fmt.Fprintln(r.tw, strings.Join(clean, "\t"))
}

// Flush aligns the rows since the last time.
func (r *Rows) Flush() error { return r.tw.Flush() }
