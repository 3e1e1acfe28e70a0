// Package token has the commands "paictl token ...", for the tokens with which programs sign in to the server instead of a password.
// In: flags, a kubeconfig. Out: a token, shown once; lists of tokens.
package token

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmd/way"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// NewCmdToken returns "paictl token".
func NewCmdToken(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make and revoke the tokens that programs use",
		Long: `An application token lets a program act for a person: PAICTL_TOKEN for paictl, "Authorization: Bearer" for the REST API. Its
scopes narrow what the person may do. It never manages people, groups or tokens.

If you signed in with "paictl login", these commands are about your own tokens, unless you are an administrator and name another
person. With a kubeconfig they are about everyone's.`,
		Example: `  paictl token create --user ci --label nightly --expires 90d
  paictl token create --user grafana --scope read
  paictl token list --user ci
  paictl token revoke 5k2q7mzv3c6xw4htyd2p`,
	}
	cmd.AddCommand(NewCmdCreate(f, nil), NewCmdList(f, nil), NewCmdRevoke(f, nil), NewCmdRotateKeys(f, nil), NewCmdApprove(f, nil))
	return cmd
}

// Tokens are those of a cluster, as the commands need them.
type Tokens interface {
	// Create makes an application token of a user. An empty user is the caller.
	Create(ctx context.Context, user string, n api.NewToken) (*api.IssuedToken, error)
	// List lists a user's tokens. An empty user is the caller, or everyone with a kubeconfig.
	List(ctx context.Context, user string) ([]api.TokenRecord, error)
	// Revoke revokes a token by its id, if it is the user's. An empty user is any.
	Revoke(ctx context.Context, user, id string) error
	// RotateKeys makes a key to sign with.
	RotateKeys(ctx context.Context, revoke bool) error
	Explain(err error) error
}

// open connects to the tokens of a cluster, by its server if the user has signed in, or by a kubeconfig.
func open(ctx context.Context, f *cmdutil.Factory, w user.Way) (Tokens, error) {
	signed, err := way.Choose(f, w.Kube, w.Server)
	if err != nil {
		return nil, err
	}
	if signed != nil {
		return &server{signed.Server}, nil
	}
	c, d, err := user.OpenDirectory(w.Kube)
	if err != nil {
		return nil, err
	}
	if err := d.Load(ctx); err != nil {
		return nil, c.Explain(err)
	}
	s, err := token.Open(c.Config, d, token.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.Load(ctx); err != nil {
		return nil, c.Explain(err)
	}
	return &direct{c, d, s}, nil
}
