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

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/service"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/status/act"
	"github.com/openpai/paictl/pkg/status/view"
)

// View is the interactive view of a cluster on a terminal.
type View struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Server  string
	// Dir is the configuration folder, which is needed to read the journals of machines. It may be "".
	Dir string
}

// Following provides a model of a cluster, which Run keeps up to date. The model comes from a *status.Follower, or from polls of a server.
type Following interface {
	view.Source
	Run(ctx context.Context) error
}

// Run shows the cluster until the user quits, and keeps the model up to date until then.
func (v *View) Run(ctx context.Context, follower Following) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	actions, err := v.actions(ctx)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // the view restores the terminal first
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

func (v *View) actions(ctx context.Context) (view.Actions, error) {
	w, err := connection.Open(v.Factory, v.Kube, v.Server, "")
	if err != nil {
		return nil, err
	}
	jobs := act.Jobs{Client: &client.Jobs{Server: w.Server, Name: w.User}, ShellIn: func(title, task string) tea.ExecCommand { return v.shellCommand(ctx, title, task) }}
	if !w.Operator {
		return &act.SignedIn{Jobs: jobs}, nil
	}
	platform, err := service.Platform(v.Factory, w.Cluster, "")
	if err != nil {
		return nil, err
	}
	a := &act.Cluster{Jobs: jobs, Kube: w.Cluster, Platform: platform, RestartCommand: "paictl service restart"}
	if v.Dir != "" {
		a.Journal = journal{dir: v.Dir, log: v.Factory.Log}.follow
	}
	return a, nil
}

// shellCommand returns a command that runs "paictl job shell" as a separate process. The process has the terminal for itself.
func (v *View) shellCommand(ctx context.Context, title, task string) tea.ExecCommand {
	args := []string{"job", "shell", title}
	for _, flag := range [][2]string{{"--task", task}, {"--kubeconfig", v.Kube.Kubeconfig}, {"--context", v.Kube.Context}, {"--server", v.Server}} {
		if flag[1] != "" {
			args = append(args, flag[0], flag[1])
		}
	}
	self, err := os.Executable()
	if err != nil {
		self = "paictl"
	}
	return process{exec.CommandContext(ctx, self, args...)}
}

// process is a program that uses the terminal instead of the view while it runs.
type process struct{ *exec.Cmd }

// SetStdin implements tea.ExecCommand.
func (p process) SetStdin(r io.Reader) { p.Stdin = r }

// SetStdout implements tea.ExecCommand.
func (p process) SetStdout(w io.Writer) { p.Stdout = w }

// SetStderr implements tea.ExecCommand.
func (p process) SetStderr(w io.Writer) { p.Stderr = w }

// Run implements tea.ExecCommand. The exit code of a shell is the exit code of its last command, so it isn't an error of the view. If the exit
// code isn't 0, the output stays on the screen until the user presses a key.
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
