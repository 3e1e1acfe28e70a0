package vc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// pollEvery is the time between two checks whether the scheduler uses the new configuration.
const pollEvery = 300 * time.Millisecond

func setRun(ctx context.Context, opts *SetOptions) error {
	w, err := opts.Flags.Open(opts.Factory)
	if err != nil {
		return err
	}
	changes := vc.ChangeSet{Changes: opts.Requests, Message: opts.Message, DryRun: true, Force: opts.Force}
	out, err := w.Server.ChangeVirtualClusters(ctx, &changes)
	if err != nil {
		return err
	}
	out.DryRun = opts.DryRun
	if err := opts.preview(out); err != nil {
		return err
	}
	if out.Effect != nil && !out.Effect.Valid {
		return &cmdutil.CodeError{Err: errors.New("the scheduler would refuse it"), Code: cmdutil.ExitFailure, Silent: opts.Output.Is("text")}
	}
	if out.Refused != "" {
		return hint.Errorf(out.Remedy, "%s", out.Refused)
	}
	if opts.DryRun || !out.Changed && !out.Pending {
		return opts.tell(out)
	}
	question := fmt.Sprintf("Change the virtual clusters of %s (%s)?", out.ClusterID, w.Address())
	if err := prompt.Confirm(opts.Factory.IO, opts.Yes, "the change", question); err != nil {
		return err
	}
	changes.DryRun, changes.Revision, changes.Message = false, out.Base, opts.message(&changes)
	if out, err = w.Server.ChangeVirtualClusters(ctx, &changes); err != nil {
		return err
	}
	if err := opts.await(ctx, &client.Jobs{Server: w.Server, Name: w.User}, out); err != nil {
		return err
	}
	return opts.tell(out)
}

// preview shows the changes to the user before they are made.
func (opts *SetOptions) preview(out *vc.Outcome) error {
	if !opts.Output.Is("text") {
		return nil
	}
	w := opts.Factory.IO.Err
	if opts.DryRun {
		w = opts.Factory.IO.Out
	}
	if err := out.Warnings.Write(opts.Factory.IO.Err); err != nil {
		return err
	}
	if !out.Changed && !out.Pending {
		return nil
	}
	if _, err := io.WriteString(w, out.Diff); err != nil {
		return err
	}
	if out.Note != "" {
		_, err := fmt.Fprintln(w, out.Note)
		return err
	}
	return writeValidation(w, out.Effect)
}

// await waits until the scheduler uses the changed configuration.
func (opts *SetOptions) await(ctx context.Context, c *client.Jobs, out *vc.Outcome) error {
	if opts.Wait == 0 || !out.Installed || out.Note != "" || out.Effect == nil {
		return nil
	}
	ask := func(ctx context.Context) (*api.VirtualClusters, error) {
		all, err := c.VirtualClusters(ctx)
		if err == nil && all.Note != "" { // the response comes from the configuration, not from the scheduler
			err = vc.ErrNotRunning
		}
		if err != nil {
			return nil, err
		}
		return &all.VirtualClusters, nil
	}
	waiting, cancel := context.WithTimeout(ctx, opts.Wait)
	defer cancel()
	now, err := vc.Await(waiting, ask, out.Effect.VirtualClusters, out.Problem, pollEvery)
	if err != nil {
		return err
	}
	out.Applied, out.Generation = true, now.Generation
	return nil
}

// message returns the message of the new revision in the history.
func (opts *SetOptions) message(o *vc.ChangeSet) string {
	if opts.Message != "" {
		return opts.Message
	}
	text := "vc set " + strings.Join(o.Names(), ", ")
	return text[:min(len(text), store.MaxMessage)]
}

// tell prints the result of the change.
func (opts *SetOptions) tell(out *vc.Outcome) error {
	io := opts.Factory.IO
	if !opts.Output.Is("text") {
		return opts.Output.Write(io.Out, out, cmdutil.Table{})
	}
	done := fmt.Sprintf("pushed revision %d", out.Revision)
	if out.Pending {
		done = fmt.Sprintf("revision %d already has these values, and the scheduler did not", out.Base)
	}
	switch {
	case !out.Changed && !out.Pending:
		io.Say("nothing to change: revision %d already has these values", out.Base)
	case out.DryRun:
		io.Say("nothing was changed (--dry-run)")
	case out.Applied:
		io.Say("%s; the scheduler uses it (generation %d)", done, out.Generation)
		for _, c := range out.Effect.VirtualClusters {
			if c.Before == nil {
				io.Say("%s is new: pods of it name pai-scheduler as their scheduler; for pods that name HiveD's hivedscheduler-ds-%[1]s run: paictl service restart -n scheduler --force", c.Name)
			}
		}
	case !out.Installed:
		io.Say("pushed revision %d; it takes effect with: paictl service start -n scheduler", out.Revision)
	case out.Note != "":
		io.Say("%s; the scheduler uses it when it answers again: %s", done, out.Note)
	default:
		io.Say("%s; the scheduler was not waited for", done)
	}
	return nil
}
