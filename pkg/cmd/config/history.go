package config

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// HistoryOptions are the options of "paictl config history".
type HistoryOptions struct {
	IO     *iostreams.IOStreams
	Kube   kube.Options
	Output cmdutil.Output
}

// NewCmdHistory returns "paictl config history".
func NewCmdHistory(f *cmdutil.Factory) *cobra.Command {
	opts := &HistoryOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the last ten revisions of the cluster's configuration",
		Example: `  paictl config history
  paictl config history -o json | jq '.[0].by'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return historyRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml", "name")
	return cmd
}

func historyRun(ctx context.Context, opts *HistoryOptions) error {
	s, err := openStored(opts.Kube)
	if err != nil {
		return err
	}
	history, err := s.History(ctx)
	if err != nil {
		return s.cluster.Explain(err)
	}
	t := cmdutil.Table{Header: []string{"REVISION", "TIME", "BY", "FILES", "MESSAGE"}}
	for _, r := range history {
		t.Rows = append(t.Rows, []string{strconv.Itoa(r.Number), r.Time.Local().Format(time.DateTime), r.By,
			filesOf(r.Files), strings.ReplaceAll(r.Message, "\n", " ")})
	}
	return opts.Output.Write(opts.IO.Out, history, t)
}

// filesOf returns the names of the files in a revision as the text of one cell.
func filesOf(names []string) string {
	if len(names) == len(config.Files()) {
		return "all"
	}
	return strings.Join(names, ",")
}
