package action

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// Request creates an action with the flags of a command. Several commands share these flags.
type Request struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Reason     string
	Grace      time.Duration
	DryRun     bool
	Wait       bool
	// Every is the interval between two checks of an action. 0 means one second.
	Every time.Duration
}

// AddFlags adds the flags of the request to a command.
func (r *Request) AddFlags(f *cmdutil.Factory, cmd *cobra.Command) {
	r.Factory = f
	fl := cmd.Flags()
	fl.StringVar(&r.Reason, "reason", "", "why, in one sentence that affected people read (required)")
	fl.DurationVar(&r.Grace, "grace", 0, "time to wait before the operation, such as 2h")
	fl.BoolVar(&r.DryRun, "dry-run", false, "check the request, say what would be done, and do nothing")
	fl.BoolVar(&r.Wait, "wait", false, "wait for the result")
	r.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &r.Output, "text", "json", "yaml")
}

// Check returns an error if the flags are not valid.
func (r *Request) Check() error {
	if strings.TrimSpace(r.Reason) == "" {
		return cmdutil.Usagef("say why: --reason TEXT")
	}
	if r.Grace < 0 {
		return cmdutil.Usagef("--grace %s: give a time from 0, such as 2h", r.Grace)
	}
	return nil
}

// Run creates an action for an operation on a machine. With --wait, or for a dry run, it waits for the result of the action. The result of a dry
// run is available at once.
func (r *Request) Run(ctx context.Context, do actionsv1.Operation, machine string) error {
	w, err := r.Connection.Open(r.Factory)
	if err != nil {
		return err
	}
	a, err := w.Server.RequestAction(ctx, api.NewAction{Operation: do, Machine: machine, Reason: r.Reason, GraceSeconds: int64(r.Grace / time.Second), DryRun: r.DryRun})
	if err != nil {
		return err
	}
	if !r.Wait && !r.DryRun {
		return r.show(a, fmt.Sprintf("requested to %s: %s\nShow it with: paictl action get %s", operation(a), a.Name, a.Name))
	}
	r.Factory.IO.Say("%s: requested to %s", a.Name, operation(a))
	a, err = r.follow(ctx, w.Server, a)
	if err != nil {
		return err
	}
	if err := r.show(a, a.Message); err != nil {
		return err
	}
	if a.Phase != actionsv1.PhaseSucceeded.String() {
		return hint.Errorf("show it with: paictl action get "+a.Name, "the request to %s %s: %s", operation(a), actionsv1.Phase(a.Phase).Ended(), strings.TrimPrefix(a.Message, "canceled: "))
	}
	return nil
}

// show prints an action, or the text about it. If the action has finished without success, it prints no text, because the error of the command
// contains it.
func (r *Request) show(a *api.Action, text string) error {
	if !r.Output.Is("text") {
		return r.Output.Write(r.Factory.IO.Out, a, cmdutil.Table{})
	}
	if a.Final() && a.Phase != actionsv1.PhaseSucceeded.String() {
		return nil
	}
	_, err := fmt.Fprintln(r.Factory.IO.Out, terminal.Text(text))
	return err
}

// undecided is the number of checks after which follow tells the user that the action hasn't begun.
const undecided = 15

// follow prints the progress of an action until the action has finished. Ctrl-C ends only the command, and the action continues.
func (r *Request) follow(ctx context.Context, s *client.Server, a *api.Action) (*api.Action, error) {
	every, last := r.Every, ""
	if every == 0 {
		every = time.Second
	}
	for looks := 1; !a.Final(); looks++ {
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, r.left(a)
		}
		now, err := s.Action(ctx, a.Name)
		if ctx.Err() != nil {
			return nil, r.left(a)
		}
		if err != nil {
			return nil, fmt.Errorf("the request %s remains: %w", a.Name, err)
		}
		a = now
		if text := progress(a); text != last {
			r.Factory.IO.Say("%s: %s", a.Name, terminal.Line(text))
			last = text
		}
		if looks == undecided && a.Phase == actionsv1.PhaseNew.String() {
			r.Factory.IO.Say("%s: nothing has taken it up yet; check that the alert handler runs: paictl service status -n alert-handler", a.Name)
		}
	}
	return a, nil
}

// progress describes the state of an action. For a drain, it also lists remaining pods.
func progress(a *api.Action) string {
	const most = 5
	text := strings.ToLower(a.Phase)
	if a.Message != "" {
		text += ": " + a.Message
	}
	var left []string
	n := 0
	for _, r := range a.Results {
		if r.Done {
			continue
		}
		if n++; n <= most {
			pod := r.Target
			if r.Message != "" {
				pod += " (" + r.Message + ")"
			}
			left = append(left, pod)
		}
	}
	if a.Final() || n == 0 {
		return text
	}
	text += fmt.Sprintf("; %s left: %s", plural.Of(n, "pod"), strings.Join(left, ", "))
	if n > most {
		text += fmt.Sprintf(" and %d more", n-most)
	}
	return text
}

// left ends a command after Ctrl-C. It prints how to show or withdraw the action.
func (r *Request) left(a *api.Action) error {
	r.Factory.IO.Say("\nThe request remains. Show it with: paictl action get %[1]s; withdraw it with: paictl action cancel %[1]s --reason TEXT", a.Name)
	return &cmdutil.CodeError{Err: context.Canceled, Code: cmdutil.ExitCancelled, Silent: true}
}
