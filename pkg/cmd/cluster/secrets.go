package cluster

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// SecretsOptions are the options of "paictl cluster secrets rotate".
type SecretsOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	DryRun  bool
}

// NewCmdSecrets returns "paictl cluster secrets".
func NewCmdSecrets(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Rotate the key with which the cluster encrypts its Secrets",
		Long:  `Manages the key with which API servers encrypt Secrets in etcd. Each cluster has its own key, which is stored only on the masters.`,
		Example: `  paictl cluster secrets rotate -p ./cluster --dry-run
  paictl cluster secrets rotate -p ./cluster`,
	}
	cmd.AddCommand(newCmdSecretsRotate(f))
	return cmd
}

func newCmdSecretsRotate(f *cmdutil.Factory) *cobra.Command {
	opts := &SecretsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Encrypt all Secrets with a new key, and delete the old one",
		Long: `Makes a new key, and replaces the old one in steps that never leave a Secret unreadable: all masters get the new key, then all
encrypt with it, then all Secrets are written again, which is verified in etcd, and only then the old key is deleted.

API servers read their keys once a minute and don't restart, so it takes three to four minutes, and longer with many thousands of
Secrets. All masters have to answer. Run it again if it is interrupted.

Earlier backups contain the old key and the Secrets that it encrypts: delete them if the key is known to someone who shouldn't know it,
and change the passwords, since anyone who had the key and a copy of etcd could read them.`,
		Example: `  paictl cluster secrets rotate -p ./cluster --dry-run
  paictl cluster secrets rotate -p ./cluster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return secretsRotateRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be done")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func secretsRotateRun(ctx context.Context, opts *SecretsOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Format: opts.Output.String(), ReadOnly: opts.DryRun})
	if err != nil {
		return err
	}
	defer s.Close()
	changes, err := cluster.RotateSecrets(ctx, s.Spec, s.Options)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if opts.DryRun && len(changes) > 0 && !opts.Output.Is("json") {
		return cmp.Or(progress.WritePlan(opts.Factory.IO.Out, changes), err)
	}
	return err
}
