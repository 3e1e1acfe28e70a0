package job

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// PortForwardOptions are the options of "paictl job port-forward".
type PortForwardOptions struct {
	Factory *cmdutil.Factory
	Flags   Flags
	Target  TargetFlags
	Name    string
	Ports   []string
	Address string
}

// NewCmdPortForward returns "paictl job port-forward".
func NewCmdPortForward(f *cmdutil.Factory) *cobra.Command {
	opts := &PortForwardOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "port-forward NAME [LOCAL:]REMOTE...",
		Short: "Make ports of a task reachable on this machine",
		Long: `Listens on ports of this machine and forwards each connection to a port of a running task, through the
API server. REMOTE is a number, or a label of one of the role's ports, such as http or tensorboard. LOCAL is the
same number by default; 0 chooses any free port. It ends with the task, or when you press Ctrl-C.`,
		Example: `  paictl job port-forward train 6006
  paictl job port-forward train 8080:http --task worker[3]
  paictl job port-forward train 0:tensorboard`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: opts.Flags.completeJobs(f, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name, opts.Ports = args[0], args[1:]
			if net.ParseIP(opts.Address) == nil && opts.Address != "localhost" {
				return cmdutil.Usagef("--address %s: give an IP address of this machine", opts.Address)
			}
			for _, p := range opts.Ports {
				if _, _, err := splitPort(p); err != nil {
					return err
				}
			}
			return portForwardRun(cmd.Context(), opts)
		},
	}
	opts.Flags.add(f, cmd)
	opts.Target.add(f, &opts.Flags, cmd)
	cmd.Flags().StringVar(&opts.Address, "address", "127.0.0.1", "listen on this address; 0.0.0.0 also accepts connections from other machines")
	return cmd
}

// splitPort parses [LOCAL:]REMOTE. local is -1 if LOCAL is missing.
func splitPort(s string) (local int, remote string, err error) {
	before, after, two := strings.Cut(s, ":")
	if !two {
		before, after = "-1", s
	}
	local, err = strconv.Atoi(before)
	number, notNumber := strconv.Atoi(after)
	if err != nil || local < -1 || local > 65535 || after == "" || notNumber == nil && (number < 1 || number > 65535) {
		return 0, "", cmdutil.Usagef("%s: write [LOCAL:]REMOTE, such as 8080:http or 6006", s)
	}
	return local, after, nil
}

// forwarded is a listener whose connections are forwarded to a port of a task.
type forwarded struct {
	net.Listener
	port int
	what string
}

func portForwardRun(ctx context.Context, opts *PortForwardOptions) error {
	c, j, err := opts.Flags.find(ctx, opts.Factory, opts.Name)
	if err != nil {
		return err
	}
	target, err := opts.Target.pick(ctx, opts.Factory, c, j)
	if err != nil {
		return err
	}
	var all []forwarded
	defer func() {
		for _, l := range all {
			_ = l.Close() // it is already closed if it was served
		}
	}()
	for _, p := range opts.Ports {
		l, err := opts.listen(ctx, target, p)
		if err != nil {
			return err
		}
		all = append(all, *l)
	}
	return opts.forward(ctx, c, j, target, all)
}

// forward forwards connections until ctx ends or the task no longer runs.
func (opts *PortForwardOptions) forward(ctx context.Context, c *client.Jobs, j *job.Job, target *job.Target, all []forwarded) error {
	io := opts.Factory.IO
	g, serving := errgroup.WithContext(ctx)
	for _, l := range all {
		fmt.Fprintln(io.Out, terminal.Line(fmt.Sprintf("%s -> %s of %s", l.Addr(), l.what, target.Task)))
		g.Go(func() error {
			return c.Forward(serving, target, l.port, l, func(err error) { io.Say("warning: %v", c.Explain(err)) })
		})
	}
	g.Go(func() error { return untilEnd(serving, c, j, target) })
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil // Ctrl-C is the usual way to end it
}

// untilEnd waits until a task no longer runs, and returns an error that says why its ports can't be forwarded. Without this check, a connection
// to a failed machine would stay open, and a new pod with the same address in the cluster could receive the user's connections.
func untilEnd(ctx context.Context, c *client.Jobs, j *job.Job, target *job.Target) error {
	var end error
	err := c.Follow(ctx, j, func(d *job.Detail) bool {
		end = endOf(d, j, target)
		return end == nil
	}, func(error) {}) // connections report that the cluster doesn't respond
	switch {
	case end != nil:
		return end
	case job.IsNotFound(err):
		return hint.Errorf("see the jobs that there were with: paictl job list", "%s was deleted, so that its ports are no longer forwarded", j.Title())
	}
	return err
}

// endOf returns an error if the job or the task has finished, or if another pod runs the task now.
func endOf(d *job.Detail, j *job.Job, target *job.Target) error {
	if phase := job.Phase(d.State); phase.Done() {
		return hint.Errorf("see why with: paictl job why "+j.Title(), "%s has ended (%s), so that its ports are no longer forwarded", j.Title(), phase)
	}
	for i := range d.Tasks {
		t := &d.Tasks[i]
		if t.RoleObject != target.Role || t.Index != target.Index {
			continue
		}
		another := t.PodUID != "" && target.UID != "" && t.PodUID != target.UID
		if !another && !t.Phase.Done() && t.Phase != job.Retry {
			return nil // the task may also be stopping
		}
		return hint.Errorf("if it starts again, forward its ports again", "%s of %s no longer runs there, so that its ports are no longer forwarded", target.Task, j.Title())
	}
	return nil
}

func (opts *PortForwardOptions) listen(ctx context.Context, target *job.Target, text string) (*forwarded, error) {
	local, remote, err := splitPort(text)
	if err != nil {
		return nil, err
	}
	f := &forwarded{what: "port " + remote}
	if f.port, err = strconv.Atoi(remote); err != nil {
		if f.port, err = target.Port(remote); err != nil {
			return nil, err
		}
		f.what = fmt.Sprintf("port %d (%s)", f.port, remote)
	}
	if local < 0 {
		local = f.port
	}
	var lc net.ListenConfig
	if f.Listener, err = lc.Listen(ctx, "tcp", net.JoinHostPort(opts.Address, strconv.Itoa(local))); err != nil {
		return nil, hint.Wrap(fmt.Errorf("listen at port %d: %w", local, err), fmt.Sprintf("choose another with LOCAL:%s; 0:%[1]s uses any free port", remote))
	}
	return f, nil
}
