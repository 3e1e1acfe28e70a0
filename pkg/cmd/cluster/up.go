package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/phases"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// UpOptions are the options of "paictl cluster up".
type UpOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	DryRun  bool
	Phases  []string
	Fix     bool
}

// NewCmdUp returns "paictl cluster up".
func NewCmdUp(f *cmdutil.Factory) *cobra.Command {
	opts := &UpOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Turn machines into a cluster, or repair it so that it matches the configuration",
		Long: `Makes the machines match the configuration: it asks all of them for their state, compares, and
changes only what differs. A second run changes nothing. Before it changes anything, checks run on all
machines; if one fails, nothing is changed anywhere (exit 4).

If a machine fails, the run continues with the others; at the end it lists the failed machine and
the command that retries it (exit 3). To continue an interrupted run, run the same command again. A
lock on the machines of the control plane prevents two runs at the same time (exit 5).

During the run, files of the bundle are sent from here to at most three machines, which serve them to the
others at TCP port 6445. Machines that can't reach another one get their files from here.

Any healthy machine of the control plane can lead the run; the order in layout.yaml does not matter.
A machine that has lost its disk joins again. A new cluster is made only if all machines of the
control plane answer that they are not members of one; to replace a cluster, use "paictl cluster
recreate".

Phases: ` + strings.Join(phases.Names(), ", ") + "; --phases selects some of them.",
		Example: `  paictl cluster up -p ./cluster
  paictl cluster up -p ./cluster --dry-run          show what would be changed, with diffs
  paictl cluster up -p ./cluster --limit worker-7   one machine only
  paictl cluster up -p ./cluster --phases labels    labels and taints only
  paictl cluster up -p ./cluster --no-peers         send everything from here to each machine
  paictl cluster up -p ./cluster -o json            events as JSON lines on stdout`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return upRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddLimit(cmd)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddPeers(cmd)
	opts.Flags.AddBundle(cmd)
	opts.Flags.AddYes(cmd, "for scripts; up asks only about unknown host keys")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "only show what would be changed")
	cmd.Flags().StringSliceVar(&opts.Phases, "phases", nil, "only these phases, separated by commas")
	cmd.Flags().BoolVar(&opts.Fix, "fix", false, "let preflight make the repairs that are safe")
	_ = cmd.RegisterFlagCompletionFunc("phases", session.CompletePhases)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func upRun(ctx context.Context, opts *UpOptions) error {
	if err := phases.CheckNames(opts.Phases); err != nil {
		return &cmdutil.UsageError{Err: err}
	}
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{
		Bundle: true, ReadOnly: opts.DryRun, Format: opts.Output.String(),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	changes, err := cluster.Up(ctx, s.Spec, s.Options, cluster.UpOptions{Phases: opts.Phases, Fix: opts.Fix && !opts.DryRun})
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if opts.Output.Is("json") {
		return err
	}
	if opts.DryRun && changes != nil {
		if werr := progress.WritePlan(opts.Factory.IO.Out, changes); werr != nil {
			return werr
		}
	}
	if err == nil && !opts.DryRun && len(changes) > 0 {
		fmt.Fprintf(opts.Factory.IO.Err, "To use the cluster:\n  paictl cluster kubeconfig -p %s\n  kubectl --context %s get nodes\n",
			hint.Quote(opts.Flags.Dir), hint.Quote(s.Config.Kubernetes.Kubernetes.ClusterName))
	}
	return err
}
