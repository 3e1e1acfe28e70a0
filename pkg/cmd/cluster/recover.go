package cluster

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/node"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// RecoverOptions are the options of "paictl cluster recover".
type RecoverOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	// Dead and New are the machine of the control plane to replace, and its replacement. FromMember is the member of etcd that continues alone.
	Dead, New, FromMember string
	Roles                 []string
	DryRun, Force, Fix    bool
	Undo                  bool
	Confirm               string
}

// NewCmdRecover returns "paictl cluster recover".
func NewCmdRecover(f *cmdutil.Factory) *cobra.Command {
	opts := &RecoverOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "recover (--dead HOST --new [NAME=]ADDRESS | --from-member HOST)",
		Short: "Replace a dead master, or continue after most of them have lost their data",
		Long: `With --dead and --new: removes a machine of the control plane that is permanently gone and adds another one in its place, with its
roles. It asks you to type the dead machine's name.

With --from-member: more than half of the masters have lost their data or are gone, so etcd has no quorum and the API doesn't
answer. HOST continues alone with the data that it has; then the other masters that answer join it again. Changes that HOST had not
received are lost, and can't be listed: if there is a newer backup, "paictl cluster restore" may keep more. The command first shows
what will happen and asks you to type the cluster's name; without a terminal, --confirm NAME is needed. A copy of HOST's previous data
stays in /var/lib/paictl/etcd-before-recovery on HOST. If a recovery is interrupted, run the same command again, or undo it with --undo.

A master with a new, empty disk needs neither: "paictl cluster up" makes it join again as long as more than half of the masters work.
If the run is interrupted, run the same command again.`,
		Example: `  paictl cluster recover -p ./cluster --dead master-1 --new master-4=10.0.0.4
  paictl cluster recover -p ./cluster --from-member master-3 --dry-run
  paictl cluster recover -p ./cluster --from-member master-3
  paictl cluster recover -p ./cluster --from-member master-3 --confirm pai   in a script`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			replace := opts.Dead != "" || opts.New != ""
			switch {
			case replace == (opts.FromMember != ""):
				return cmdutil.Usagef("give --dead and --new to replace a master, or --from-member to continue after etcd has lost its quorum")
			case replace && (opts.Dead == "" || opts.New == ""):
				return cmdutil.Usagef("--dead and --new belong together")
			case replace && (opts.DryRun || opts.Confirm != ""):
				return cmdutil.Usagef("--dry-run and --confirm are for --from-member; without a question: --yes")
			case replace && opts.Undo:
				return cmdutil.Usagef("--undo is for --from-member")
			case !replace && len(opts.Roles) > 0:
				return cmdutil.Usagef("--role is for --new")
			case !replace && opts.Flags.Yes && !opts.Undo:
				return cmdutil.Usagef("--yes is for --dead and --new; to confirm a recovery: --confirm NAME, the cluster's name")
			}
			if replace {
				return node.Replace(cmd.Context(), &node.ReplaceOptions{Factory: f, Flags: opts.Flags, Output: opts.Output, Dead: opts.Dead, New: opts.New, Roles: opts.Roles, Fix: opts.Fix, Force: opts.Force})
			}
			return recoverRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddPeers(cmd)
	opts.Flags.AddBundle(cmd)
	opts.Flags.AddYes(cmd, "don't ask, with --dead and --new")
	fl := cmd.Flags()
	fl.StringVar(&opts.Dead, "dead", "", "`HOST` of the layout that is permanently gone")
	fl.StringVar(&opts.New, "new", "", "machine that takes its place: `[NAME=]ADDRESS`")
	fl.StringVar(&opts.FromMember, "from-member", "", "`HOST` whose etcd continues alone")
	fl.StringSliceVar(&opts.Roles, "role", nil, "roles of the new machine, separated by commas (default: those of the dead one)")
	fl.BoolVar(&opts.Undo, "undo", false, "undo a recovery from HOST that was interrupted or failed")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "only show what would happen, with --from-member")
	fl.BoolVar(&opts.Force, "force", false, "also continue from a member that has less data than another; delete pods that can't be evicted")
	fl.BoolVar(&opts.Fix, "fix", false, "let preflight make the repairs that are safe")
	fl.StringVar(&opts.Confirm, "confirm", "", "the cluster's `NAME`, in place of the question, with --from-member")
	for _, name := range []string{"dead", "from-member"} {
		_ = cmd.RegisterFlagCompletionFunc(name, opts.Flags.CompleteHosts)
	}
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func recoverRun(ctx context.Context, opts *RecoverOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Bundle: true, ReadOnly: opts.DryRun, Format: opts.Output.String()})
	if err != nil {
		return err
	}
	defer s.Close()
	name := s.Config.Kubernetes.Kubernetes.ClusterName
	if opts.Undo {
		err := cluster.UndoRecovery(ctx, s.Spec, s.Options, opts.FromMember)
		if cerr := s.CloseSink(); err == nil {
			err = cerr
		}
		return err
	}
	if !opts.DryRun && opts.Confirm == "" && !opts.Factory.IO.CanPrompt() {
		return cmdutil.Usagef("paictl cluster recover must be confirmed, but there is no terminal to ask on: add --confirm %s", name)
	}
	if opts.Confirm != "" && opts.Confirm != name {
		return cmdutil.Usagef("--confirm %s: the cluster's name is %s", opts.Confirm, name)
	}
	o := s.Options
	o.Retry = func([]string) string { return s.UpCommand() } // the others join through it
	from := cluster.RecoverOptions{FromMember: opts.FromMember, Force: opts.Force, Fix: opts.Fix}
	would, err := cluster.PreviewRecover(ctx, s.Spec, o, from)
	if err != nil {
		return err
	}
	if opts.DryRun && opts.Output.Is("json") {
		return cmdutil.WriteJSONLine(opts.Factory.IO.Out, would)
	}
	switch {
	case opts.DryRun:
		fmt.Fprintln(opts.Factory.IO.Out, would)
		return nil
	case opts.Confirm != "":
		fmt.Fprintln(opts.Factory.IO.Err, would)
	default:
		if err := s.ConfirmName(would.String(), name); err != nil {
			return err
		}
	}
	_, err = cluster.Recover(ctx, s.Spec, o, from)
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	return err
}
