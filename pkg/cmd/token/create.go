package token

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
)

// CreateOptions are those of "paictl token create".
type CreateOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Output  cmdutil.Output
	User    string
	Label   string
	Scopes  []string
	Life    time.Duration
}

// NewCmdCreate returns "paictl token create". runF replaces the run in tests.
func NewCmdCreate(f *cmdutil.Factory, runF func(context.Context, *CreateOptions) error) *cobra.Command {
	opts := &CreateOptions{Factory: f}
	var expires string
	cmd := &cobra.Command{
		Use:   "create --user NAME",
		Short: "Make an application token, and print it once",
		Long: `Prints the token on stdout. It is stored nowhere: only its hash is kept.

Scopes, read and submit without --scope:
  read     see jobs, usage, virtual clusters, storages
  submit   submit jobs, and stop, enter and delete those that the person may
  admin    what an administrator may see of machines and pods, and virtual clusters; only for administrators
  secrets  credentials of storages, and keys of jobs

The token is valid until it is revoked. With --expires it ends by itself.`,
		Example: `  paictl token create --user ci --label nightly --expires 90d
  PAICTL_TOKEN=$(paictl token create --user ci --scope read)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if opts.User == "" {
				return cmdutil.Usagef("--user is needed: a token is a person's")
			}
			if opts.Life, err = parseLife(expires); err != nil {
				return cmdutil.Usagef("--expires: %w", err)
			}
			if _, err := rules.ParseScopes(opts.Scopes); err != nil {
				return cmdutil.Usagef("--scope: %w", err)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return createRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.User, "user", "", "person whose token it is")
	fl.StringVar(&opts.Label, "label", "", "what it is for, shown in the list")
	fl.StringSliceVar(&opts.Scopes, "scope", nil, "what it may be used for: read, submit, admin, secrets (repeatable, or comma-separated)")
	fl.StringVar(&expires, "expires", "", "how long it is valid: 12h, 90d (default: until it is revoked)")
	_ = cmd.RegisterFlagCompletionFunc("user", user.CompleteUsers(f, &opts.Kube, true))
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"read", "submit", "admin", "secrets"}, cobra.ShellCompDirectiveNoFileComp))
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

// maxDays is a hundred years.
const maxDays = 36500

// parseLife reads 12h or 90d; nothing is without end.
func parseLife(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= maxDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= time.Minute && d <= maxDays*24*time.Hour {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a time of a minute or more, such as 12h or 90d", text)
}

func createRun(ctx context.Context, opts *CreateOptions) error {
	c, err := open(ctx, opts.Kube)
	if err != nil {
		return err
	}
	p, err := c.people.Person(opts.User)
	if err != nil {
		return err
	}
	if p.Disabled {
		return hint.Errorf("let them in with: paictl user enable "+p.Name, "%s is disabled, and so are their tokens", p.Name)
	}
	scopes, err := rules.ParseScopes(opts.Scopes)
	if err != nil {
		return err
	}
	if slices.Contains(scopes, rules.ScopeAdmin) && !p.Grants.Administrator {
		return fmt.Errorf("--scope admin is for administrators, and %s is none", p.Name)
	}
	made, err := c.tokens.Application(ctx, p, token.New{Label: opts.Label, Scopes: scopes, Life: opts.Life, Client: "paictl"})
	if err != nil {
		return c.Explain(err)
	}
	io := opts.Factory.IO
	if !opts.Output.Is("text") {
		return opts.Output.Write(io.Out, struct {
			token.Record
			Token string `json:"token"`
		}{made.Record, made.Token.Reveal()}, cmdutil.Table{})
	}
	fmt.Fprintf(io.Err, "Token %s of %s, valid %s. It is shown once.\n", made.Record.ID, p.Name, until(made.Record.Expires))
	fmt.Fprintln(io.Out, made.Token.Reveal())
	return nil
}

func until(t time.Time) string {
	if t.IsZero() {
		return "until it is revoked"
	}
	return "until " + t.Local().Format(time.DateTime)
}
