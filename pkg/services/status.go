package services

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openpai/paictl/pkg/kube"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/version"
)

// Status is the state of a service.
type Status = state.Status

// States and configurations of services; see package state.
const (
	StateReady           = state.StateReady
	StateStarting        = state.StateStarting
	StateFailed          = state.StateFailed
	StateStopped         = state.StateStopped
	StateNotInstalled    = state.StateNotInstalled
	StateDisabled        = state.StateDisabled
	StateOrphan          = state.StateOrphan
	ConfigurationCurrent = state.ConfigurationCurrent
	ConfigurationChanged = state.ConfigurationChanged
	ConfigurationChart   = state.ConfigurationChart
)

// States returns all states with their meanings.
func States() [][2]string { return state.States() }

// snapshot holds the cluster's data for Status. Each part is read with one request.
type snapshot struct {
	desired   *Desired
	inventory map[string]entry
	stopped   sets.Set[string]
	releases  map[string][]release.Release // by namespace
	secrets   map[string]*corev1.Secret    // namespace/name
	claims    map[string][]corev1.PersistentVolumeClaim
	unowned   map[string][]corev1.Pod // by service
	// scheduler is the running scheduler's configuration, or "". "paictl vc set" changes this configuration without a new revision of the release.
	scheduler string
}

// Status returns the states of all services, sorted by name.
func (p *Platform) Status(ctx context.Context) ([]Status, error) {
	all, _, err := p.Compare(ctx)
	return all, err
}

// Compare returns the states of all services, and the configuration that the services were compared with.
func (p *Platform) Compare(ctx context.Context) ([]Status, *Desired, error) {
	snap, err := p.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := snap.facts()
	if err != nil {
		return nil, nil, err
	}
	out, err := facts.States(ctx, p.Client, p.Ready, all, snap.unowned)
	if err != nil {
		return nil, nil, err
	}
	masks := newMasks(snap.desired.Config, snap.desired.Catalogue.Services())
	for i := range out {
		for k := range out[i].Problems {
			out[i].Problems[k] = masks.problem(out[i].Problems[k])
		}
	}
	return out, snap.desired, nil
}

// facts returns the facts about all services, sorted by name.
func (s *snapshot) facts() ([]facts.Service, error) {
	services := s.all()
	out := make([]facts.Service, 0, len(services))
	for _, name := range slices.Sorted(maps.Keys(services)) {
		k := services[name]
		f := facts.Service{Name: name, Namespace: k.namespace, Wanted: k.service != nil && k.service.Enabled}
		rel := s.release(k.namespace, name)
		if rel == nil {
			f.Absent = s.absent(name, k)
			out = append(out, f)
			continue
		}
		f.Release = &facts.Release{Status: rel.Status, Revision: rel.Revision, Chart: rel.Chart + " " + rel.Version, Updated: rel.Updated, Paictl: version.OfTag(rel.By)}
		if f.Wanted {
			f.Release.Configuration = s.compare(k.service, rel)
		}
		var err error
		if f.Release.Targets, err = ready.Targets(rel.Namespace, rel.Manifest); err != nil {
			return nil, fmt.Errorf("read the release of %s: %w", name, err)
		}
		if f.Release.ConfigMaps, err = configMapsOf(rel); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// configMapsOf returns the names of the ConfigMaps in a release. configMapsOf leaves out ConfigMaps in other namespaces.
func configMapsOf(rel *release.Release) ([]string, error) {
	all, err := configMaps(rel.Manifest)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range all {
		if m.Namespace == "" || m.Namespace == rel.Namespace {
			out = append(out, m.Name)
		}
	}
	return out, nil
}

// look reads the cluster's data for Status with concurrent requests.
func (p *Platform) look(ctx context.Context) (*snapshot, error) {
	s := &snapshot{releases: map[string][]release.Release{}, claims: map[string][]corev1.PersistentVolumeClaim{}, secrets: map[string]*corev1.Secret{}}
	err := each([]func() error{
		func() (err error) { s.desired, err = p.LoadPlaced(ctx); return err },
		func() (err error) { s.inventory, s.stopped, err = readStartedAndStopped(ctx, p.Client); return err },
		func() error { return s.readReleases(ctx, p, kube.SystemNamespace) },
		func() error { return s.readClaims(ctx, p, kube.SystemNamespace) },
		func() error { return s.readSecrets(ctx, p) },
		func() (err error) {
			s.unowned, err = facts.Unowned(ctx, p.Client, []string{kube.SystemNamespace})
			return err
		},
	}, defaultParallel, func(ask func() error) error { return ask() })
	if err != nil {
		return nil, err
	}
	err = each([]func() error{
		func() error { return s.readScheduler(ctx, p) },
		func() error {
			for _, ns := range s.otherNamespaces() {
				if err := s.readReleases(ctx, p, ns); err != nil {
					return err
				}
				if err := s.readClaims(ctx, p, ns); err != nil {
					return err
				}
			}
			return nil
		},
		func() error {
			others, err := facts.Unowned(ctx, p.Client, s.otherNamespaces())
			for name, pods := range others {
				s.unowned[name] = append(s.unowned[name], pods...)
			}
			return err
		},
	}, defaultParallel, func(ask func() error) error { return ask() })
	return s, err
}

func (s *snapshot) otherNamespaces() []string {
	found := map[string]bool{}
	for _, svc := range s.all() {
		found[svc.namespace] = svc.namespace != kube.SystemNamespace
	}
	return sorted(found)
}

func (s *snapshot) readReleases(ctx context.Context, p *Platform, ns string) error {
	list, err := p.Releases.List(ctx, ns)
	s.releases[ns] = list
	return wrap(err, "list the releases")
}

func (s *snapshot) readClaims(ctx context.Context, p *Platform, ns string) error {
	list, err := p.Client.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the claims of %s: %w", ns, err)
	}
	s.claims[ns] = list.Items
	return nil
}

// readSecrets reads the Secrets that paictl manages, in all namespaces.
func (s *snapshot) readSecrets(ctx context.Context, p *Platform) error {
	list, err := p.Client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: labelManagedBy + "=" + manager})
	if err != nil {
		return fmt.Errorf("read the services' credentials: %w", err)
	}
	for i := range list.Items {
		s.secrets[list.Items[i].Namespace+"/"+list.Items[i].Name] = &list.Items[i]
	}
	return nil
}

