// Package status contains the command "paictl status", which shows the state of a whole cluster.
// In: flags and a kubeconfig. Out: the model of pkg/status as tables, as JSON or YAML, or as a line per change.
package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// StatusOptions are the options of "paictl status".
type StatusOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Server  string
	Output  cmdutil.Output
	Once    bool
	Watch   bool
	All     bool
	// Dir is the configuration folder. The view needs it to read the journals of machines. It may be "".
	Dir string
	// View shows the cluster on a terminal until the user quits. If it is nil, the command prints tables on a terminal too.
	View func(context.Context, *cmdutil.Factory, Following) error
}

// NewCmdStatus returns "paictl status". Tests pass runF, which replaces the function that runs the command.
func NewCmdStatus(f *cmdutil.Factory, runF func(context.Context, *StatusOptions) error) *cobra.Command {
	opts := &StatusOptions{Factory: f}
	opts.View = func(ctx context.Context, f *cmdutil.Factory, follower Following) error {
		return (&View{Factory: f, Kube: opts.Kube, Server: opts.Server, Dir: opts.Dir}).Run(ctx, follower)
	}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the whole cluster: problems, machines, GPUs, services, jobs, alerts",
		Long: `Shows the problems of the cluster and how to solve them, its machines and GPUs, virtual clusters,
services, jobs and alerts. It asks only the cluster's API and shows what is available: it also works before the
first "service start", without a scheduler or without Prometheus, and names what you are not allowed to read.

On a terminal it opens an interactive view, with a heat map of GPUs, logs, reasons and actions; ? shows
its keys. With --once, -o or a pipe it prints tables instead.

The tables list services that aren't ready, and the 20 newest jobs that run or wait. Of more than 20
machines they list only those with a problem. --all lists everything.

After "paictl login" administrators see the whole cluster, and other people see their jobs and the virtual clusters that they
may use. The view then has the actions on jobs; actions on services and machines need a kubeconfig.

--watch keeps running and prints a line for each change: the object, its old and its new state, and the reason.
With -o json each line is one JSON object. If the API server can't be reached, it waits for it.

Exit codes: 0 the cluster is healthy, 3 it isn't, or its health is unknown, 1 its API doesn't answer.`,
		Example: `  paictl status
  paictl status --all -o wide
  paictl status -o json | jq '.verdict.problems'
  paictl status --watch
  paictl status >/dev/null && echo healthy`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case opts.Once && opts.Watch:
				return cmdutil.Usagef("give --once or --watch, not both")
			case opts.Watch && (opts.Output.Is("yaml") || opts.Output.Is("name")):
				return cmdutil.Usagef("--watch prints lines: -o table or -o json")
			}
			if err := opts.complete(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return statusRun(cmd.Context(), opts)
		},
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	connection.AddFlag(f, cmd, &opts.Server)
	cmd.Flags().StringVarP(&opts.Dir, "config-path", "p", "", "folder with the configuration, to read journals of machines in the view (setting: config, PAICTL_CONFIG)")
	_ = cmd.MarkFlagDirname("config-path")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	cmd.Flags().BoolVar(&opts.Once, "once", false, "print the tables and exit, also on a terminal")
	cmd.Flags().BoolVar(&opts.Watch, "watch", false, "print a line for each change, until Ctrl-C")
	cmd.Flags().BoolVar(&opts.All, "all", false, "list all machines, services and jobs")
	return cmd
}

// complete takes the configuration folder from the settings if no flag gives it.
func (opts *StatusOptions) complete(cmd *cobra.Command) error {
	if cmd.Flags().Changed("config-path") {
		return nil
	}
	settings, err := opts.Factory.Settings()
	if err != nil {
		return err
	}
	opts.Dir = settings.GetString("config")
	return nil
}

func statusRun(ctx context.Context, opts *StatusOptions) error {
	w, err := connection.Open(opts.Factory, opts.Kube, opts.Server, "")
	if err != nil {
		return err
	}
	if !w.Operator {
		return signedInRun(ctx, opts, w)
	}
	follower, err := connection.Follow(w.Cluster, opts.Factory.Log)
	if err != nil {
		return err
	}
	io := opts.Factory.IO
	switch {
	case opts.Watch:
		return watchRun(ctx, opts, follower)
	case opts.viewed():
		return opts.View(ctx, opts.Factory, follower)
	}
	c, unreachable := follower.Once(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if unreachable == nil || !opts.Output.IsTable() {
		if err := Write(io.Out, &opts.Output, c, opts.All); err != nil {
			return err
		}
	}
	if unreachable != nil {
		return unreachable
	}
	return verdict(c)
}

// viewed reports whether the user gets the interactive view instead of tables.
func (opts *StatusOptions) viewed() bool {
	io := opts.Factory.IO
	return opts.View != nil && !opts.Once && opts.Output.Is("table") && io.IsOutTTY() && io.CanPrompt() && io.CanRedraw()
}

// errUnhealthy sets the exit code. It isn't printed, because the tables have already shown the problems.
var errUnhealthy = errors.New("the cluster isn't healthy")

func verdict(c *status.Cluster) error {
	if c.Verdict.Level == status.LevelOK {
		return nil
	}
	return &cmdutil.CodeError{Err: errUnhealthy, Code: cmdutil.ExitPartial, Silent: true}
}

// watchRun prints a line for each change until ctx ends. Users usually stop it with Ctrl-C.
func watchRun(ctx context.Context, opts *StatusOptions, follower Following) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- follower.Run(ctx) }()
	err := writeChanges(ctx, opts, follower)
	cancel()
	<-done
	return err
}

// firstModel limits the wait until the first model is complete. Later models are compared with the first model.
const firstModel = 10 * time.Second

func writeChanges(ctx context.Context, opts *StatusOptions, follower Following) error {
	late := time.NewTimer(firstModel)
	defer late.Stop()
	c := follower.Current()
	for waiting := true; waiting && c.Loading(); c = follower.Current() {
		select {
		case <-ctx.Done():
			return nil
		case <-late.C:
			waiting = false
		case <-follower.Changed():
		}
	}
	first := status.Change{At: c.At, Kind: "cluster", Name: c.Name, To: c.Verdict.Level, Message: summary(c)}
	for changes := []status.Change{first}; ; {
		for i := range changes {
			if err := opts.writeChange(&changes[i]); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-follower.Changed():
		}
		next := follower.Current()
		changes, c = status.Changes(c, next), next
	}
}

func (opts *StatusOptions) writeChange(c *status.Change) error {
	out := opts.Factory.IO.Out
	if opts.Output.Is("json") {
		return cmdutil.WriteJSONLine(out, c)
	}
	_, err := fmt.Fprintln(out, c.At.Local().Format("15:04:05")+"  "+terminal.Line(c.Text()))
	return err
}
