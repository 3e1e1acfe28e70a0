package vc

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
)

// ListOptions are those of "paictl vc list".
type ListOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Output  cmdutil.Output
}

// NewCmdList returns "paictl vc list". runF replaces the run in tests.
func NewCmdList(f *cmdutil.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	opts := &ListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the virtual clusters and what of them is used",
		Long: `Numbers are GPUs. USED is what gangs with a guarantee hold of the virtual cluster's own cells;
OPPORTUNISTIC what its gangs use beyond that, until somebody needs it. WAITING are gangs.

Without a scheduler that answers, the configuration alone is shown.`,
		Example: `  paictl vc list
  paictl vc list -o json | jq '.items[] | {name, free}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return listRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	c, err := open(opts.Factory, opts.Kube)
	if err != nil {
		return err
	}
	s, err := c.look(ctx)
	if err != nil {
		return c.Explain(err)
	}
	tellState(opts.Factory.IO, s)
	t := cmdutil.Table{Header: []string{"NAME", "GPUS", "USED", "OPPORTUNISTIC", "FREE", "BAD", "WAITING", "CELLS", "QUOTA"}}
	for i := range s.Items {
		v := &s.Items[i]
		row := []string{v.Name, fmt.Sprint(v.Guaranteed), "-", "-", "-", "-", "-", cellsText(v), quotaText(v.Quota)}
		if s.Running {
			row = []string{v.Name, fmt.Sprint(v.Guaranteed), fmt.Sprint(v.Used), fmt.Sprint(v.Opportunistic), fmt.Sprint(v.Free), fmt.Sprint(v.Bad), fmt.Sprint(v.WaitingGangs), cellsText(v), quotaText(v.Quota)}
		}
		t.Rows = append(t.Rows, row)
	}
	return opts.Output.Write(opts.Factory.IO.Out, s, t)
}
