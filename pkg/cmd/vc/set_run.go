package vc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// pollEvery is how often the scheduler is asked whether it uses the new configuration.
const pollEvery = 300 * time.Millisecond

// outcome is the output of "set -o json".
type outcome struct {
	DryRun bool `json:"dryRun"`
	// Changed reports whether the configuration says something else now, or would.
	Changed bool `json:"changed"`
	// Applied reports whether the scheduler works with it.
	Applied    bool            `json:"applied"`
	Revision   int             `json:"revision,omitempty"`
	Generation int64           `json:"generation,omitempty"`
	Note       string          `json:"note,omitempty"`
	Effect     *api.Validation `json:"effect,omitempty"`
	Diff       string          `json:"diff,omitempty"`
	Warnings   config.Findings `json:"warnings,omitempty"`
}

// change is a draft of the configuration with its effect.
type change struct {
	draft *store.Draft
	cells cell.Config
	// before is the scheduler's answer before the change, or nil if no scheduler runs.
	before *api.VirtualClusters
	outcome
}

func setRun(ctx context.Context, opts *SetOptions) error {
	c, err := open(opts.Factory, opts.Kube)
	if err != nil {
		return err
	}
	ch, err := opts.prepare(ctx, c)
	if err != nil {
		return c.Explain(err)
	}
	ch.DryRun = opts.DryRun
	if err := opts.preview(ch); err != nil {
		return err
	}
	if ch.Effect != nil && !ch.Effect.Valid {
		return &cmdutil.CodeError{Err: errors.New("the scheduler would refuse it"), Code: cmdutil.ExitFailure, Silent: opts.Output.Is("text")}
	}
	if err := opts.checkInside(ctx, c, ch); err != nil {
		return c.Explain(err)
	}
	if opts.DryRun || !ch.Changed {
		return opts.tell(ch)
	}
	question := fmt.Sprintf("Change the virtual clusters of %s (%s)?", ch.draft.Head.ClusterID, c.Server)
	if err := prompt.Confirm(opts.Factory.IO, opts.Yes, "the change", question); err != nil {
		return err
	}
	if err := opts.checkAgain(ctx, c, ch); err != nil {
		return c.Explain(err)
	}
	if err := opts.apply(ctx, c, ch); err != nil {
		return c.Explain(err)
	}
	return opts.tell(ch)
}

// prepare edits the file, checks it, and asks the scheduler for the effect.
func (opts *SetOptions) prepare(ctx context.Context, c *cluster) (*change, error) {
	held, err := c.store.Pull(ctx)
	if err != nil {
		return nil, err
	}
	text, err := opts.edit(held)
	if err != nil {
		return nil, err
	}
	base := store.BaseOf(held.Revision)
	ch := &change{}
	if ch.draft, err = c.store.Draft(ctx, store.Candidate{Files: map[string][]byte{config.ServicesFile: text}, Base: &base}); err != nil {
		return nil, err
	}
	ch.Changed, ch.Warnings = len(ch.draft.Changes) > 0, ch.draft.Warnings
	for _, f := range ch.draft.Changes {
		ch.Diff += f.Diff
	}
	var found config.Findings
	if ch.cells, found = catalogue.SchedulerConfig(ch.draft.Cluster); found.Err() != nil {
		return nil, found.Err()
	}
	whole, err := schedulerconfig.Encode(ch.cells)
	if err != nil {
		return nil, err
	}
	if ch.Effect, ch.Note, err = ask(ctx, c, whole); err != nil || ch.Note != "" {
		return ch, err
	}
	if ch.before, err = c.scheduler.VirtualClusters(ctx); errors.Is(err, vc.ErrNotRunning) {
		ch.before, err = &api.VirtualClusters{}, nil
	}
	return ch, err
}

// edit writes the requests into services-configuration.yaml.
func (opts *SetOptions) edit(held *store.Copy) ([]byte, error) {
	cluster, err := config.Parse("", held.Files)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's configuration, revision %d: %w", held.Revision.Number, err)
	}
	text := held.Files[config.ServicesFile]
	have, err := vc.Read(text)
	if err != nil {
		return nil, err
	}
	if err := inScheduler(cluster, have); err != nil {
		return nil, err
	}
	cells, found := catalogue.SchedulerConfig(cluster)
	if len(have) == 0 && found.Err() != nil {
		return nil, found.Err()
	}
	vc.FromDefault(opts.Requests, have)
	changes := map[string]*vc.Definition{}
	for i := range opts.Requests {
		changed, err := opts.Requests[i].Changes(have, cells)
		if err != nil {
			return nil, err
		}
		maps.Copy(changes, changed)
		have = after(have, changed)
	}
	return vc.Edit(text, changes)
}

// after are the definitions once changes are made, for the request that follows.
func after(have map[string]vc.Definition, changed map[string]*vc.Definition) map[string]vc.Definition {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]vc.Definition{}
	}
	for name, d := range changed {
		if d == nil {
			delete(out, name)
			continue
		}
		out[name] = *d
	}
	return out
}

