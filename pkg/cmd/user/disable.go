package user

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// newCmdDisable returns "paictl user disable" or "paictl user enable".
func newCmdDisable(f *cmdutil.Factory, disable bool) *cobra.Command {
	var o connection.Flags
	cmd := &cobra.Command{
		Use:   "enable NAME...",
		Short: "Allow disabled people to sign in again",
		Long:  `They sign in as before. Their application tokens are valid again; their sessions have ended.`,
		Example: `  paictl user enable bob
  paictl user enable bob eve`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return each(cmd.Context(), f, o, args, func(ctx context.Context, p *People, name string) (string, error) {
				_, err := p.Update(ctx, name, func(s *v1.UserSpec) error {
					s.Disabled = disable
					return nil
				})
				if disable {
					return name + " is disabled, and all sessions have ended.", err
				}
				return name + " is enabled.", err
			})
		},
		ValidArgsFunction: CompleteUsers(f, &o, 0),
	}
	if disable {
		cmd.Use, cmd.Short = "disable NAME...", "Keep people from signing in, until they are enabled"
		cmd.Long = `Their sessions end and their tokens are refused, at once. Their jobs continue: stop them with "paictl job stop".`
		cmd.Example = `  paictl user disable bob
  paictl user disable bob eve`
	}
	o.AddFlags(f, cmd)
	return cmd
}

// each calls do for each user, and continues after an error.
func each(ctx context.Context, f *cmdutil.Factory, o connection.Flags, names []string, do func(context.Context, *People, string) (string, error)) error {
	p, err := Open(f, o)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		done, err := do(ctx, p, name)
		if err != nil {
			failed = append(failed, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		fmt.Fprintln(f.IO.Out, done)
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

// RemoveOptions are the options of "paictl user remove".
type RemoveOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Names      []string
	Yes        bool
}

// NewCmdRemove returns "paictl user remove".
func NewCmdRemove(f *cmdutil.Factory) *cobra.Command {
	opts := &RemoveOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove people, with their passwords, tokens and job templates, and stop their jobs",
		Long: `Removes people. Their passwords and tokens are deleted, and can't be restored. Their jobs are stopped, and stay in the history.
Their job templates are removed, also those that others use: save a copy first with "paictl job template show NAME --config".
The name stays reserved, because jobs have it.

The last administrator can't be removed.`,
		Example: `  paictl user remove bob
  paictl user remove bob eve --yes`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Names = args
			return removeRun(cmd.Context(), opts)
		},
		ValidArgsFunction: CompleteUsers(f, &opts.Connection, 0),
	}
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "don't ask")
	opts.Connection.AddFlags(f, cmd)
	return cmd
}

func removeRun(ctx context.Context, opts *RemoveOptions) error {
	what := "the removal of " + opts.Names[0]
	if n := len(opts.Names); n > 1 {
		what = "the removal of " + plural.Of(n, "person")
	}
	if err := prompt.Confirm(opts.Factory.IO, opts.Yes, what, "Remove "+listed(opts.Names)+" with passwords, tokens and job templates, and stop their jobs?"); err != nil {
		return err
	}
	return each(ctx, opts.Factory, opts.Connection, opts.Names, func(ctx context.Context, p *People, name string) (string, error) {
		return name + " is removed, and their jobs are stopped.", p.Remove(ctx, name)
	})
}
