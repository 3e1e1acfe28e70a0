package service

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/services"
)

// LogsOptions are the options of "paictl service logs".
type LogsOptions struct {
	Factory  *cmdutil.Factory
	Flags    Flags
	Name     string
	Follow   bool
	Since    time.Duration
	Tail     int64
	Previous bool
}

// defaultTail is how many lines of each container are printed by default.
const defaultTail = 200

// NewCmdLogs returns "paictl service logs".
func NewCmdLogs(f *cmdutil.Factory) *cobra.Command {
	opts := &LogsOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the logs of a service's pods",
		Long: `Prints the last lines of all pods of a service, ordered by time, each with the name of its pod. -f
continues with new lines, also from pods that start later.`,
		Example: `  paictl service logs prometheus
  paictl service logs prometheus -f --since 10m
  paictl service logs grafana --previous      of containers before they crashed`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if opts.Name, err = opts.Flags.one(cmd); err != nil {
				return err
			}
			if opts.Follow && opts.Previous {
				return cmdutil.Usagef("the containers of --previous write no more lines: remove -f")
			}
			if opts.Since > 0 && !cmd.Flags().Changed("tail") {
				opts.Tail = -1
			}
			return logsRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(cmd)
	opts.Flags.addNames(cmd, "the service", "")
	fl := cmd.Flags()
	fl.BoolVarP(&opts.Follow, "follow", "f", false, "print new lines as they arrive")
	fl.DurationVar(&opts.Since, "since", 0, "only lines newer than this, such as 10m")
	fl.Int64Var(&opts.Tail, "tail", defaultTail, "how many last lines of each container; -1 means all (default with --since)")
	fl.BoolVar(&opts.Previous, "previous", false, "print the logs of the containers before their last restart")
	return cmd
}

func logsRun(ctx context.Context, opts *LogsOptions) error {
	c, err := opts.Flags.open(opts.Factory)
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	out := io.Logs(false)
	defer out.Close()
	err = c.Logs(ctx, services.LogOptions{
		Name: opts.Name, Follow: opts.Follow, Since: opts.Since, Tail: opts.Tail, Previous: opts.Previous,
		Out: out, Problem: func(err error) { io.Say("warning: %v", err) },
	})
	select {
	case <-ctx.Done():
		if opts.Follow {
			return nil // Ctrl-C is the usual way to end it
		}
	default:
	}
	return c.explain(err)
}
