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

// snapshot is the data that status reads from the cluster, each with one request.
type snapshot struct {
	desired   *Desired
	inventory map[string]entry
	stopped   sets.Set[string]
	releases  map[string][]release.Release // by namespace
	secrets   map[string]*corev1.Secret    // namespace/name
	claims    map[string][]corev1.PersistentVolumeClaim
	unowned   map[string][]corev1.Pod // by service
	// scheduler is the configuration that the running scheduler reads, or "". "paictl vc set" changes it without a new revision of the release.
	scheduler string
}

// Status returns the state of the named services, or of all, by name.
func (p *Platform) Status(ctx context.Context, only []string) ([]Status, error) {
	all, _, err := p.Compare(ctx, only)
	return all, err
}

// Compare is Status, and returns the configuration that the services were compared with.
func (p *Platform) Compare(ctx context.Context, only []string) ([]Status, *Desired, error) {
	snap, err := p.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := func(name string) bool {
		_, left := snap.inventory[name]
		return left || snap.desired.Catalogue.Get(name) != nil
	}
	only = catalogue.ResolveAll(only, known)
	for _, name := range only {
		if !known(name) {
			_, err := snap.desired.Catalogue.Select(only, nil) // names it, with suggestions
			return nil, nil, err
		}
	}
	services := snap.all()
	for name := range services {
		if len(only) > 0 && !slices.Contains(only, name) {
			delete(services, name)
		}
	}
	order := slices.Sorted(maps.Keys(services))
	states, err := p.check(ctx, snap, order, services)
	if err != nil {
		return nil, nil, err
	}
	masks := newMasks(snap.desired.Config, snap.desired.Catalogue.Services())
	out := make([]Status, 0, len(order))
	for _, name := range order {
		out = append(out, snap.status(name, services[name], masks.state(states[name])))
	}
	return out, snap.desired, nil
}

// check looks at the pods of all releases at once.
func (p *Platform) check(ctx context.Context, snap *snapshot, order []string, services map[string]known) (map[string]ready.State, error) {
	var requests []ready.Request
	var of []string
	for _, name := range order {
		if rel := snap.release(services[name].namespace, name); rel != nil {
			requests = append(requests, ready.Request{Namespace: rel.Namespace, Manifest: rel.Manifest})
			of = append(of, name)
		}
	}
	if len(requests) == 0 {
		return nil, nil
	}
	var states []ready.State
	var lost [][]string
	err := each([]func() error{
		func() (err error) {
			states, err = p.Ready.CheckAll(ctx, requests)
			return wrap(err, "look at the services' pods")
		},
		func() (err error) { lost, err = p.lostConfigMaps(ctx, requests); return err },
	}, defaultParallel, func(ask func() error) error { return ask() })
	if err != nil {
		return nil, err
	}
	out := map[string]ready.State{}
	for i, name := range of {
		for _, cm := range lost[i] {
			// Before its pods' problems, if there are any: pods read it at their start.
			states[i].Problems = append([]ready.Problem{{Object: "configmap/" + cm, Reason: "Missing", Message: "something deleted it",
				Hint: "make it again: paictl service start " + name}}, states[i].Problems...)
		}
		out[name] = states[i]
	}
	return out, nil
}

// lostConfigMaps returns the missing ConfigMaps of each release.
func (p *Platform) lostConfigMaps(ctx context.Context, releases []ready.Request) ([][]string, error) {
	there := map[string]map[string]bool{} // by namespace
	out := make([][]string, len(releases))
	for i, rel := range releases {
		if there[rel.Namespace] == nil {
			list, err := p.Client.CoreV1().ConfigMaps(rel.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list the ConfigMaps of %s: %w", rel.Namespace, err)
			}
			there[rel.Namespace] = map[string]bool{}
			for k := range list.Items {
				there[rel.Namespace][list.Items[k].Name] = true
			}
		}
		all, err := configMaps(rel.Manifest)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if (m.Namespace == "" || m.Namespace == rel.Namespace) && !there[rel.Namespace][m.Name] {
				out[i] = append(out[i], m.Name)
			}
		}
	}
	return out, nil
}

