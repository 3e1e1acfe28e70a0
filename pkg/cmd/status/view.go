package status

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/cmd/service"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/act"
	"github.com/openpai/paictl/pkg/status/view"
)

// viewRun shows the cluster on the terminal until the person leaves. What the model is made of is asked meanwhile.
func viewRun(ctx context.Context, opts *StatusOptions, cluster *kube.Cluster, follower *status.Follower) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	actions, err := actionsOf(ctx, opts, cluster)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- follower.Run(ctx) }()
	streams := opts.Factory.IO
	err = view.Run(ctx, streams.In, streams.Out, view.Options{Source: follower, Actions: actions, Palette: view.PaletteFor(streams.Out, streams.ColourEnabled())})
	cancel()
	<-done
	return err
}

func actionsOf(ctx context.Context, opts *StatusOptions, cluster *kube.Cluster) (*act.Cluster, error) {
	jobs, err := job.New(cluster)
	if err != nil {
		return nil, err
	}
	platform, err := service.Platform(opts.Factory, cluster, "")
	if err != nil {
		return nil, err
	}
	a := &act.Cluster{Kube: cluster, Jobs: jobs, Platform: platform, RestartCommand: "paictl service restart",
		ShellIn: func(title, task string) tea.ExecCommand { return shellCommand(ctx, opts.Kube, title, task) }}
	if opts.Dir != "" {
		a.Journal = journal{dir: opts.Dir, log: opts.Factory.Log}.follow
	}
	return a, nil
}

// shellCommand is "paictl job shell" as a process of its own: it has the terminal for itself.
func shellCommand(ctx context.Context, o kube.Options, title, task string) tea.ExecCommand {
	args := []string{"job", "shell", title}
	if task != "" {
		args = append(args, "--task", task)
	}
	if o.Kubeconfig != "" {
		args = append(args, "--kubeconfig", o.Kubeconfig)
	}
	if o.Context != "" {
		args = append(args, "--context", o.Context)
	}
	self, err := os.Executable()
	if err != nil {
		self = "paictl"
	}
	return process{exec.CommandContext(ctx, self, args...)}
}

// process is a program that has the terminal while it runs.
type process struct{ *exec.Cmd }

// SetStdin implements tea.ExecCommand.
func (p process) SetStdin(r io.Reader) { p.Stdin = r }

// SetStdout implements tea.ExecCommand.
func (p process) SetStdout(w io.Writer) { p.Stdout = w }

// SetStderr implements tea.ExecCommand.
func (p process) SetStderr(w io.Writer) { p.Stderr = w }

// Run implements tea.ExecCommand. A shell's exit code is that of its last command, and no error of ours; what paictl said stands
// on the screen until a key is pressed.
func (p process) Run() error {
	err := p.Cmd.Run()
	if p.ProcessState == nil || p.ProcessState.ExitCode() < 0 {
		return err
	}
	if p.ProcessState.ExitCode() != 0 {
		fmt.Fprintf(p.Stdout, "\r\nthe shell ended with exit code %d; enter goes back\r\n", p.ProcessState.ExitCode())
		var one [1]byte
		_, _ = p.Stdin.Read(one[:]) // whatever comes
	}
	return nil
}
