package cluster

import (
	"context"
	"errors"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// PlanOptions are the options of "paictl cluster plan".
type PlanOptions struct {
	Factory  *cmdutil.Factory
	Flags    session.Flags
	Output   cmdutil.Output
	Phases   []string
	ExitCode bool
}

// planned is the output of "plan -o json".
type planned struct {
	Cluster string          `json:"cluster"`
	Changes []engine.Change `json:"changes"`
	// Unreachable are the hosts that could not be queried, so that their changes are not known.
	Unreachable []engine.Failed `json:"unreachable,omitempty"`
}

// NewCmdPlan returns "paictl cluster plan".
func NewCmdPlan(f *cmdutil.Factory) *cobra.Command {
	opts := &PlanOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what \"cluster up\" would change, and change nothing",
		Long: `Asks all machines for their state and prints what differs from the configuration, with diffs of
files. It cannot change a machine: the transport refuses to send scripts that do.`,
		Example: `  paictl cluster plan -p ./cluster
  paictl cluster plan -p ./cluster -o json | jq '.changes | length'
  paictl cluster plan -p ./cluster --exit-code || echo "the cluster has drifted"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return planRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddLimit(cmd)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddBundle(cmd)
	cmd.Flags().StringSliceVar(&opts.Phases, "phases", nil, "only these phases, separated by commas")
	cmd.Flags().BoolVar(&opts.ExitCode, "exit-code", false, "exit with code 6 if changes are pending")
	_ = cmd.RegisterFlagCompletionFunc("phases", session.CompletePhases)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "json", "yaml")
	return cmd
}

func planRun(ctx context.Context, opts *PlanOptions) error {
	if err := phases.CheckNames(opts.Phases); err != nil {
		return &cmdutil.UsageError{Err: err}
	}
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Bundle: true, ReadOnly: true, Reads: true, Format: "quiet"})
	if err != nil {
		return err
	}
	defer s.Close()
	changes, err := cluster.Up(ctx, s.Spec, s.Options, cluster.UpOptions{Phases: opts.Phases})
	if changes == nil {
		return err
	}
	if werr := writePlan(opts, s, changes, err); werr != nil {
		return werr
	}
	if err == nil && opts.ExitCode && len(changes) > 0 {
		return &cmdutil.CodeError{Err: errors.New("changes are pending"), Code: cmdutil.ExitPending, Silent: true}
	}
	return err
}

func writePlan(opts *PlanOptions, s *session.Session, changes []engine.Change, err error) error {
	if opts.Output.Is("table") {
		return progress.WritePlan(opts.Factory.IO.Out, changes)
	}
	p := planned{Cluster: s.Config.Kubernetes.Kubernetes.ClusterName, Changes: changes}
	if partial, ok := errors.AsType[*engine.PartialError](err); ok {
		p.Unreachable = partial.Failed
	}
	return opts.Output.Write(opts.Factory.IO.Out, p, cmdutil.Table{})
}
