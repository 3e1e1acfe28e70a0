// Package change changes virtual clusters in the configuration that a cluster stores, and in the running scheduler. It doesn't
// read the configuration's secrets. In: a request for a change, and the connection to a cluster. Out: the effect of the change,
// and a new revision of the configuration that the scheduler loads.
package change

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// Changer changes the virtual clusters of a cluster.
type Changer struct {
	Client    kubernetes.Interface
	Scheduler *vc.Scheduler
}

// InvalidError is the error for an invalid change.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

// RefusedError is the error for a change that the current state of the cluster doesn't allow.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// PendingError means that a change is stored but not yet used by the scheduler. The user can continue by repeating the change.
type PendingError struct {
	Revision int
	Err      error
}

func (e *PendingError) Error() string { return e.Message() + ": " + e.Err.Error() }

// Message returns the text of the error without the cause.
func (e *PendingError) Message() string {
	return fmt.Sprintf("revision %d of the configuration is stored, but the scheduler doesn't have it yet", e.Revision)
}

// Unwrap returns the cause.
func (e *PendingError) Unwrap() error { return e.Err }

// Do makes a change and records by as its author. In a dry run or after an error, the configuration doesn't change. After a
// PendingError, it has changed.
func (c *Changer) Do(ctx context.Context, o *vc.ChangeSet, by string) (*vc.Outcome, error) {
	if err := check(o); err != nil {
		return nil, &InvalidError{err}
	}
	held := store.New(c.Client)
	p, err := held.Public(ctx)
	if err != nil {
		return nil, err
	}
	if n := p.Revision.Number; o.Revision != 0 && o.Revision != n {
		return nil, &RefusedError{hint.Wrap(fmt.Errorf("%w, and nothing was written: revision %d was pushed by %s", store.ErrChanged, n, p.Revision.By), "look at the change again with --dry-run")}
	}
	read, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	draft, text, err := amend(held, p, unfinished(o.Changes, p, read))
	if err != nil {
		return nil, &InvalidError{err}
	}
	out := &vc.Outcome{DryRun: o.DryRun, Changed: len(draft.Changes) > 0, ClusterID: p.Revision.ClusterID, Base: p.Revision.Number, Warnings: draft.Warnings}
	for _, f := range draft.Changes {
		out.Diff += f.Diff
	}
	out.Installed = read != nil
	out.Pending = !out.Changed && read != nil && strings.TrimSpace(read.Data[schedulerconfig.ConfigMapKey]) != strings.TrimSpace(string(text))
	if err := c.judge(ctx, o, out, text); err != nil || o.DryRun || !out.Changed && !out.Pending {
		return out, err
	}
	switch {
	case out.Effect != nil && !out.Effect.Valid:
		return nil, &RefusedError{problems(out.Effect)}
	case out.Refused != "":
		return nil, &RefusedError{hint.Errorf(out.Remedy, "%s", out.Refused)}
	}
	r, err := held.Push(ctx, draft, store.Entry{By: by, Message: o.Message}) // without changes, Push returns the current revision
	if errors.Is(err, store.ErrChanged) {
		return nil, &RefusedError{err}
	}
	if err != nil {
		return nil, err
	}
	out.Revision = r.Number
	if !out.Installed {
		return out, nil
	}
	if err := c.apply(ctx, held); err != nil {
		return out, hint.Wrap(&PendingError{r.Number, err}, "run the command again; or, with a kubeconfig: paictl service start -n scheduler")
	}
	return out, nil
}

func check(o *vc.ChangeSet) error {
	if len(o.Changes) == 0 {
		return errors.New("there are no changes: name a virtual cluster and its new settings")
	}
	if len(o.Message) > store.MaxMessage {
		return fmt.Errorf("the message is longer than %d bytes", store.MaxMessage)
	}
	for i := range o.Changes {
		if o.Changes[i].Name == "" {
			return fmt.Errorf("change %d has no name of a virtual cluster", i+1)
		}
		for _, c := range o.Changes[i].Cells {
			if c.CellNumber < 0 {
				return fmt.Errorf("the number of cells %s of the virtual cluster %s is %d", c.CellType, o.Changes[i].Name, c.CellNumber)
			}
		}
	}
	return nil
}

// amend applies the requests to services-configuration.yaml and checks the result. It returns a draft of the configuration, and
// the scheduler's part of the file.
func amend(held *store.Store, p *store.Public, requests []vc.Request) (*store.Draft, []byte, error) {
	text, err := edit(p, requests)
	if err != nil {
		return nil, nil, err
	}
	draft, err := held.Amend(p, config.ServicesFile, text)
	if err != nil {
		return nil, nil, err
	}
	part, err := part(draft.Cluster, text)
	return draft, part, err
}

