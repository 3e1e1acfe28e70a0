package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/cmd/service"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/status/act"
	"github.com/openpai/paictl/pkg/status/view"
)

// View is how "paictl status" shows a cluster to a person at a terminal.
type View struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	// Dir is a configuration folder, by which journals of machines are read, or "".
	Dir string
}

// Run shows the cluster until the user leaves, and follows the cluster until then.
func (v *View) Run(ctx context.Context, follower *status.Follower) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	actions, err := v.actions(ctx)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // the view gives the terminal back first
				done <- fmt.Errorf("the model of the cluster broke: %v\n%s", p, debug.Stack())
				cancel()
			}
		}()
		done <- follower.Run(ctx)
	}()
	streams := v.Factory.IO
	err = view.Run(ctx, streams.In, streams.Out, view.Options{Source: follower, Actions: actions, Palette: view.PaletteFor(streams.Out, streams.ColourEnabled())})
	cancel()
	if broken := <-done; broken != nil && !errors.Is(broken, context.Canceled) {
		return broken
	}
	return err
}

func (v *View) actions(ctx context.Context) (*act.Cluster, error) {
	cluster, err := kube.Open(v.Kube)
	if err != nil {
		return nil, err
	}
	jobs, err := job.New(cluster)
	if err != nil {
		return nil, err
	}
	platform, err := service.Platform(v.Factory, cluster, "")
	if err != nil {
		return nil, err
	}
	a := &act.Cluster{Kube: cluster, Jobs: jobs, Platform: platform, RestartCommand: "paictl service restart",
		ShellIn: func(title, task string) tea.ExecCommand { return shellCommand(ctx, v.Kube, title, task) }}
	if v.Dir != "" {
		a.Journal = journal{dir: v.Dir, log: v.Factory.Log}.follow
	}
	return a, nil
}

// shellCommand is "paictl job shell" as a separate process: it has the terminal for itself.
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

// Run implements tea.ExecCommand. A shell's exit code is that of its last command, and isn't an error of the view. The output of paictl stays
// on the screen until a key is pressed.
func (p process) Run() error {
	err := p.Cmd.Run()
	if p.ProcessState == nil || p.ProcessState.ExitCode() < 0 {
		return err
	}
	if p.ProcessState.ExitCode() != 0 {
		fmt.Fprintf(p.Stdout, "\r\nthe shell ended with exit code %d; press enter to go back\r\n", p.ProcessState.ExitCode())
		var one [1]byte
		_, _ = p.Stdin.Read(one[:]) // any key
	}
	return nil
}
