package sandbox

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// PowerOptions are the options of "paictl sandbox stop", "start" and "reboot".
type PowerOptions struct {
	IO      *iostreams.IOStreams
	Dir     string
	Unplug  bool
	NewDisk bool
	Hosts   []string
}

// powerRun is the function that runs stop, start or reboot.
type powerRun func(context.Context, *sandbox.Sandbox, *PowerOptions) error

// NewCmdStop returns "paictl sandbox stop". Tests pass runF, which replaces the function that runs the command.
func NewCmdStop(f *cmdutil.Factory, runF func(context.Context, *PowerOptions) error) *cobra.Command {
	cmd, opts := newPowerCmd(f, runF, func(ctx context.Context, s *sandbox.Sandbox, o *PowerOptions) error {
		if o.Unplug {
			return s.Unplug(ctx, o.Hosts...)
		}
		return s.Stop(ctx, o.Hosts...)
	})
	cmd.Use, cmd.Short = "stop NAME...", "Power hosts off; their disks are kept"
	cmd.Example = "  paictl sandbox stop pai-2\n  paictl sandbox stop pai-2 --unplug"
	cmd.Flags().BoolVar(&opts.Unplug, "unplug", false, "cut the power instead of shutting down")
	return cmd
}

// NewCmdStart returns "paictl sandbox start". Tests pass runF, which replaces the function that runs the command.
func NewCmdStart(f *cmdutil.Factory, runF func(context.Context, *PowerOptions) error) *cobra.Command {
	cmd, opts := newPowerCmd(f, runF, func(ctx context.Context, s *sandbox.Sandbox, o *PowerOptions) error {
		if o.NewDisk {
			if err := s.Replace(o.Hosts...); err != nil {
				return err
			}
		}
		return s.Start(ctx, o.Hosts...)
	})
	cmd.Use, cmd.Short = "start NAME...", "Power hosts on and wait for their sshd"
	cmd.Example = "  paictl sandbox start pai-2\n  paictl sandbox stop pai-2 --unplug && paictl sandbox start pai-2 --new-disk"
	cmd.Flags().BoolVar(&opts.NewDisk, "new-disk", false, "first replace the disk with an empty one, as after a disk failure")
	return cmd
}

// NewCmdReboot returns "paictl sandbox reboot". Tests pass runF, which replaces the function that runs the command.
func NewCmdReboot(f *cmdutil.Factory, runF func(context.Context, *PowerOptions) error) *cobra.Command {
	cmd, _ := newPowerCmd(f, runF, func(ctx context.Context, s *sandbox.Sandbox, o *PowerOptions) error {
		for _, name := range o.Hosts {
			if err := s.Reboot(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Use, cmd.Short = "reboot NAME...", "Restart full hosts and wait for their sshd"
	return cmd
}

func newPowerCmd(f *cmdutil.Factory, runF func(context.Context, *PowerOptions) error, run powerRun) (*cobra.Command, *PowerOptions) {
	opts := &PowerOptions{IO: f.IO}
	cmd := &cobra.Command{
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeHosts(&opts.Dir),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Hosts = args
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			s, err := sandbox.Load(opts.Dir, func(line string) { fmt.Fprintln(opts.IO.Err, line) })
			if err != nil {
				return err
			}
			return run(cmd.Context(), s, opts)
		},
	}
	addDirFlag(cmd, f, &opts.Dir)
	return cmd, opts
}
