package node

import (
	"context"
	"errors"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/spf13/cobra"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// ListOptions are the options of "paictl node list".
type ListOptions struct {
	Factory *cmdutil.Factory
	Flags   session.Flags
	Output  cmdutil.Output
	Offline bool
}

// NewCmdList returns "paictl node list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:        "list",
		SuggestFor: []string{"sinfo", "nodes"},
		Aliases:    []string{"ls"},
		Short:      "Show the layout's machines and whether they are Ready",
		Long: `Shows the machines of the layout, and whether they are Ready. Nodes of the cluster that layout.yaml
does not list follow as Unlisted, with the commands that keep or remove them.`,
		Example: `  paictl node list -p ./cluster
  paictl node list -p ./cluster --offline -o name`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddConfig(cmd, f)
	opts.Flags.AddLimit(cmd)
	opts.Flags.AddConnection(cmd)
	cmd.Flags().BoolVar(&opts.Offline, "offline", false, "show only the layout, connect to nothing")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	s, err := session.Open(ctx, opts.Factory, &opts.Flags, session.Needs{ReadOnly: true, Reads: true, Format: "quiet"})
	if err != nil {
		return err
	}
	defer s.Close()
	machines, err := listMachines(ctx, s, opts.Offline)
	if machines == nil {
		return err
	}
	t := cmdutil.Table{Header: []string{"NAME", "ADDRESS", "ROLES", "SKU", "STATE", "VERSION", "NOTE"}}
	for _, m := range machines {
		state, version := m.State, "-"
		if m.Cordoned {
			state += ",cordoned"
		}
		if m.Kubelet != nil {
			version = m.Kubelet.Version
		}
		note := strings.Join(strings.Fields(strings.Join(m.Pressure, " ")+" "+actionsv1.Cordoned(m.CordonedBy, m.CordonReason)+" "+m.Message), " ")
		t.Rows = append(t.Rows, []string{m.Host, m.Address, strings.Join(m.Roles, ","), m.SKU, state, version, note})
	}
	if werr := opts.Output.Write(opts.Factory.IO.Out, machines, t); werr != nil {
		return werr
	}
	if opts.Output.IsTable() {
		session.WriteTroubles(opts.Factory.IO.Out, machines)
	}
	if partial, ok := errors.AsType[*engine.PartialError](err); ok {
		// The error itself is not printed, because the text below the table explains it.
		return &cmdutil.CodeError{Err: err, Code: partial.ExitCode(), Silent: true}
	}
	return err
}

func listMachines(ctx context.Context, s *session.Session, offline bool) ([]cluster.MachineStatus, error) {
	if !offline {
		return cluster.ListMachines(ctx, s.Spec, s.Options)
	}
	out := []cluster.MachineStatus{}
	for _, n := range s.Spec.Nodes {
		out = append(out, cluster.MachineStatus{Host: n.Hostname, Address: n.HostIP, Roles: n.Roles, SKU: n.SKU, State: "-"})
	}
	return out, nil
}
