package action

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// GetOptions are the options of "paictl action get".
type GetOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Name       string
}

// NewCmdGet returns "paictl action get".
func NewCmdGet(f *cmdutil.Factory) *cobra.Command {
	opts := &GetOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "get NAME",
		Aliases: []string{"show"},
		Short:   "Show an action: its author, reason and result",
		Long: `Shows who requested an operation, why, and its result, with that of each part: the pods of a drain, for
example.`,
		Example: `  paictl action get drain-k2x7mq3v5a
  paictl action get drain-k2x7mq3v5a -o json | jq .results`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(f, &opts.Connection),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			return getRun(cmd.Context(), opts)
		},
	}
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func getRun(ctx context.Context, opts *GetOptions) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	a, err := w.Server.Action(ctx, opts.Name)
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, a, cmdutil.Table{})
	}
	writeAction(opts.Factory.IO.Out, a)
	return nil
}

// writeAction writes a page about an action. It omits fields without a value.
func writeAction(out io.Writer, a *api.Action) {
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.Local().Format(time.DateTime)
	}
	phase := a.Phase
	if a.DryRun {
		phase += " (dry run)"
	}
	expires := ""
	if a.Started == nil && !a.Final() {
		expires = at(&a.NotAfter)
	}
	for _, line := range [][2]string{
		{"Name", a.Name}, {"Operation", operation(a)}, {"By", a.By.Text()}, {"Reason", a.Reason}, {"Phase", phase}, {"Message", a.Message}, {"Canceled", a.Canceled},
		{"Requested", at(&a.Created)}, {"Expires", expires}, {"Acts at", at(a.Acts)}, {"Began", at(a.Started)}, {"Ended", at(a.Ended)},
	} {
		if line[1] != "" {
			fmt.Fprintf(out, "%-10s %s\n", line[0]+":", terminal.Line(line[1]))
		}
	}
	if len(a.Results) == 0 {
		return
	}
	fmt.Fprintln(out, "Parts:")
	for _, r := range a.Results {
		text := "done"
		if !r.Done {
			text = "not done"
		}
		if r.Message != "" {
			text += ": " + r.Message
		}
		fmt.Fprintf(out, "  %s   %s\n", terminal.Line(r.Target), terminal.Line(text))
	}
}
