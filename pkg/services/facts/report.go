package facts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
)

// scheduler is the service whose virtual clusters can change without a start.
const scheduler = "scheduler"

// These are remedies for reports that may be wrong.
const (
	remedyKubeconfig = "check with a kubeconfig: paictl service status --kubeconfig FILE"
	remedyPublish    = remedyKubeconfig + "; the next run with a current paictl publishes it, for example: paictl service start -n NAME"
)

// reasonUnknown is the reason of a problem for a service with invalid facts.
const reasonUnknown = "Unknown"

// Reporter reports the states of all services. Reporter reads the published facts and no Secrets.
type Reporter struct {
	Client kubernetes.Interface
	Ready  Checker
	Now    func() time.Time
}

// Report returns the states of all services, sorted by name. The report contains a note if the facts may be outdated. The error is ErrNone if no
// facts exist.
func (r *Reporter) Report(ctx context.Context) (*state.Report, error) {
	// Read the lease before the facts. A run that ends in between publishes newer facts, which causes no error.
	about, lease, err := readLease(ctx, r.Client, r.Now())
	if err != nil {
		return nil, err
	}
	p, spoilt, err := read(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	out := &state.Report{Items: []state.Status{}}
	var readable, other []Service
	for i := range p.Services {
		if p.Services[i].elsewhere() == "" {
			readable = append(readable, p.Services[i])
		} else {
			other = append(other, p.Services[i])
		}
	}
	if err := r.compare(ctx, p, readable, out); err != nil {
		return nil, err
	}
	unowned, err := Unowned(ctx, r.Client, []string{kube.SystemNamespace})
	if err != nil {
		return nil, err
	}
	if out.Items, err = States(ctx, r.Client, r.Ready, readable, unowned); err != nil {
		return nil, err
	}
	for i := range other {
		st := other[i].status(ready.State{})
		st.State, st.Problems = state.StateUnknown, nil
		tell(&st, reasonUnknown, "it has objects in the namespace "+other[i].elsewhere()+", which the platform's server doesn't read", remedyKubeconfig)
		out.Items = append(out.Items, st)
	}
	for _, name := range spoilt {
		st := state.Status{Name: name, State: state.StateUnknown}
		tell(&st, reasonUnknown, "paictl did not write its facts in ConfigMap "+ConfigMap, remedyPublish)
		out.Items = append(out.Items, st)
	}
	out.Sort()
	switch about {
	case before:
		out.Notes = append(out.Notes, state.Note{Message: run(lease) + " changes services: releases are shown as they were before it, pods as they are now"})
	case unknown:
		doubt(out, lease)
	}
	return out, nil
}

// doubt removes all data from a report that may be outdated. A release that may have been removed must not have a problem with a remedy that starts
// the release again.
func doubt(out *state.Report, lease *coordinationv1.Lease) {
	for i := range out.Items {
		st := &out.Items[i]
		st.State, st.Configuration, st.Hint = state.StateUnknown, "", ""
		st.Problems = slices.DeleteFunc(st.Problems, func(p ready.Problem) bool {
			return p.Reason == ready.ReasonMissing || strings.HasPrefix(p.Object, "release/") && p.Reason != reasonUnknown
		})
	}
	message := "the Lease " + Lease + " doesn't exist, which each run makes: whether the published releases are those that run is unknown"
	if lease != nil {
		message = run(lease) + " published no releases, because an earlier paictl made it or because it was interrupted: those that are shown may have changed"
	}
	out.Notes = append(out.Notes, state.Note{Message: message, Remedy: remedyPublish})
}

func run(l *coordinationv1.Lease) string {
	text := "a run"
	if command := l.Annotations[AnnotationCommand]; command != "" {
		text = fmt.Sprintf("%q", command)
	}
	if t := l.Spec.AcquireTime; t != nil {
		text += " of " + t.UTC().Format(time.RFC3339)
	}
	return text
}

// compare corrects the facts if a newer configuration was pushed. compare is then unknown whether the services use the newer configuration. If the
// configuration is unchanged, compare only compares the scheduler's virtual clusters.
func (r *Reporter) compare(ctx context.Context, p *Published, all []Service, out *state.Report) error {
	public, err := store.New(r.Client).Public(ctx)
	digest := ""
	if err == nil {
		digest, err = Digest(public)
	}
	if apierrors.IsForbidden(err) || ctx.Err() != nil {
		return err
	}
	if err == nil && digest == p.Configuration {
		return r.compareScheduler(ctx, public, all)
	}
	for i := range all {
		if rel := all[i].Release; rel != nil && rel.Configuration != "" {
			rel.Configuration = state.ConfigurationUnknown
		}
	}
	note := state.Note{Message: fmt.Sprintf("releases were compared with revision %d of the configuration, and another one was pushed since: whether a service is enabled, and needs a restart, may have changed", p.Revision), Remedy: remedyPublish}
	switch {
	case err != nil:
		note = state.Note{Message: fmt.Sprintf("the configuration can't be read: %v", err), Remedy: hint.Of(err)}
	case public.Revision.Number != p.Revision:
		note.Message = fmt.Sprintf("releases were compared with revision %d of the configuration, and revision %d was pushed since: whether a service is enabled, and needs a restart, may have changed", p.Revision, public.Revision.Number)
	}
	out.Notes = append(out.Notes, note)
	return nil
}

// compareScheduler compares the running scheduler's configuration with the stored configuration. The facts describe the rest of the scheduler's
// release.
func (r *Reporter) compareScheduler(ctx context.Context, p *store.Public, all []Service) error {
	for i := range all {
		rel := all[i].Release
		if all[i].Name != scheduler || rel == nil || rel.Configuration != state.ConfigurationCurrent {
			continue
		}
		rel.Configuration = state.ConfigurationUnknown
		c, found := schedulerconfig.FromCluster(p.Cluster.Layout, config.ServicesFile, p.Files[config.ServicesFile])
		if found.Err() != nil {
			return nil //nolint:nilerr // the state of the configuration is then unknown
		}
		want, err := schedulerconfig.Encode(c)
		if err != nil {
			return fmt.Errorf("write the scheduler's configuration: %w", err)
		}
		cm, err := r.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, schedulerconfig.ConfigMap, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the scheduler's configuration: %w", err)
		}
		rel.Configuration = state.ConfigurationChanged
		if strings.TrimSpace(cm.Data[schedulerconfig.ConfigMapKey]) == strings.TrimSpace(string(want)) {
			rel.Configuration = state.ConfigurationCurrent
		}
	}
	return nil
}
