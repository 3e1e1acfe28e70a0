package rules

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// PushOptions are the options of "paictl rules push".
type PushOptions struct {
	IO     *iostreams.IOStreams
	Kube   kube.Options
	Output cmdutil.Output
	File   string
	Reset  bool
	DryRun bool
	Yes    bool
}

// pushed is the output of "push -o json".
type pushed struct {
	DryRun   bool                `json:"dryRun"`
	Changed  bool                `json:"changed"`
	Changes  []ruleChange        `json:"changes"`
	Warnings strictyaml.Findings `json:"warnings"`
}

// NewCmdPush returns "paictl rules push".
func NewCmdPush(f *cmdutil.Factory) *cobra.Command {
	opts := &PushOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Make a file the failure rules of the cluster",
		Long: `Checks the file, shows what changes, and replaces the rules of the cluster with it. Running jobs use the
new rules within a minute or two. A file with a mistake is refused; the job controller checks once more, and
would keep the last valid rules.

--reset goes back to the built-in rules.`,
		Example: `  paictl rules push rules.yaml --dry-run
  paictl rules push rules.yaml --yes
  paictl rules push --reset`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Reset == (len(args) > 0) {
				return cmdutil.Usagef("name a file, or go back to the built-in rules with --reset (see %s --help)", cmd.CommandPath())
			}
			if len(args) > 0 {
				opts.File = args[0]
			}
			return pushRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	fl := cmd.Flags()
	fl.BoolVar(&opts.Reset, "reset", false, "go back to the built-in rules")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "check, show what would change, and change nothing")
	fl.BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func pushRun(ctx context.Context, opts *PushOptions) error {
	name, text, warnings := rules.File, rules.BuiltinText(), strictyaml.Findings{}
	if !opts.Reset {
		_, data, findings, err := load(opts.IO.In, opts.File)
		if err != nil {
			return err
		}
		name, text, warnings = opts.File, data, append(warnings, findings...)
	}
	h, err := open(ctx, opts.Kube)
	if err != nil {
		return err
	}
	from, had := h.text()
	d := compare(from, name, had, text)
	p := pushed{DryRun: opts.DryRun, Changed: d.Differ, Changes: d.Changes, Warnings: warnings}
	if opts.Reset {
		p.Changed = h.object != nil
	}
	if opts.Output.Is("text") {
		_ = warnings.Write(opts.IO.Err) // the next write reports an error of stderr
		if err := d.write(opts.IO.Out, opts.IO.Err); err != nil {
			return err
		}
	}
	if p.Changed {
		if err := opts.apply(ctx, h, text); err != nil {
			return err
		}
	}
	return opts.tell(&p)
}

func (opts *PushOptions) apply(ctx context.Context, h *stored, text []byte) error {
	if !opts.DryRun {
		what := "changing the failure rules of context " + h.Context
		if err := prompt.Confirm(opts.IO, opts.Yes, what, "Use these rules in the cluster of context "+h.Context+"?"); err != nil {
			return err
		}
	}
	if opts.Reset {
		return h.remove(ctx, opts.DryRun)
	}
	return h.put(ctx, text, opts.DryRun)
}

func (opts *PushOptions) tell(p *pushed) error {
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.IO.Out, p, cmdutil.Table{})
	}
	switch {
	case !p.Changed:
		fmt.Fprintln(opts.IO.Err, "the cluster already has these rules")
	case opts.DryRun:
		fmt.Fprintln(opts.IO.Err, "nothing was changed (--dry-run)")
	default:
		fmt.Fprintln(opts.IO.Err, "the cluster now uses these rules; running jobs use them within a minute or two")
	}
	return nil
}