// look reads all data that status needs from the cluster, with concurrent requests.
func (p *Platform) look(ctx context.Context) (*snapshot, error) {
	s := &snapshot{releases: map[string][]release.Release{}, claims: map[string][]corev1.PersistentVolumeClaim{}, secrets: map[string]*corev1.Secret{}}
	err := each([]func() error{
		func() (err error) { s.desired, err = p.LoadPlaced(ctx); return err },
		func() (err error) { s.inventory, s.stopped, err = readStartedAndStopped(ctx, p.Client); return err },
		func() error { return s.readReleases(ctx, p, kube.SystemNamespace) },
		func() error { return s.readClaims(ctx, p, kube.SystemNamespace) },
		func() error { return s.readSecrets(ctx, p) },
		func() (err error) {
			s.unowned, err = unowned(ctx, p.Client, []string{kube.SystemNamespace})
			return err
		},
	}, defaultParallel, func(ask func() error) error { return ask() })
	if err != nil {
		return nil, err
	}
	if s.desired.Mistakes != nil && p.Warn != nil {
		p.Warn(s.desired.Mistakes)
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
			others, err := unowned(ctx, p.Client, s.otherNamespaces())
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

// readSecrets reads the credentials that paictl keeps, in all namespaces.
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

// readScheduler reads the configuration that the scheduler reads, if that was started.
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

// known is a service of the configuration, or one that is left from an earlier one.
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

// status combines the data about a service. have is the state of its pods.
func (s *snapshot) status(name string, k known, have ready.State) Status {
	st := Status{Name: name, Namespace: k.namespace}
	rel := s.release(k.namespace, name)
	if rel == nil {
		st.State = s.absent(name, k)
		if st.State != StateDisabled && k.service != nil {
			st.Hint = StartCommand(name)
		}
		s.leftBehind(&st)
		return st
	}
	st.Revision, st.Chart, st.Updated = rel.Revision, rel.Chart+" "+rel.Version, rel.Updated
	st.Paictl = version.OfTag(rel.By)
	st.Pods, st.ReadyPods, st.Problems, st.State = have.Pods, have.ReadyPods, have.Problems, stateOf(have)
	if k.service != nil && k.service.Enabled {
		st.Configuration = s.compare(k.service, rel)
	}
	switch {
	case rel.Status != statusDeployed:
		st.State = StateFailed
		incomplete(&st, rel.Status)
	case k.service == nil || !k.service.Enabled:
		st.State = StateOrphan
		tell(&st, "Orphan", "it runs, but the configuration disables it or no longer has it", "run: paictl service stop -n "+name)
	}
	s.leftBehind(&st)
	return st
}

// StartCommand returns the command that starts services.
func StartCommand(names ...string) string {
	return "paictl service start -n " + strings.Join(names, ",")
}

// leftBehind reports pods without an owner.
func (s *snapshot) leftBehind(st *Status) {
	for i := range s.unowned[st.Name] {
		st.Problems = append(st.Problems, unownedProblem(st.Name, &s.unowned[st.Name][i]))
	}
}

// incomplete reports why the release isn't in one of Helm's final states. If it is being removed, missing objects aren't reported.
func incomplete(st *Status, status string) {
	if status == statusUninstalling {
		st.Problems = nil
		tell(st, "Incomplete", "its stop was interrupted ("+status+")", "finish it with: paictl service stop -n "+st.Name+"; or start it again with: paictl service start -n "+st.Name)
		return
	}
	tell(st, "Incomplete", "its last start failed or was interrupted ("+status+")", "run: paictl service start -n "+st.Name)
}

// tell adds a problem of the release, before those of its pods.
func tell(st *Status, reason, message, remedy string) {
	p := ready.Problem{Object: "release/" + st.Name, Reason: reason, Message: message, Hint: remedy}
	st.Problems = append([]ready.Problem{p}, st.Problems...)
}

// statusDeployed is Helm's word for a release that is as it should be.
const statusDeployed = "deployed"

// statusUninstalling is Helm's word for a release that is being removed.
const statusUninstalling = "uninstalling"

func stateOf(have ready.State) string {
	if have.Ready {
		return StateReady
	}
	if slices.ContainsFunc(have.Problems, func(p ready.Problem) bool { return p.Final }) {
		return StateFailed
	}
	return StateStarting
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

// compare reports whether a start would change the release: other values, other credentials,
// or another version of an upstream chart; or that it takes an upgrade.
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
			return ConfigurationChanged // also if the release has it: the configuration was rolled back since
		}
		have = catalogue.WithSchedulerConfiguration(have, text)
	}
	if !sameValues(want, have) || svc.Chart != nil && svc.Chart.Metadata.Version != rel.Version {
		return ConfigurationChanged
	}
	return ConfigurationCurrent
}

// sameValues compares values as Helm keeps them, in JSON.
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