// unfinished returns the requests whose result is in the configuration but not yet in the scheduler. It omits deletions.
func unfinished(requests []vc.Request, p *store.Public, read *corev1.ConfigMap) []vc.Request {
	have, err := vc.Read(p.Files[config.ServicesFile])
	if err != nil || read == nil {
		return requests
	}
	loaded, _ := schedulerconfig.Parse("", []byte(read.Data[schedulerconfig.ConfigMapKey]))
	return slices.DeleteFunc(slices.Clone(requests), func(r vc.Request) bool {
		_, stored := have[r.Name]
		return r.Delete && !stored && slices.ContainsFunc(loaded.VirtualClusters, func(v cell.VirtualCluster) bool { return v.Name == r.Name })
	})
}

// part returns the scheduler's part of a configuration in the same format as the scheduler's chart.
func part(c *config.Cluster, services []byte) ([]byte, error) {
	cells, found := schedulerconfig.FromCluster(c.Layout, config.ServicesFile, services)
	if err := found.Err(); err != nil {
		return nil, err
	}
	text, err := schedulerconfig.Encode(cells)
	return append(bytes.TrimSpace(text), '\n'), err
}

func edit(p *store.Public, requests []vc.Request) ([]byte, error) {
	text := p.Files[config.ServicesFile]
	have, err := vc.Read(text)
	if err != nil {
		return nil, err
	}
	if err := inScheduler(p.Cluster, have); err != nil {
		return nil, err
	}
	cells, found := schedulerconfig.FromCluster(p.Cluster.Layout, config.ServicesFile, text)
	if len(have) == 0 && found.Err() != nil {
		return nil, found.Err()
	}
	vc.FromDefault(requests, have)
	changes := map[string]*vc.Definition{}
	for i := range requests {
		changed, err := requests[i].Changes(have, cells)
		if err != nil {
			return nil, err
		}
		maps.Copy(changes, changed)
		have = after(have, changed)
	}
	return vc.Edit(text, changes)
}

// after returns all definitions after the changes, which are the input of the next request.
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

// inScheduler returns an error if HiveD's own file defines the virtual clusters. paictl can't edit that file, because it is a
// string in another file.
func inScheduler(c *config.Cluster, have map[string]vc.Definition) error {
	for _, name := range []string{"scheduler", "hivedscheduler"} {
		section, _ := c.Services.Sections[name].(map[string]any)
		if text, _ := section["config"].(string); len(strings.TrimSpace(text)) > 1 && len(have) == 0 {
			return hint.Errorf("move virtualClusters and physicalCluster from that text to the section scheduler, then: paictl config push -p DIR",
				"the virtual clusters are defined in HiveD's own file, the text %s.config", name)
		}
	}
	return nil
}

// judge requests the effect on gangs from the running scheduler. It also finds jobs that would have no virtual cluster after
// the change.
func (c *Changer) judge(ctx context.Context, o *vc.ChangeSet, out *vc.Outcome, text []byte) error {
	var err error
	out.Effect, err = c.Scheduler.Validate(ctx, text)
	if errors.Is(err, vc.ErrNotRunning) {
		out.Effect, out.Note = &api.Validation{Valid: true}, err.Error()+": the effect on gangs is not known"
	} else if err != nil {
		return err
	}
	if out.Note == "" {
		before, err := c.Scheduler.VirtualClusters(ctx)
		if err != nil && !errors.Is(err, vc.ErrNotRunning) {
			return err
		}
		out.Problem = before.Problem
	}
	if !out.Changed && !out.Pending || o.Force {
		return nil
	}
	in, err := c.inside(ctx, o, out)
	if len(in) > 0 {
		out.Refused, out.Remedy = in.refusal(), remedyInside
	}
	return err
}

func problems(v *api.Validation) error {
	var parts []string
	remedy := ""
	for _, p := range v.Problems {
		if p.Severity != "warning" {
			parts, remedy = append(parts, strings.TrimPrefix(p.Path+": "+p.Message, ": ")), cmp.Or(remedy, p.Remedy)
		}
	}
	return hint.Wrap(fmt.Errorf("the scheduler would refuse it: %s", strings.Join(parts, "; ")), remedy)
}

// read returns the scheduler's ConfigMap, or nil if the scheduler wasn't started.
func (c *Changer) read(ctx context.Context) (*corev1.ConfigMap, error) {
	cm, err := c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, schedulerconfig.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the scheduler: %w", err)
	}
	return cm, nil
}

// apply writes the scheduler's ConfigMap, with the same content as the scheduler's chart. The Helm release gets the change at
// the next start of the service.
func (c *Changer) apply(ctx context.Context, held *store.Store) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cm, err := c.read(ctx)
		if err != nil || cm == nil {
			return err
		}
		// Read the configuration after the ConfigMap, so that a slow change never overwrites the result of a later change.
		p, err := held.Public(ctx)
		if err != nil {
			return err
		}
		text, err := part(p.Cluster, p.Files[config.ServicesFile])
		if err != nil {
			return err
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[schedulerconfig.ConfigMapKey] = string(text)
		_, err = c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Update(ctx, cm, metav1.UpdateOptions{})
		return err
	})
}
