package user

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/secret"
)

// PasswdOptions are the options of "paictl user passwd".
type PasswdOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Name       string
	Password   passwordFlags
}

// NewCmdPasswd returns "paictl user passwd".
func NewCmdPasswd(f *cmdutil.Factory) *cobra.Command {
	opts := &PasswdOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "passwd [NAME]",
		Short: "Set a password, and end the person's sessions",
		Long: `Sets the password of a person, or your own if you are signed in and give no name. All sessions of the person end at once;
application tokens stay valid, revoke them with "paictl token revoke".

paictl asks for the password on the terminal, reads it with --password-stdin, or makes one with --generate-password. To change your
own, you also need the old password; with --password-stdin it is the first line, and the new one the second.`,
		Example: `  paictl user passwd
  paictl user passwd ann
  paictl user passwd ann --generate-password`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			if err := opts.Password.check(); err != nil {
				return err
			}
			return passwdRun(cmd.Context(), opts)
		},
		ValidArgsFunction: CompleteUsers(f, &opts.Connection, 1),
	}
	opts.Password.add(cmd, false)
	opts.Connection.AddFlags(f, cmd)
	return cmd
}

func passwdRun(ctx context.Context, opts *PasswdOptions) error {
	p, err := Open(opts.Factory, opts.Connection)
	if err != nil {
		return err
	}
	me, err := p.Me(ctx)
	if err != nil {
		return err
	}
	opts.Name = cmp.Or(opts.Name, me)
	if opts.Name == "" {
		return cmdutil.Usagef("name a person: with a kubeconfig you don't have a user of the cluster")
	}
	if _, err := p.User(ctx, opts.Name); err != nil {
		return err
	}
	var old secret.String
	if opts.Name == me {
		if old, err = opts.Password.old(opts.Factory.IO); err != nil {
			return err
		}
	}
	chosen, err := opts.Password.get(opts.Factory.IO, opts.Name)
	if err != nil {
		return err
	}
	if err := p.SetPassword(ctx, opts.Name, old, chosen); err != nil {
		return err
	}
	if opts.Password.Generate {
		fmt.Fprintf(opts.Factory.IO.Out, "The password of %s is shown once: %s\n", opts.Name, chosen.Reveal())
	} else {
		fmt.Fprintf(opts.Factory.IO.Out, "The password of %s is set, and all sessions have ended.\n", opts.Name)
	}
	if opts.Name == me {
		opts.Factory.IO.Say("Sign in again: paictl login")
	}
	return nil
}
