package token

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// ListOptions are the options of "paictl token list".
type ListOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	User       string
}

// NewCmdList returns "paictl token list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens and sessions",
		Long: `Lists application tokens, and sessions of paictl and of browsers, without the tokens themselves. USED is exact to ten minutes.

If you are signed in, it lists your own; administrators can list another person's with --user.`,
		Example: `  paictl token list
  paictl token list --user ci -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.User, "user", "", "only those of this person")
	_ = cmd.RegisterFlagCompletionFunc("user", user.CompleteUsers(f, &opts.Connection, cmdutil.FlagValue))
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	tokens, err := open(opts.Factory, opts.Connection, "")
	if err != nil {
		return err
	}
	all, err := tokens.list(ctx, opts.User)
	if err != nil {
		return err
	}
	t := cmdutil.Table{Header: []string{"ID", "USER", "KIND", "SCOPES", "CREATED", "EXPIRES", "USED", "LABEL"}}
	for _, r := range all {
		t.Rows = append(t.Rows, []string{r.ID, r.User, r.Kind, cmp.Or(strings.Join(r.Scopes, ","), "-"), at(&r.Created, "-"), at(r.Expires, "never"), at(r.Used, "-"),
			cmp.Or(r.Label, r.Client, "-")})
	}
	return opts.Output.Write(opts.Factory.IO.Out, struct {
		Items []api.TokenRecord `json:"items"`
	}{all}, t)
}

func at(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return t.Local().Format("2006-01-02 15:04")
}
