// Package token is the commands "paictl token ...": what programs show to the server instead of a password.
// In: flags, a kubeconfig. Out: a token, shown once; lists of what is known of tokens.
package token

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/token"
)

// NewCmdToken returns "paictl token".
func NewCmdToken(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make and revoke the tokens that programs use",
		Long: `An application token lets a program act for a person: PAICTL_TOKEN for paictl, "Authorization: Bearer" for the REST API. Its
scopes narrow what the person may do. It never manages people, groups or tokens.

These commands need a kubeconfig of an administrator of the cluster.`,
		Example: `  paictl token create --user ci --label nightly --expires 90d
  paictl token create --user grafana --scope read
  paictl token list --user ci
  paictl token revoke 5k2q7mzv3c6xw4htyd2p`,
	}
	cmd.AddCommand(NewCmdCreate(f, nil), NewCmdList(f, nil), NewCmdRevoke(f, nil), NewCmdRotateKeys(f, nil))
	return cmd
}

// cluster is a cluster with its people and tokens, as they are now.
type cluster struct {
	*kube.Cluster
	people *people.Directory
	tokens *token.Service
}

func open(ctx context.Context, o kube.Options) (*cluster, error) {
	c, d, err := user.OpenDirectory(o)
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
	return &cluster{c, d, s}, c.Explain(s.Load(ctx))
}
