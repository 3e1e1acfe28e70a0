package config

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// GetIDOptions are the options of "paictl config get-id".
type GetIDOptions struct {
	IO     *iostreams.IOStreams
	Kube   kube.Options
	Output cmdutil.Output
}

// identity is the output of "get-id -o json".
type identity struct {
	ClusterID string `json:"clusterId"`
	Context   string `json:"context"`
	Server    string `json:"server"`
	Revision  int    `json:"revision"`
}

// NewCmdGetID returns "paictl config get-id".
func NewCmdGetID(f *cmdutil.Factory) *cobra.Command {
	opts := &GetIDOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "get-id",
		Short: "Show the id of the cluster, and which cluster it belongs to",
		Example: `  paictl config get-id
  paictl config get-id --context berlin -o json | jq -r .clusterId`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return getIDRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml", "name")
	return cmd
}

func getIDRun(ctx context.Context, opts *GetIDOptions) error {
	s, err := openStored(opts.Kube)
	if err != nil {
		return err
	}
	r, err := s.Current(ctx)
	if err != nil {
		return s.cluster.Explain(err)
	}
	id := identity{r.ClusterID, s.cluster.Context, s.cluster.Server, r.Number}
	return opts.Output.Write(opts.IO.Out, id, cmdutil.Table{
		Header: []string{"CLUSTER-ID", "CONTEXT", "SERVER", "REVISION"},
		Rows:   [][]string{{id.ClusterID, id.Context, id.Server, fmt.Sprint(id.Revision)}},
	})
}
