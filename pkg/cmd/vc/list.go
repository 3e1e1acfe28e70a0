package vc

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// ListOptions are the options of "paictl vc list".
type ListOptions struct {
	Factory *cmdutil.Factory
	Flags   connection.Flags
	Output  cmdutil.Output
}

// NewCmdList returns "paictl vc list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:        "list",
		SuggestFor: []string{"sinfo"},
		Short:      "List the virtual clusters and how much of each is used",
		Long: `Numbers are GPUs. USED counts those of the virtual cluster's own cells that gangs with a guarantee hold;
OPPORTUNISTIC counts those that its gangs use beyond that, until others need them. WAITING counts gangs. If
there are machines without GPUs, CPU CELLS counts its cells of one processor each, and how many of them are used.

A deleted virtual cluster is shown as "(deleted)" as long as it has gangs: running gangs continue
without a guarantee, and waiting gangs never start.

If the scheduler doesn't answer, only the configuration is shown.

After "paictl login" these are the virtual clusters that you may use; --kubeconfig and --context show all.`,
		Example: `  paictl vc list
  paictl vc list -o json | jq '.items[] | {name, free}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listRun(cmd.Context(), opts)
		},
	}
	opts.Flags.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	c, err := openJobs(opts.Factory, &opts.Flags)
	if err != nil {
		return err
	}
	s, err := look(ctx, c)
	if err != nil {
		return err
	}
	tellState(opts.Factory.IO, s)
	return opts.Output.Write(opts.Factory.IO.Out, s, listTable(s, opts.Output.Is("name")))
}

// listTable returns a row for each virtual cluster, and a row for each deleted virtual cluster that gangs still use. It has columns for CPU
// cells if the cluster has CPU cells.
func listTable(s *state, names bool) cmdutil.Table {
	all := s.Items
	if !names {
		for _, v := range s.Deleted {
			v.Name += " (deleted)"
			all = append(slices.Clip(all), v)
		}
	}
	cpu := slices.ContainsFunc(all, func(v api.VirtualCluster) bool { return v.CPU != nil })
	t := cmdutil.Table{Header: []string{"NAME", "GPUS", "USED", "OPPORTUNISTIC", "FREE", "BAD"}}
	if cpu {
		t.Header = append(t.Header, "CPU CELLS")
	}
	t.Header = append(t.Header, "WAITING", "QUOTA", "CELLS")
	for i := range all {
		v := &all[i]
		row := append([]string{v.Name, fmt.Sprint(v.Guaranteed)}, s.figures(v.Used, v.Opportunistic, v.Free, v.Bad)...)
		if cpu {
			var c cell.CPUStats
			if v.CPU != nil {
				c = *v.CPU
			}
			row = append(row, s.cpuText(c))
		}
		row = append(row, s.figures(v.WaitingGangs)...)
		t.Rows = append(t.Rows, append(row, quotaText(v.Quota), cellsText(v)))
	}
	return t
}

// cpuText formats the CPU cells of a virtual cluster as the text of one cell: "30: 4 used, 25 free, 1 bad".
func (s *state) cpuText(c cell.CPUStats) string {
	out := fmt.Sprint(c.Guaranteed)
	if !s.Running || c == (cell.CPUStats{}) {
		return out
	}
	out += fmt.Sprintf(": %d used, %d free", c.Used, c.Free)
	if c.Opportunistic > 0 {
		out += fmt.Sprintf(", %d opportunistic", c.Opportunistic)
	}
	if c.Bad > 0 {
		out += fmt.Sprintf(", %d bad", c.Bad)
	}
	return out
}

// figures formats numbers. It returns "-" for each number if the scheduler doesn't run, because the numbers are not known then.
func (s *state) figures(numbers ...int) []string {
	out := make([]string, len(numbers))
	for i, n := range numbers {
		out[i] = "-"
		if s.Running {
			out[i] = fmt.Sprint(n)
		}
	}
	return out
}
