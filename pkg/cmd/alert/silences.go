package alert

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
)

// SilencesOptions are the options of "paictl alert silences".
type SilencesOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
}

// NewCmdSilences returns "paictl alert silences".
func NewCmdSilences(f *cmdutil.Factory) *cobra.Command {
	opts := &SilencesOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "silences",
		Short: "List the silences that haven't ended",
		Long: `Lists the silences that haven't ended, the first to end first, with the number of firing alerts that each one silences.
Silences that were made on the pages of Alertmanager are listed as well. Ended ones are in the audit.`,
		Example: `  paictl alert silences
  paictl alert silences -o json
  paictl audit --kind silence`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return silencesRun(cmd.Context(), opts, time.Now())
		},
	}
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func silencesRun(ctx context.Context, opts *SilencesOptions, now time.Time) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	all, err := w.Server.Silences(ctx)
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	if len(all.Items) == 0 && opts.Output.IsTable() {
		io.Say("no silences")
		return nil
	}
	t := cmdutil.Table{Header: []string{"ID", "STATE", "ENDS IN", "ALERTS", "BY", "MATCHERS", "REASON"}}
	for i := range all.Items {
		s := &all.Items[i]
		t.Rows = append(t.Rows, []string{s.ID, s.State, job.Duration(s.Ends.Sub(now)), strconv.Itoa(s.Alerts), s.By, matchers(s.Matchers), s.Reason})
	}
	return opts.Output.Write(io.Out, all, t)
}
