package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// SSHOptions are the options of "paictl sandbox ssh".
type SSHOptions struct {
	IO      *iostreams.IOStreams
	Dir     string
	User    string
	Host    string
	Command []string
}

// NewCmdSSH returns "paictl sandbox ssh". Tests pass runF, which replaces the function that runs the command.
func NewCmdSSH(f *cmdutil.Factory, runF func(context.Context, *SSHOptions) error) *cobra.Command {
	opts := &SSHOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "ssh NAME [-- COMMAND...]",
		Short: "Open a shell on a host, or run a command there",
		Long:  "Runs this machine's ssh with the sandbox's key and known host keys. The exit code is the command's.",
		Example: `  paictl sandbox ssh pai-1
  paictl sandbox ssh pai-1 -- systemctl status`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeHosts(&opts.Dir),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Host, opts.Command = args[0], args[1:]
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return sshRun(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.User, "user", "u", "root", "user on the host: root or pai")
	addDirFlag(cmd, f, &opts.Dir)
	return cmd
}

func sshRun(ctx context.Context, opts *SSHOptions) error {
	s, err := sandbox.Load(opts.Dir, nil)
	if err != nil {
		return err
	}
	h, err := s.Host(opts.Host)
	if err != nil {
		return err
	}
	if !h.Running {
		return hint.Errorf("run: paictl sandbox start "+h.Name+" --dir "+hint.Quote(s.Dir()), "%s is off", h.Name)
	}
	args := append(s.SSHArgs(h, opts.User), opts.Command...)
	cmd := exec.CommandContext(ctx, "ssh", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = opts.IO.In, opts.IO.Out, opts.IO.Err
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return &cmdutil.CodeError{Err: err, Code: exit.ExitCode(), Silent: true}
	}
	if err != nil {
		return fmt.Errorf("run ssh: %w", err)
	}
	return nil
}
