package token

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// ApproveOptions are the options of "paictl token approve".
type ApproveOptions struct {
	Factory *cmdutil.Factory
	Server  string
	Code    string
	// Yes approves the request of the program without asking the user. Refuse rejects the request.
	Yes, Refuse bool
}

// NewCmdApprove returns "paictl token approve".
func NewCmdApprove(f *cmdutil.Factory) *cobra.Command {
	opts := &ApproveOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "approve CODE",
		Short: "Sign in a program that shows a code, as yourself",
		Long: `Signs in the program that waits with a code, such as "paictl login --device" on another machine, as the person who
is signed in here. It shows which program that is, and from which address it came, and asks. The browser's page
/device does the same.

Approve only a sign-in that you have just started yourself. Anyone who sends you a code wants to be signed in as you.

You need a session of "paictl login": tokens of PAICTL_TOKEN and application tokens can't sign in programs.`,
		Example: `  paictl token approve BCDF-GHJK
  paictl token approve BCDF-GHJK --refuse`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Code = args[0]
			if opts.Yes && opts.Refuse {
				return cmdutil.Usagef("give --yes or --refuse, not both")
			}
			return approveRun(cmd.Context(), opts)
		},
	}
	connection.AddFlag(f, cmd, &opts.Server)
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "sign it in without asking")
	cmd.Flags().BoolVar(&opts.Refuse, "refuse", false, "refuse the program, so that it stops waiting")
	return cmd
}

func approveRun(ctx context.Context, opts *ApproveOptions) error {
	w, err := connection.Choose(opts.Factory, kube.Options{}, opts.Server)
	switch {
	case err != nil:
		return err
	case w == nil:
		return hint.Errorf("sign in: paictl login https://HOST", "you are not signed in")
	case w.Fixed:
		return hint.Errorf("unset "+connection.EnvToken+", and sign in: paictl login https://HOST", "a token of %s signs in no programs", connection.EnvToken)
	}
	p, err := w.Server.Waits(ctx, opts.Code)
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	io.Say("A program asks to be signed in as %s at %s:\n  program: %s\n  address: %s\n  begun:   %s", w.User, w.Server.Host(),
		cmp.Or(terminal.Line(p.Client), "not said"), terminal.Line(p.Address), p.Began.Local().Format(time.DateTime))
	if !opts.Refuse {
		io.Say("Approve it only if you have just started it yourself. Anyone who sent you a code wants to be signed in as you.")
		if err := prompt.Confirm(io, opts.Yes, "the sign-in of a program", "Sign it in?"); err != nil {
			return err
		}
	}
	// The session may have been renewed since the server was chosen, so the file is read again.
	file, err := connection.Store(opts.Factory).Read()
	if err != nil {
		return err
	}
	session := secret.String("")
	if at := file.Clusters[w.Name]; at != nil {
		session = at.Refresh
	}
	if err := w.Server.LetIn(ctx, opts.Code, !opts.Refuse, session); err != nil {
		return err
	}
	if opts.Refuse {
		io.Say("the program was refused")
	} else {
		io.Say("the program is signed in as %s; end its session with: paictl token list, paictl token revoke ID", w.User)
	}
	return nil
}
