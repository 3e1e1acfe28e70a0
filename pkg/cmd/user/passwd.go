package user

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
)

// PasswdOptions are those of "paictl user passwd".
type PasswdOptions struct {
	Factory  *cmdutil.Factory
	Kube     kube.Options
	Name     string
	Password passwordFlags
}

// NewCmdPasswd returns "paictl user passwd". runF replaces the run in tests.
func NewCmdPasswd(f *cmdutil.Factory, runF func(context.Context, *PasswdOptions) error) *cobra.Command {
	opts := &PasswdOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "passwd NAME",
		Short: "Set a person's password, and end the person's sessions",
		Long: `Sets the password. All sessions of the person end at once; application tokens stay, revoke them with "paictl token revoke".

The password is asked for on the terminal, or read with --password-stdin, or made with --generate-password.`,
		Example: `  paictl user passwd ann
  paictl user passwd ann --generate-password`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := opts.Password.check(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return passwdRun(cmd.Context(), opts)
		},
		ValidArgsFunction: CompleteUsers(f, &opts.Kube, false),
	}
	opts.Password.add(cmd, false)
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	return cmd
}

func passwdRun(ctx context.Context, opts *PasswdOptions) error {
	p, err := Open(opts.Factory, opts.Kube)
	if err != nil {
		return err
	}
	if _, err := p.User(ctx, opts.Name); err != nil {
		return p.Explain(err)
	}
	chosen, err := opts.Password.get(opts.Factory.IO, opts.Name)
	if err != nil {
		return err
	}
	if err := p.SetPassword(ctx, opts.Name, chosen); err != nil {
		return p.Explain(err)
	}
	if opts.Password.Generate {
		fmt.Fprintf(opts.Factory.IO.Out, "The password of %s is shown once: %s\n", opts.Name, chosen.Reveal())
		return nil
	}
	fmt.Fprintf(opts.Factory.IO.Out, "The password of %s is set, and all sessions have ended.\n", opts.Name)
	return nil
}
