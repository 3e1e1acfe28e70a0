package user

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// SetOptions are the options of "paictl user set".
type SetOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Name       string
	// Email, DisplayName and DefaultVC are nil if they stay unchanged. Groups is used only if SetGroups is set.
	Email, DisplayName, DefaultVC *string
	Groups                        []string
	SetGroups                     bool
}

// NewCmdSet returns "paictl user set".
func NewCmdSet(f *cmdutil.Factory) *cobra.Command {
	opts := &SetOptions{Factory: f}
	var email, display, vc string
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change a person's e-mail address, display name, default virtual cluster or groups",
		Long: `Changes only the properties that you name. --group replaces all groups of the person; to add people to one group or remove
them from it, use "paictl group add-member" and "paictl group remove-member".

Jobs whose files name no virtual cluster run in the person's default virtual cluster, or in "default". People set their own;
administrators set it for others, too.`,
		Example: `  paictl user set ann --email ann@example.org
  paictl user set ann --group vision --group nlp
  paictl user set ann --default-vc vision
  paictl user set ann --display-name ""`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			fl := cmd.Flags()
			if fl.Changed("email") {
				opts.Email = &email
			}
			if fl.Changed("display-name") {
				opts.DisplayName = &display
			}
			if fl.Changed("default-vc") {
				opts.DefaultVC = &vc
			}
			opts.SetGroups = fl.Changed("group")
			if opts.Email == nil && opts.DisplayName == nil && opts.DefaultVC == nil && !opts.SetGroups {
				return cmdutil.Usagef("nothing to change: give --email, --display-name, --default-vc or --group")
			}
			return setRun(cmd.Context(), opts)
		},
		ValidArgsFunction: CompleteUsers(f, &opts.Connection, 1),
	}
	fl := cmd.Flags()
	fl.StringVar(&email, "email", "", "e-mail address")
	fl.StringVar(&display, "display-name", "", "full name, for display")
	fl.StringVar(&vc, "default-vc", "", "virtual cluster of jobs whose files don't name one; \"\" restores \"default\"")
	fl.StringSliceVar(&opts.Groups, "group", nil, "the groups that the person is in (repeatable, or comma-separated)")
	_ = cmd.RegisterFlagCompletionFunc("group", CompleteGroups(f, &opts.Connection, cmdutil.FlagValue))
	opts.Connection.AddFlags(f, cmd)
	return cmd
}

func setRun(ctx context.Context, opts *SetOptions) error {
	p, err := Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	u, err := p.Update(ctx, opts.Name, func(s *v1.UserSpec) error {
		if opts.Email != nil {
			s.Email = *opts.Email
		}
		if opts.DisplayName != nil {
			s.DisplayName = *opts.DisplayName
		}
		if opts.DefaultVC != nil {
			s.DefaultVirtualCluster = *opts.DefaultVC
		}
		if opts.SetGroups {
			s.Groups = opts.Groups
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(opts.Factory.IO.Out, "%s is in %s.\n", u.Name, listed(u.Groups))
	return nil
}
