package token

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/token"
)

// ListOptions are those of "paictl token list".
type ListOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Output  cmdutil.Output
	User    string
}

// NewCmdList returns "paictl token list". runF replaces the run in tests.
func NewCmdList(f *cmdutil.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens and sessions",
		Long:  `Shows what is known of application tokens, of sessions of paictl, and of browsers; never the tokens. USED is exact to ten minutes.`,
		Example: `  paictl token list
  paictl token list --user ci -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return listRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.User, "user", "", "only those of this person")
	_ = cmd.RegisterFlagCompletionFunc("user", user.CompleteUsers(f, &opts.Kube, true))
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	c, err := open(ctx, opts.Kube)
	if err != nil {
		return err
	}
	if opts.User != "" {
		if _, err := c.people.Person(opts.User); err != nil {
			return err
		}
	}
	all := c.tokens.Of(opts.User)
	t := cmdutil.Table{Header: []string{"ID", "USER", "KIND", "SCOPES", "CREATED", "EXPIRES", "USED", "LABEL"}}
	for _, r := range all {
		scopes := make([]string, len(r.Scopes))
		for i, s := range r.Scopes {
			scopes[i] = string(s)
		}
		t.Rows = append(t.Rows, []string{r.ID, r.User, string(r.Kind), cmp.Or(strings.Join(scopes, ","), "-"), at(r.Created, "-"), at(r.Expires, "never"), at(r.Used, "-"),
			cmp.Or(r.Label, r.Client, "-")})
	}
	return opts.Output.Write(opts.Factory.IO.Out, struct {
		Items []token.Record `json:"items"`
	}{all}, t)
}

func at(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format("2006-01-02 15:04")
}
