package job

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/people/template"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// TemplateListOptions are the options of "paictl job template list".
type TemplateListOptions struct {
	Factory *cmdutil.Factory
	Flags   TemplateFlags
	Mine    bool
	Author  string
	Keyword string
	Output  cmdutil.Output
}

func newCmdTemplateList(f *cmdutil.Factory) *cobra.Command {
	opts := &TemplateListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the templates that you may use",
		Long: `Lists your templates, those that are shared with you, and those that are for everyone. The built-in ones come last;
"--author @catalogue" lists only them.`,
		Example: `  paictl job template list
  paictl job template list --mine
  paictl job template list --author @catalogue
  paictl job template list --author ann --keyword bert -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Mine && opts.Author != "" {
				return cmdutil.Usagef("give --mine or --author, not both (see %s --help)", cmd.CommandPath())
			}
			return templateListRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().BoolVar(&opts.Mine, "mine", false, "only yours")
	cmd.Flags().StringVar(&opts.Author, "author", "", "only templates of this person")
	cmd.Flags().StringVar(&opts.Keyword, "keyword", "", "only templates with this text in name, author or summary")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	return cmd
}

func templateListRun(ctx context.Context, opts *TemplateListOptions) error {
	c, me, err := opts.Flags.openTemplates(ctx, opts.Factory)
	if err != nil {
		return err
	}
	if opts.Mine {
		opts.Author = me
	}
	all, err := c.Templates(ctx, opts.Author, "", opts.Keyword)
	if err != nil {
		return err
	}
	t := cmdutil.Table{Header: []string{"NAME", "FOR", "USES", "STARS", "CHANGED", "SUMMARY"}}
	for i := range all {
		one := &all[i]
		t.Rows = append(t.Rows, []string{titled(one), sharedWith(one), strconv.FormatInt(one.Uses, 10), strconv.Itoa(one.Stars), changedAt(one, time.DateOnly), cmp.Or(one.Summary, "-")})
	}
	return opts.Output.Write(opts.Factory.IO.Out, api.Templates{Items: all}, t)
}

// changedAt formats the time of the last change to a template. Built-in templates have no such time.
func changedAt(t *api.Template, layout string) string {
	if t.BuiltIn {
		return "built in"
	}
	return t.Updated.Local().Format(layout)
}

// TemplateShowOptions are the options of "paictl job template show".
type TemplateShowOptions struct {
	Factory *cmdutil.Factory
	Flags   TemplateFlags
	Name    string
	Config  bool
	Output  cmdutil.Output
}

func newCmdTemplateShow(f *cmdutil.Factory) *cobra.Command {
	opts := &TemplateShowOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the description and the job file of a template",
		Example: `  paictl job template show ann/train
  paictl job template show ann/train --config > my-train.yaml
  paictl job template show jupyter --config > jupyter.yaml
  paictl job template show train -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeTemplates(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if opts.Config && !opts.Output.Is("text") {
				return cmdutil.Usagef("give --config or -o, not both (see %s --help)", cmd.CommandPath())
			}
			return templateShowRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().BoolVar(&opts.Config, "config", false, "print the job file alone")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func templateShowRun(ctx context.Context, opts *TemplateShowOptions) error {
	c, me, err := opts.Flags.openTemplates(ctx, opts.Factory)
	if err != nil {
		return err
	}
	t, err := resolveTemplate(ctx, c, me, opts.Name)
	if err != nil {
		return err
	}
	out := opts.Factory.IO.Out
	switch {
	case opts.Config:
		if _, err := io.WriteString(terminal.Plain(out), t.Job); err != nil {
			return err
		}
	case opts.Output.Is("text"):
		return writeTemplate(out, t)
	default:
		return opts.Output.Write(out, t, cmdutil.Table{})
	}
	if template.Masked(t.Job) {
		opts.Factory.IO.Say("its secrets are masked: write them into the file before it is submitted")
	}
	return nil
}

// writeTemplate prints a template for a person. All fields are printed as plain text, because other users may have written them.
func writeTemplate(out io.Writer, t *api.Template) error {
	r := cmdutil.NewRows(out)
	for _, row := range [][2]string{
		{"Name:", titled(t)}, {"Summary:", t.Summary}, {"For:", sharedWith(t)}, {"Type:", t.Type}, {"Data:", strings.TrimSpace(t.DataType + " " + t.DataURL)},
		{"Categories:", strings.Join(t.Categories, ", ")}, {"Tags:", strings.Join(t.Tags, ", ")}, {"Uses:", strconv.FormatInt(t.Uses, 10)}, {"Stars:", strconv.Itoa(t.Stars)},
		{"Changed:", changedAt(t, time.DateTime)}, {"ID:", t.ID},
	} {
		if row[1] != "" {
			r.Add(row[0], row[1])
		}
	}
	if err := r.Flush(); err != nil {
		return err
	}
	for _, text := range []string{t.Description, t.Job} {
		if text = strings.TrimRight(terminal.Text(text), "\n"); text != "" {
			if _, err := fmt.Fprintf(out, "\n%s\n", text); err != nil {
				return err
			}
		}
	}
	return nil
}
