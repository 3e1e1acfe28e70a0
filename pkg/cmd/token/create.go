package token

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// CreateOptions are the options of "paictl token create".
type CreateOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	User       string
	Label      string
	Scopes     []string
	Life       time.Duration
}

// NewCmdCreate returns "paictl token create".
func NewCmdCreate(f *cmdutil.Factory) *cobra.Command {
	opts := &CreateOptions{Factory: f}
	var expires string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make an application token, and print it once",
		Long: `Prints the token on stdout. The token is not stored, only its hash is.

Scopes, read and submit without --scope:
  read     see jobs, usage, virtual clusters, storages
  submit   submit jobs, and stop, enter and delete those that the person may
  admin    see machines, pods and virtual clusters as an administrator; only for administrators
  secrets  credentials of storages, and keys of jobs

The token is valid until it is revoked. With --expires it ends by itself.`,
		Example: `  paictl token create --label nightly --expires 90d
  PAICTL_TOKEN=$(paictl token create --user ci --scope read --kubeconfig admin.conf)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if opts.Life, err = parseLife(expires); err != nil {
				return cmdutil.Usagef("--expires: %w", err)
			}
			if _, err := rules.ParseScopes(opts.Scopes); err != nil {
				return cmdutil.Usagef("--scope: %w", err)
			}
			return createRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.User, "user", "", "person whose token it is; needed with a kubeconfig")
	fl.StringVar(&opts.Label, "label", "", "purpose of the token, shown in the list")
	fl.StringSliceVar(&opts.Scopes, "scope", nil, "scope of the token: read, submit, admin, secrets (repeatable, or comma-separated)")
	fl.StringVar(&expires, "expires", "", "how long it is valid: 12h, 90d (default: until it is revoked)")
	_ = cmd.RegisterFlagCompletionFunc("user", user.CompleteUsers(f, &opts.Connection, cmdutil.FlagValue))
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"read", "submit", "admin", "secrets"}, cobra.ShellCompDirectiveNoFileComp))
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

// maxDays is the longest lifetime of a token in days. It is about a hundred years.
const maxDays = 36500

// parseLife parses the lifetime of a token, such as 12h or 90d. An empty text means that the token doesn't expire.
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
	t, err := open(opts.Factory, opts.Connection, opts.User)
	if err != nil {
		return err
	}
	made, err := t.create(ctx, opts.User, api.NewToken{Label: opts.Label, Scopes: opts.Scopes, Seconds: int64(opts.Life / time.Second)})
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	if !opts.Output.Is("text") {
		return opts.Output.Write(io.Out, struct {
			api.TokenRecord
			Token string `json:"token"`
		}{made.Record, made.Token}, cmdutil.Table{})
	}
	fmt.Fprintf(io.Err, "Token %s of %s, valid %s. It is shown once.\n", made.Record.ID, made.Record.User, until(made.Record.Expires))
	fmt.Fprintln(io.Out, made.Token)
	return nil
}

func until(t *time.Time) string {
	if t == nil {
		return "until it is revoked"
	}
	return "until " + t.Local().Format(time.DateTime)
}
