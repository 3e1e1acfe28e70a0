package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Index is the name of the page with links to the other pages.
const Index = "README.md"

// Pages returns the reference as a map from file names to contents: a page for each command below root, which also describes all its
// subcommands, and Index. It depends only on the commands, and not on the machine or its user.
func Pages(root *cobra.Command) map[string]string {
	out := map[string]string{}
	var index strings.Builder
	index.WriteString("# Commands\n\nUse this reference to look up a command, its arguments and its flags. `" + root.Name() + " docs markdown` writes it from\n" +
		"the program; `" + root.Name() + " COMMAND --help` prints the same. [The command line](../cli.md) describes what all commands have\n" +
		"in common: output, exit codes, settings.\n")
	for _, group := range append(root.Groups(), &cobra.Group{Title: "Others:"}) {
		var rows strings.Builder
		for _, noun := range visible(root) {
			if noun.GroupID != group.ID {
				continue
			}
			file := noun.Name() + ".md"
			out[file] = page(noun)
			fmt.Fprintf(&rows, "| [%s](%s) | %s |\n", noun.CommandPath(), file, cell(noun.Short))
		}
		if rows.Len() > 0 {
			fmt.Fprintf(&index, "\n## %s\n\n| command | purpose |\n|---|---|\n%s", strings.TrimSuffix(group.Title, ":"), rows.String())
		}
	}
	if flags := flagRows(root.PersistentFlags()); flags != "" {
		index.WriteString("\n## Flags of every command\n\n" + flags)
	}
	out[Index] = index.String()
	return out
}

// visible returns the subcommands of c that are intended for users. It omits "help" and "completion", because cobra adds them when a command
// runs, so that the reference would depend on the caller.
func visible(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(c *cobra.Command) bool {
		return c.Hidden || c.Deprecated != "" || c.Name() == "help" || !c.HasParent() || c.Name() == "completion" && !c.Parent().HasParent()
	})
}

// page returns the page for a command and its subcommands.
func page(noun *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nUse this page to look up the arguments and flags of `%s`: %s.\n", noun.CommandPath(), noun.CommandPath(), lowerFirst(noun.Short))
	subs := visible(noun)
	if len(subs) == 0 {
		body(&b, noun)
		return b.String()
	}
	paragraphs(&b, noun.Long)
	b.WriteString("\n| command | purpose |\n|---|---|\n")
	var all []*cobra.Command
	for _, c := range subs {
		all = append(all, leaves(c)...)
	}
	for _, c := range all {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.CommandPath(), anchor(c), cell(c.Short))
	}
	for _, c := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
		body(&b, c)
	}
	return b.String()
}

// leaves returns the commands below c that have no visible subcommands, or c itself if it has no visible subcommands.
func leaves(c *cobra.Command) []*cobra.Command {
	subs := visible(c)
	if len(subs) == 0 {
		return []*cobra.Command{c}
	}
	var out []*cobra.Command
	for _, sub := range subs {
		out = append(out, leaves(sub)...)
	}
	return out
}

func body(b *strings.Builder, c *cobra.Command) {
	// cobra adds the help flag only when a command runs, but the usage line must not depend on whether the command has run.
	use := c.UseLine()
	if !strings.HasSuffix(use, "[flags]") && c.LocalNonPersistentFlags().HasAvailableFlags() && !strings.Contains(use, "--") {
		use += " [flags]"
	}
	fmt.Fprintf(b, "\n```text\n%s\n```\n", use)
	paragraphs(b, c.Long)
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(c.Example))
	}
	if rows := flagRows(c.NonInheritedFlags()); rows != "" {
		b.WriteString("\n" + rows)
	}
	var above pflag.FlagSet // flags of groups between the root and the command
	c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if c.Root().PersistentFlags().Lookup(f.Name) == nil {
			above.AddFlag(f)
		}
	})
	if rows := flagRows(&above); rows != "" {
		b.WriteString("\n" + rows)
	}
}

// paragraphs writes a long description. Indented lines become code blocks.
func paragraphs(b *strings.Builder, text string) {
	if text == "" {
		return
	}
	b.WriteString("\n")
	code := false
	fence := func() { b.WriteString("```\n"); code = !code }
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !code:
			if s := b.String(); !strings.HasSuffix(s, "\n\n") {
				b.WriteString("\n")
			}
			fence()
		case !indented && code:
			fence()
			if line != "" {
				b.WriteString("\n")
			}
		}
		if code {
			line = strings.TrimPrefix(line, "  ")
		} else {
			line = escaped.Replace(line)
		}
		b.WriteString(line + "\n")
	}
	if code {
		fence()
	}
}

func flagRows(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(name, "|", `\|`), cell(usage+byDefault(f)))
	})
	if b.Len() == 0 {
		return ""
	}
	return "| flag | meaning |\n|---|---|\n" + b.String()
}

// byDefault returns the default value of a flag, unless that is empty or the flag's text contains it.
func byDefault(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "false", "[]", "0s":
		return ""
	}
	if strings.Contains(f.Usage, "default") {
		return ""
	}
	return " (default " + f.DefValue + ")"
}

// cell escapes a text for a table.
func cell(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.ReplaceAll(escaped.Replace(s), "|", `\|`)
}

// escaped escapes characters that Markdown would read as a tag or an emphasis.
var escaped = strings.NewReplacer("<", "&lt;", "*", `\*`)

func anchor(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func lowerFirst(s string) string {
	if s == "" || len(s) > 1 && strings.ToUpper(s[:2]) == s[:2] { // an abbreviation
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func writePages(dir string, pages map[string]string) (int, error) {
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return 0, fmt.Errorf("write the reference of commands: %w", err)
		}
	}
	return len(pages), nil
}
