package job

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// EventsOptions are the options of "paictl job events".
type EventsOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Output  cmdutil.Output
	Name    string
	Type    string
}

// NewCmdEvents returns "paictl job events".
func NewCmdEvents(f *cmdutil.Factory) *cobra.Command {
	opts := &EventsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "events NAME",
		Short: "Show the Kubernetes events of a job and its pods",
		Long: `Lists the events of a job's Framework and pods, the latest last: scheduling, images, volumes, kills. They
come from the cluster, which deletes them after an hour, and from the job controller's archive.`,
		Example: `  paictl job events train
  paictl job events train --type Warning -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			switch strings.ToLower(opts.Type) {
			case "", "warning", "normal":
			default:
				return cmdutil.Usagef("--type %s: give Warning or Normal", opts.Type)
			}
			return eventsRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	cmd.Flags().StringVar(&opts.Type, "type", "", "only Warning or Normal")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions([]string{"Warning", "Normal"}, cobra.ShellCompDirectiveNoFileComp))
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	return cmd
}

func eventsRun(ctx context.Context, opts *EventsOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	all, note, err := c.Events(ctx, j)
	if err != nil {
		return err
	}
	if note != nil {
		opts.Factory.IO.Say("warning: %v", note)
	}
	list := []api.Event{}
	for _, e := range all {
		if opts.Type == "" || strings.EqualFold(opts.Type, e.Type) {
			list = append(list, e)
		}
	}
	if len(list) == 0 && opts.Output.IsTable() {
		opts.Factory.IO.Say("%s has no events", j.Title())
		return nil
	}
	return opts.Output.Write(opts.Factory.IO.Out, list, eventTable(j, list, time.Now()))
}

func eventTable(j *job.Job, list []api.Event, now time.Time) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"AGE", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"}}
	for _, e := range list {
		t.Rows = append(t.Rows, []string{ago(now, e.Time), e.Type, rules.Words(e.Reason), shortObject(j, e.Object), fmt.Sprint(e.Count), e.Message})
	}
	return t
}

// shortObject removes the name of the Framework from the name of an object, because users don't know the names of Frameworks.
func shortObject(j *job.Job, object string) string {
	return strings.Replace(strings.Replace(object, "Framework/"+j.Object, "job", 1), "/"+j.Object+"-", "/", 1)
}
