package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/people/token"
)

// RevokeOptions are the options of "paictl token revoke".
type RevokeOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	IDs        []string
	User       string
	All        bool
}

// NewCmdRevoke returns "paictl token revoke".
func NewCmdRevoke(f *cmdutil.Factory) *cobra.Command {
	opts := &RevokeOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "revoke ID...",
		Short: "End tokens and sessions, at once",
		Long: `Ends tokens and sessions by the ids of "paictl token list". Requests with them are refused within a second, and streams
that were opened with them end.

--all --user NAME ends all of a person. A token that leaked may be given on stdin, as the ID "-".`,
		Example: `  paictl token revoke 5k2q7mzv3c6xw4htyd2p
  paictl token revoke --user bob --all
  paictl token revoke - <leaked-token`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.IDs = args
			switch {
			case opts.All && (opts.User == "" || len(args) > 0):
				return cmdutil.Usagef("--all requires --user, and takes no ids")
			case !opts.All && len(args) == 0:
				return cmdutil.Usagef("name ids of tokens (see: paictl token list), or give --user and --all")
			}
			return revokeRun(cmd.Context(), opts)
		},
		ValidArgsFunction: f.Complete(0, func(ctx context.Context, _ []string) (out []string, _ error) {
			t, err := open(f, opts.Connection, "")
			if err != nil {
				return nil, err
			}
			all, err := t.list(ctx, opts.User)
			for i := range all {
				out = append(out, all[i].ID+"\t"+all[i].User+" "+all[i].Label)
			}
			return out, err
		}),
	}
	cmd.Flags().StringVar(&opts.User, "user", "", "only if they are this person's")
	cmd.Flags().BoolVar(&opts.All, "all", false, "all tokens and sessions of the person")
	_ = cmd.RegisterFlagCompletionFunc("user", user.CompleteUsers(f, &opts.Connection, cmdutil.FlagValue))
	opts.Connection.AddFlags(f, cmd)
	return cmd
}

// maxToken limits the number of bytes that are read from stdin. Every token is shorter.
const maxToken = 8192

func revokeRun(ctx context.Context, opts *RevokeOptions) error {
	t, err := open(opts.Factory, opts.Connection, "")
	if err != nil {
		return err
	}
	streams := opts.Factory.IO
	if opts.All {
		all, err := t.list(ctx, opts.User)
		if err != nil {
			return err
		}
		for i := range all {
			if err := t.revoke(ctx, "", all[i].ID); err != nil && !errors.Is(err, errNone) {
				return err
			}
		}
		fmt.Fprintf(streams.Out, "%d of %s revoked.\n", len(all), opts.User)
		return nil
	}
	for _, id := range opts.IDs {
		if id == "-" {
			b, err := io.ReadAll(io.LimitReader(streams.In, maxToken))
			if err != nil {
				return fmt.Errorf("read the token from stdin: %w", err)
			}
			id = strings.TrimSpace(string(b))
		}
		if id, err = token.IDOf(id); err != nil {
			return hint.Wrap(err, "see the ids with: paictl token list")
		}
		if err := t.revoke(ctx, opts.User, id); err != nil {
			return err
		}
		fmt.Fprintf(streams.Out, "%s is revoked.\n", id)
	}
	return nil
}

// RotateOptions are the options of "paictl token rotate-keys".
type RotateOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Revoke     bool
}

// NewCmdRotateKeys returns "paictl token rotate-keys".
func NewCmdRotateKeys(f *cmdutil.Factory) *cobra.Command {
	opts := &RotateOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "rotate-keys",
		Short: "Sign tokens with a new key",
		Long: `The server makes a new key every 30 days by itself. This makes one now; tokens that were signed with an earlier key stay valid.

Use --revoke if a key leaked: tokens that earlier keys signed are refused at once, so everyone has to sign in again. Application
tokens are recognized by their hash, and stay valid.`,
		Example: `  paictl token rotate-keys
  paictl token rotate-keys --revoke`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return rotateRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Revoke, "revoke", false, "refuse tokens that earlier keys signed, and end all sessions")
	opts.Connection.AddFlags(f, cmd)
	return cmd
}

func rotateRun(ctx context.Context, opts *RotateOptions) error {
	t, err := open(opts.Factory, opts.Connection, "")
	if err != nil {
		return err
	}
	if err := t.server.RotateKeys(ctx, opts.Revoke); err != nil {
		return err
	}
	text := "There is a new key; tokens that were signed before stay valid."
	if opts.Revoke {
		text = "There is a new key, and all sessions have ended."
	}
	fmt.Fprintln(opts.Factory.IO.Out, text)
	return nil
}
