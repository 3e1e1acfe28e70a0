// Package token contains the commands "paictl token ...", which manage the tokens that programs send to the server instead of a password.
// In: flags, a kubeconfig. Out: a token, shown once; lists of tokens without their values.
package token

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// NewCmdToken returns "paictl token".
func NewCmdToken(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create and revoke the tokens that programs use",
		Long: `An application token lets a program act for a person: PAICTL_TOKEN for paictl, "Authorization: Bearer" for the REST API. Its
scopes restrict the permissions of the person. It can never manage people, groups or tokens.

If you signed in with "paictl login", these commands are about your own tokens, unless you are an administrator and name another
person. With a kubeconfig they are about everyone's.`,
		Example: `  paictl token create --user ci --label nightly --expires 90d
  paictl token create --user grafana --scope read
  paictl token list --user ci
  paictl token revoke 5k2q7mzv3c6xw4htyd2p`,
	}
	cmd.AddCommand(NewCmdCreate(f), NewCmdList(f), NewCmdRevoke(f), NewCmdRotateKeys(f), NewCmdApprove(f))
	return cmd
}

// tokens gives access to the tokens on a cluster's server.
type tokens struct {
	server   *client.Server
	operator bool
}

// open connects to the server of a cluster. as is the user for whom an operator creates a token. It may be "".
func open(f *cmdutil.Factory, fl connection.Flags, as string) (*tokens, error) {
	w, err := connection.Open(f, fl.Kube, fl.Server, as)
	if err != nil {
		return nil, err
	}
	return &tokens{w.Server, w.Operator}, nil
}

// create creates an application token for a user. If user is empty, the token is for the user who has signed in.
func (t *tokens) create(ctx context.Context, user string, n api.NewToken) (*api.IssuedToken, error) {
	switch {
	case t.operator && user == "":
		return nil, cmdutil.Usagef("--user is needed with a kubeconfig: a token belongs to a person")
	case !t.operator && user != "":
		me, err := t.server.WhoAmI(ctx)
		if err != nil {
			return nil, err
		}
		if me.Name != user {
			return nil, hint.Errorf("let "+user+" make it; or use the cluster's kubeconfig: --kubeconfig FILE", "people who have signed in make tokens for themselves alone")
		}
	}
	return t.server.NewToken(ctx, n)
}

// list returns the tokens of a user. If user is empty, it returns the tokens of the signed-in user, or the tokens of all users with a
// kubeconfig.
func (t *tokens) list(ctx context.Context, user string) ([]api.TokenRecord, error) {
	out, err := t.server.TokenRecords(ctx, user, t.operator && user == "")
	if err != nil {
		return nil, err
	}
	return out.Items, nil
}

// errNone is the error if there is no token with the given ID.
var errNone = errors.New("there is no such token")

// revoke revokes the token with the given ID. If user isn't empty, the token must belong to this user.
func (t *tokens) revoke(ctx context.Context, user, id string) error {
	if user != "" {
		all, err := t.list(ctx, user)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(r api.TokenRecord) bool { return r.ID == id }) {
			return none(id)
		}
	}
	err := t.server.RevokeToken(ctx, id)
	if e, ok := errors.AsType[*client.Error](err); ok && e.Body.Code == client.CodeNoToken {
		return none(id)
	}
	return err
}

func none(id string) error {
	return hint.Wrap(fmt.Errorf("%s: %w", id, errNone), "see the ids with: paictl token list")
}