// inScheduler refuses to edit if HiveD's own file defines the virtual clusters: it is a text within the text.
func inScheduler(c *config.Cluster, have map[string]vc.Definition) error {
	for _, name := range []string{catalogue.SchedulerService, "hivedscheduler"} {
		section, _ := c.Services.Sections[name].(map[string]any)
		if text, _ := section["config"].(string); len(strings.TrimSpace(text)) > 1 && len(have) == 0 {
			return hint.Errorf("move virtualClusters and physicalCluster from that text to the section scheduler, then: paictl config push -p DIR",
				"the virtual clusters are defined in HiveD's own file, the text %s.config", name)
		}
	}
	return nil
}

// preview shows the changes to the user.
func (opts *SetOptions) preview(ch *change) error {
	if !opts.Output.Is("text") {
		return nil
	}
	w := opts.Factory.IO.Err
	if opts.DryRun {
		w = opts.Factory.IO.Out
	}
	if err := ch.Warnings.Write(opts.Factory.IO.Err); err != nil {
		return err
	}
	if !ch.Changed {
		return nil
	}
	if _, err := io.WriteString(w, ch.Diff); err != nil {
		return err
	}
	if ch.Note != "" {
		_, err := fmt.Fprintln(w, ch.Note)
		return err
	}
	return writeValidation(w, ch.Effect)
}

// apply pushes the draft, lets the scheduler's release follow, and waits until the scheduler uses it.
func (opts *SetOptions) apply(ctx context.Context, c *cluster, ch *change) error {
	r, err := c.store.Push(ctx, ch.draft, store.Entry{By: prompt.Operator(), Message: opts.message()})
	if err != nil {
		return err
	}
	ch.Revision = r.Number
	if installed, err := c.installed(ctx); err != nil || !installed {
		return err
	}
	p, err := c.platform()
	if err != nil {
		return err
	}
	err = p.Start(ctx, services.Options{
		Names: []string{catalogue.SchedulerService}, KeepFailed: true, // it is the ConfigMap that counts here, not whether all pods are well
		Command: "paictl vc set", Again: "paictl service start", Sink: warnings(opts.Factory.IO.Err, opts.Output.Is("text")),
	})
	if err != nil {
		err = fmt.Errorf("revision %d is pushed, but not in use: %w", r.Number, err)
		if _, outdated := errors.AsType[*services.OutdatedError](err); outdated {
			return err // its own remedy is an upgrade
		}
		return hint.Wrap(err, "continue with: paictl service start -n scheduler")
	}
	if opts.Wait == 0 || ch.before == nil {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, opts.Wait)
	defer cancel()
	now, err := c.scheduler.Await(waiting, ch.cells, ch.before, pollEvery)
	if err != nil {
		return err
	}
	ch.Applied, ch.Generation = true, now.Generation
	return nil
}

// warnings prints only the warnings of a run.
func warnings(w io.Writer, text bool) services.Sink {
	return services.SinkFunc(func(e services.Event) {
		if text && e.Kind == services.EventWarning {
			fmt.Fprintf(w, "warning: %s\n", e.Message)
		}
	})
}

// installed reports whether the scheduler was started.
func (c *cluster) installed(ctx context.Context) (bool, error) {
	_, err := c.Client.CoreV1().Services(kube.SystemNamespace).Get(ctx, catalogue.SchedulerService, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the scheduler: %w", err)
	}
	return true, nil
}

// message is the entry of the history.
func (opts *SetOptions) message() string {
	if opts.Message != "" {
		return opts.Message
	}
	names := map[string]bool{}
	for i := range opts.Requests {
		names[opts.Requests[i].Name] = true
	}
	text := "vc set " + strings.Join(slices.Sorted(maps.Keys(names)), ", ")
	return text[:min(len(text), store.MaxMessage)]
}

// tell says how it ended.
func (opts *SetOptions) tell(ch *change) error {
	io := opts.Factory.IO
	if !opts.Output.Is("text") {
		return opts.Output.Write(io.Out, ch.outcome, cmdutil.Table{})
	}
	switch {
	case !ch.Changed:
		io.Say("nothing to change: revision %d already has these values", ch.draft.Head.Number)
	case ch.DryRun:
		io.Say("nothing was changed (--dry-run)")
	case ch.Applied:
		io.Say("pushed revision %d; the scheduler uses it (generation %d)", ch.Revision, ch.Generation)
		for _, c := range ch.Effect.VirtualClusters {
			if c.Before == nil {
				io.Say("%s is new: pods of it name pai-scheduler as their scheduler; for pods that name HiveD's hivedscheduler-ds-%[1]s run: paictl service restart -n scheduler --force", c.Name)
			}
		}
	case ch.before == nil:
		io.Say("pushed revision %d; it takes effect with: paictl service start -n scheduler", ch.Revision)
	default:
		io.Say("pushed revision %d; the scheduler was not waited for", ch.Revision)
	}
	return nil
}