// readScheduler reads the running scheduler's configuration if the scheduler was started.
func (s *snapshot) readScheduler(ctx context.Context, p *Platform) error {
	if _, started := s.inventory[catalogue.SchedulerService]; !started {
		return nil
	}
	cm, err := p.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, schedulerconfig.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the scheduler's configuration: %w", err)
	}
	s.scheduler = cm.Data[schedulerconfig.ConfigMapKey]
	return nil
}

// known is a service of the current or an earlier configuration.
type known struct {
	namespace string
	service   *catalogue.Service // nil if the configuration doesn't have it
}

func (s *snapshot) all() map[string]known {
	out := map[string]known{}
	for _, svc := range s.desired.Catalogue.Services() {
		out[svc.Name] = known{namespace: svc.Namespace, service: svc}
	}
	for name, e := range s.inventory {
		out[name] = known{namespace: e.Namespace, service: out[name].service}
	}
	return out
}

func (s *snapshot) release(namespace, name string) *release.Release {
	for i, r := range s.releases[namespace] {
		if r.Name == name {
			return &s.releases[namespace][i]
		}
	}
	return nil
}

func (s *snapshot) absent(name string, k known) string {
	declared := func(string) bool { return false }
	if k.service != nil {
		if !k.service.Enabled {
			return StateDisabled
		}
		if s.stopped.Has(name) {
			return StateStopped
		}
		declared = func(claim string) bool {
			return slices.ContainsFunc(k.service.Claims, func(c catalogue.Claim) bool { return c.Name == claim })
		}
	}
	for i := range s.claims[k.namespace] {
		if c := &s.claims[k.namespace][i]; claimedBy(c, name) || declared(c.Name) {
			return StateStopped
		}
	}
	return StateNotInstalled
}

// compare reports whether a start would change the release or an upgrade is necessary. A start changes the release if the values, the credentials or
// the version of an upstream chart differ.
func (s *snapshot) compare(svc *catalogue.Service, rel *release.Release) string {
	if svc.Upstream == nil && svc.Chart != nil && svc.Chart.Metadata.Version != rel.Version {
		return ConfigurationChart
	}
	if want := credentials(svc); want != nil {
		have := s.secrets[want.Namespace+"/"+want.Name]
		if have == nil || !sameSecret(have, want) {
			return ConfigurationChanged
		}
		svc.SetCredentialsRevision(have.Annotations[annotationRevision])
	}
	want, have := svc.ReleaseValues(), rel.Values
	if text := catalogue.SchedulerConfiguration(want); svc.Name == catalogue.SchedulerService && text != "" && s.scheduler != "" {
		if strings.TrimSpace(text) != strings.TrimSpace(s.scheduler) {
			return ConfigurationChanged // even if the release has this revision: the configuration was rolled back since
		}
		have = catalogue.WithSchedulerConfiguration(have, text)
	}
	if !sameValues(want, have) || svc.Chart != nil && svc.Chart.Metadata.Version != rel.Version {
		return ConfigurationChanged
	}
	return ConfigurationCurrent
}

// sameValues reports whether two maps have the same JSON. Helm stores values as JSON.
func sameValues(a, b map[string]any) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	left, err := json.Marshal(a)
	if err != nil {
		return false
	}
	right, err := json.Marshal(b)
	return err == nil && bytes.Equal(left, right)
}
