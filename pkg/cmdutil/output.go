package cmdutil

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/ui/terminal"
)

// Output is the value of the flag -o: table, wide, json, yaml or name. A command may allow other formats.
type Output struct {
	format  string
	allowed []string
}

// AddOutputFlag adds -o/--output with the given formats. The first format is the default. Without formats, it allows table, wide, json, yaml and
// name.
func AddOutputFlag(cmd *cobra.Command, o *Output, formats ...string) {
	if len(formats) == 0 {
		formats = []string{"table", "wide", "json", "yaml", "name"}
	}
	o.format, o.allowed = formats[0], formats
	cmd.Flags().VarP(o, "output", "o", "output format: "+strings.Join(formats, "|"))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format.
func (o *Output) String() string { return o.format }

// Type returns the word that represents the value in help texts.
func (o *Output) Type() string { return "format" }

// Set sets the format. It returns an error if the command doesn't support the format.
func (o *Output) Set(s string) error {
	if !slices.Contains(o.allowed, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(o.allowed, ", "))
	}
	o.format = s
	return nil
}

// Is reports whether the format is f.
func (o *Output) Is(f string) bool { return o.format == f }

// IsTable reports whether the output is a table: either fitted to the terminal or in full width.
func (o *Output) IsTable() bool { return o.format == "table" || o.format == "wide" }

// Write prints v in the formats json and yaml, and t in the other formats: as a table, fitted to the terminal or in full width, or only its
// first column for name.
func (o *Output) Write(w io.Writer, v any, t Table) error {
	switch o.format {
	case "json":
		return writeJSON(w, v, "  ")
	case "yaml":
		// Convert from JSON, as yaml.Marshal does. yaml.Marshal itself can't be used, because it rejects control characters that aren't escaped.
		var text bytes.Buffer
		if err := writeJSON(&text, v, "  "); err != nil {
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
		return o.WriteTable(w, t)
	}
}

// WriteJSONLine prints v as JSON on one line. Commands use it for streams of objects.
func WriteJSONLine(w io.Writer, v any) error { return writeJSON(w, v, "") }

// writeJSON prints v as JSON. It escapes all characters that affect a terminal; encoding/json escapes only some of them.
func writeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, r := range b.String() {
		if r != '\n' && terminal.Hidden(r) { // newlines are only outside of strings
			fmt.Fprintf(&out, "\\u%04x", r)
			continue
		}
		out.WriteRune(r)
	}
	_, err := w.Write(out.Bytes())
	return err
}
