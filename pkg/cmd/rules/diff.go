package rules

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// DiffOptions are the options of "paictl rules diff".
type DiffOptions struct {
	IO       *iostreams.IOStreams
	Kube     kube.Options
	Output   cmdutil.Output
	File     string
	Builtin  bool
	ExitCode bool
}

// differs is the output of "diff -o json".
type differs struct {
	From    string       `json:"from"`
	To      string       `json:"to"`
	Differ  bool         `json:"differ"`
	Changes []ruleChange `json:"changes"`
	Diff    string       `json:"diff,omitempty"`
}

// NewCmdDiff returns "paictl rules diff".
func NewCmdDiff(f *cmdutil.Factory) *cobra.Command {
	opts := &DiffOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "diff [FILE]",
		Short: "Show how a file differs from the rules of the cluster",
		Long: `Prints which rules a push of FILE would add, remove, change or move, and a unified diff from the rules
of the cluster. With --builtin it compares with the built-in rules instead, and connects to no cluster. Without
FILE it shows how the cluster's rules differ from the built-in ones.`,
		Example: `  paictl rules diff rules.yaml
  paictl rules diff rules.yaml --builtin
  paictl rules diff --exit-code || echo "the cluster has rules of its own"`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.File = args[0]
			}
			if opts.File == "" && opts.Builtin {
				return cmdutil.Usagef("--builtin needs a file to compare (see %s --help)", cmd.CommandPath())
			}
			return diffRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmd.Flags().BoolVar(&opts.Builtin, "builtin", false, "compare with the built-in rules")
	cmd.Flags().BoolVar(&opts.ExitCode, "exit-code", false, "exit with code 6 if they differ")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func diffRun(ctx context.Context, opts *DiffOptions) error {
	fromName, from := rules.File, rules.BuiltinText()
	toName, to := opts.File, []byte(nil)
	if opts.File != "" {
		var err error
		if _, to, _, err = load(opts.IO.In, opts.File); err != nil {
			return err
		}
	}
	if !opts.Builtin {
		h, err := open(ctx, opts.Kube)
		if err != nil {
			return err
		}
		if opts.File == "" {
			toName, to = h.text()
		} else {
			fromName, from = h.text()
		}
	}
	d := compare(fromName, toName, from, to)
	if err := d.tell(opts); err != nil {
		return err
	}
	if opts.ExitCode && d.Differ {
		return &cmdutil.CodeError{Err: errors.New("the rules differ"), Code: cmdutil.ExitPending, Silent: true}
	}
	return nil
}

func compare(fromName, toName string, from, to []byte) differs {
	a, _ := rules.Parse(fromName, from) // rules that can't be read have no changes to name
	b, _ := rules.Parse(toName, to)
	d := differs{From: fromName, To: toName, Diff: unified(fromName, toName, from, to), Changes: []ruleChange{}}
	d.Differ = d.Diff != ""
	if a != nil && b != nil {
		d.Changes = append(d.Changes, changes(a, b)...)
	}
	return d
}

func (d *differs) tell(opts *DiffOptions) error {
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.IO.Out, d, cmdutil.Table{})
	}
	if !d.Differ {
		fmt.Fprintf(opts.IO.Err, "%s: the same as %s\n", d.To, d.From)
		return nil
	}
	return d.write(opts.IO.Out, opts.IO.Err)
}

// write prints the diff to out, and the list of affected rules to err.
func (d *differs) write(out, err io.Writer) error {
	if _, e := io.WriteString(out, d.Diff); e != nil {
		return e
	}
	for _, c := range d.Changes {
		fmt.Fprintf(err, "%s: %d %s\n", c.Action, c.Code, c.Phrase)
	}
	return nil
}
