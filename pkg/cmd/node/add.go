package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// AddOptions are the options of "paictl node add".
type AddOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	New     config.NewMachines
	DryRun  bool
	Fix     bool

	cells cells
}

// NewCmdAdd returns "paictl node add".
func NewCmdAdd(f *cmdutil.Factory) *cobra.Command {
	opts := &AddOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "add [HOST...]",
		Short: "Add machines to the layout and to the cluster",
		Long: `Asks the new machines for their hardware, adds them to layout.yaml (with a new SKU if no SKU
matches), and makes the cluster match the layout. HOST is an IPv4 address, or NAME=ADDRESS for a name other
than the machine's own. SSH uses the layout's settings for all machines, unless --user, --port or --key is
given.

If a check fails, nothing is changed, and layout.yaml stays as before. If the run is interrupted,
run the same command, or "paictl cluster up", again.`,
		Example: `  paictl node add 10.0.0.14 10.0.0.15 -p ./cluster
  paictl node add gpu-7=10.0.0.17 -p ./cluster --user ubuntu --key ~/.ssh/gpu
  paictl node add -l new-machines.yaml -p ./cluster`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.New.Hosts = args
			if len(args) == 0 && opts.New.File == "" {
				return cmdutil.Usagef("name at least one machine, or give a file with -l")
			}
			return addRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddConnection(cmd)
	opts.Flags.AddPeers(cmd)
	opts.Flags.AddBundle(cmd)
	opts.Flags.AddYes(cmd, "for scripts; add asks only about unknown host keys")
	fl := cmd.Flags()
	fl.StringVarP(&opts.New.File, "file", "l", "", "file with a machine-list, as in layout.yaml")
	fl.StringVar(&opts.New.User, "user", "", "login user (default: the layout's)")
	fl.IntVar(&opts.New.Port, "port", 0, "SSH port (default: the layout's)")
	fl.StringVar(&opts.New.KeyFile, "key", "", "private key (default: the layout's)")
	fl.StringSliceVar(&opts.New.Roles, "role", []string{layout.RoleWorker}, "roles, separated by commas")
	fl.StringVar(&opts.New.SKU, "machine-type", "auto", "SKU of the machines; auto finds it by asking the machine")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "only show what would be changed")
	fl.BoolVar(&opts.Fix, "fix", false, "let preflight make the repairs that are safe")
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
	return cmd
}

func addRun(ctx context.Context, opts *AddOptions) error {
	machines, err := opts.New.Machines()
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{Bundle: true, ReadOnly: opts.DryRun, Format: opts.Output.String()})
	if err != nil {
		return err
	}
	defer s.Close()
	edit, err := planAdd(ctx, s, machines, &opts.cells)
	if err != nil {
		return err
	}
	tellAdded(opts, edit)
	if !opts.DryRun {
		if err := edit.Write(); err != nil {
			return err
		}
	}
	if err := s.Use(ctx, edit.Cluster); err != nil {
		return err
	}
	if opts.DryRun {
		return showAdd(ctx, opts, s)
	}

	err = converge(ctx, s, opts.Fix)
	if _, refused := errors.AsType[*engine.PreflightError](err); refused {
		if uerr := edit.Undo(); uerr != nil {
			return errors.Join(err, uerr)
		}
		return hint.Wrap(fmt.Errorf("%w; %s was not changed", err, config.LayoutFile), hint.Of(err))
	}
	return err
}

// planAdd queries the hardware of the new machines, and prepares the new layout.
func planAdd(ctx context.Context, s *session.Session, machines []layout.Machine, cells *cells) (*config.LayoutEdit, error) {
	known := map[string]bool{}
	for _, m := range s.Config.Layout.MachineList {
		known[m.HostIP] = true
	}
	var ask []ssh.Target
	for _, m := range machines {
		if !known[m.HostIP] {
			ask = append(ask, s.Config.Target(m))
		}
	}
	facts, err := config.Discover(ctx, s.Dialer, ask, 0, nil)
	if err != nil {
		return nil, err
	}
	var add []layout.Machine
	for _, m := range machines {
		old := slices.IndexFunc(s.Config.Layout.MachineList, func(o layout.Machine) bool { return o.HostIP == m.HostIP })
		if old >= 0 && (m.Hostname == "" || m.Hostname == s.Config.Layout.MachineList[old].Hostname) {
			continue // already added by a run that was interrupted
		}
		add = append(add, m)
	}
	return config.AddMachines(s.Config.Dir, add, facts, cells.rules())
}

func tellAdded(opts *AddOptions, edit *config.LayoutEdit) {
	if len(edit.Machines) == 0 {
		fmt.Fprintf(opts.Factory.IO.Err, "the layout already has these machines; making the cluster match it\n")
	}
	for _, m := range edit.Machines {
		fmt.Fprintf(opts.Factory.IO.Err, "%s (%s): %s, %v\n", m.Hostname, m.HostIP, m.SKU, m.Roles)
	}
	fmt.Fprint(opts.Factory.IO.Err, &opts.cells)
}

func showAdd(ctx context.Context, opts *AddOptions, s *session.Session) error {
	s.Options.Retry = func([]string) string { return s.Options.Command } // add has no --limit
	changes, err := cluster.Up(ctx, s.Spec, s.Options, cluster.UpOptions{Fix: opts.Fix})
	if cerr := s.CloseSink(); err == nil {
		err = cerr
	}
	if changes == nil || opts.Output.Is("json") {
		return err
	}
	if werr := progress.WritePlan(opts.Factory.IO.Out, changes); werr != nil {
		return werr
	}
	return err
}
