package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

// chartFile adds a minimal chart. The schema defines a secret password.
func chartFile(fs fstest.MapFS, name, requires, annotations string) {
	text := fmt.Sprintf("apiVersion: v2\nname: %s\ntype: application\nversion: 0.1.0\nappVersion: \"1\"\ndescription: Is %s.\nannotations:\n  paictl.openpai.org/placement: worker\n", name, name)
	if requires != "" {
		text += "  paictl.openpai.org/requires: " + requires + "\n"
	}
	fs["charts/"+name+"/Chart.yaml"] = &fstest.MapFile{Data: []byte(text + annotations)}
	fs["charts/"+name+"/values.yaml"] = &fstest.MapFile{Data: []byte("# How many.\nreplicas: 1\n# A secret.\npassword: \"\"\ncredentialsSecret: \"\"\n")}
	fs["charts/"+name+"/values.schema.json"] = &fstest.MapFile{Data: []byte(`{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"properties": {"replicas": {"type": "integer", "description": "How many."}, "password": {"type": "string", "description": "A secret.", "writeOnly": true}}}`)}
	fs["charts/"+name+"/templates/c.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")}
}

// testCharts returns five charts. prometheus requires storage and alerts, and grafana requires prometheus. node-exporter requires no service.
func testCharts() fstest.MapFS {
	fs := fstest.MapFS{}
	chartFile(fs, "storage", "", "")
	chartFile(fs, "alerts", "", "")
	chartFile(fs, "prometheus", "storage,alerts", "  paictl.openpai.org/claims: |\n    - {name: prometheus-data, owner: 65534}\n")
	chartFile(fs, "grafana", "prometheus", "")
	chartFile(fs, "node-exporter", "", "")
	return fs
}

const (
	layoutText = `apiVersion: paictl.openpai.org/v1
kind: Layout
machine-sku:
  cpu: {mem: 16Gi, cpu: {vcore: 8}, os: ubuntu22.04, discovered: true}
machine-list:
  - {hostname: m1, hostip: 10.0.0.1, machine-type: cpu, roles: [master]}
  - {hostname: w1, hostip: 10.0.0.2, machine-type: cpu, roles: [worker], labels: {disk: big}}
`
	rolesText = `apiVersion: paictl.openpai.org/v1
kind: RoleDefinition
k8s-role:
  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: "true"}}
  worker: {labels: {pai-worker: "true"}, workloads: true}
`
	kubernetesText = `apiVersion: paictl.openpai.org/v1
kind: KubernetesConfiguration
kubernetes: {pod-cidr: 10.244.0.0/16}
`
	servicesText = `apiVersion: paictl.openpai.org/v1
kind: ServicesConfiguration
cluster:
  common: {cluster-id: lab, data-path: /data}
  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3%s}
`
)

// desired returns a configuration with the given sections of services, and its catalogue.
func desired(t testing.TB, registry, sections string) *Desired {
	t.Helper()
	c, err := config.Parse("conf", map[string][]byte{
		config.LayoutFile: []byte(layoutText), config.RolesFile: []byte(rolesText), config.KubernetesFile: []byte(kubernetesText),
		config.ServicesFile: []byte(fmt.Sprintf(servicesText, registry) + sections),
	})
	require.NoError(t, err)
	all, found, err := catalogue.Load(t.Context(), c, catalogue.Options{Charts: testCharts()})
	require.NoError(t, err)
	require.NoError(t, found.Err())
	return &Desired{Config: c, Catalogue: all}
}

// releases is a release.Manager in memory. A call fails only if a test requests a failure.
type releases struct {
	mu     sync.Mutex
	have   map[string]release.Release
	log    []string // what was changed, in order
	refuse map[string]error
	// hold is called by Apply and Uninstall without locks.
	hold func(verb, name string)
}

func newReleases() *releases {
	return &releases{have: map[string]release.Release{}, refuse: map[string]error{}, hold: func(string, string) {}}
}

func manifestOf(name string) string {
	return fmt.Sprintf(`---
# Source: %[1]s/templates/d.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec: {selector: {matchLabels: {app.kubernetes.io/instance: %[1]s}}}
`, name)
}

func (f *releases) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *releases) changes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

func (f *releases) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = nil
}

func (f *releases) Get(_ context.Context, _, name string) (*release.Release, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.have[name]; ok {
		return &r, nil
	}
	return nil, nil
}

func (f *releases) List(_ context.Context, namespace string) ([]release.Release, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []release.Release
	for _, r := range f.have {
		if namespace == "" || r.Namespace == namespace {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b release.Release) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (f *releases) Render(_ context.Context, r release.Request) (string, error) {
	return manifestOf(r.Name), nil
}

func (f *releases) Plan(_ context.Context, r release.Request) (release.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, ok := f.have[r.Name]
	switch {
	case !ok:
		return release.Plan{Action: release.Installed, Changes: []release.Change{{Action: "create", Object: "Deployment pai-system/" + r.Name, Diff: "+ x\n"}}}, nil
	case !sameValues(old.Values, r.Values) || old.Version != r.Chart.Metadata.Version:
		return release.Plan{Action: release.Upgraded, Changes: []release.Change{{Action: "update", Object: "Deployment pai-system/" + r.Name}}}, nil
	}
	return release.Plan{Action: release.Unchanged}, nil
}

func (f *releases) Apply(ctx context.Context, r release.Request) (release.Outcome, error) {
	f.hold("apply", r.Name)
	if ctx.Err() != nil {
		return release.Outcome{}, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old, ok := f.have[r.Name]
	out := release.Outcome{Action: release.Installed, Revision: old.Revision + 1, Previous: old.Revision, Manifest: manifestOf(r.Name)}
	switch {
	case ok && old.Status == facts.StatusDeployed && sameValues(old.Values, r.Values) && old.Version == r.Chart.Metadata.Version:
		out.Action, out.Revision = release.Unchanged, old.Revision
		return out, nil
	case ok:
		out.Action = release.Upgraded
	}
	f.log = append(f.log, out.Action+" "+r.Name)
	status := facts.StatusDeployed
	err := f.refuse[r.Name]
	if err != nil {
		status = "failed"
	}
	f.have[r.Name] = release.Release{Name: r.Name, Namespace: r.Namespace, Chart: r.Chart.Name(), Version: r.Chart.Metadata.Version,
		Status: status, Revision: out.Revision, Manifest: out.Manifest, Values: r.Values}
	return out, err
}

func (f *releases) Outdated(_ context.Context, requests []release.Request) ([]release.Release, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []release.Release
	for _, r := range requests {
		if old, ok := f.have[r.Name]; ok && old.Version != r.Chart.Metadata.Version {
			out = append(out, old)
		}
	}
	return out, nil
}

func (f *releases) Settle(_ context.Context, _, name string) error {
	f.note("settle %s", name)
	return nil
}

func (f *releases) Rollback(_ context.Context, _, name string, revision int) error {
	f.note("rollback %s to %d", name, revision)
	return nil
}

func (f *releases) Uninstall(_ context.Context, _, name string) error {
	f.hold("uninstall", name)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refuse[name]; err != nil {
		return err
	}
	f.log = append(f.log, "uninstall "+name)
	delete(f.have, name)
	return nil
}

// readiness returns a state by the name in the manifest. Objects that aren't in states are ready.
type readiness struct {
	states map[string]ready.State
	// wait is called by Wait with the name in the manifest. If wait is nil, Wait returns immediately.
	wait func(ctx context.Context, name string) error
}

func nameIn(manifest string) string {
	_, rest, _ := strings.Cut(manifest, "metadata: {name: ")
	name, _, _ := strings.Cut(rest, "}")
	return name
}

func (f *readiness) Check(_ context.Context, _, manifest string) (ready.State, error) {
	if st, ok := f.states[nameIn(manifest)]; ok {
		return st, nil
	}
	return ready.State{Ready: true, Pods: 1, ReadyPods: 1}, nil
}

func (f *readiness) CheckAll(ctx context.Context, releases [][]ready.Target) ([]ready.State, error) {
	var out []ready.State
	for _, targets := range releases {
		manifest := ""
		for _, t := range targets {
			manifest = "metadata: {name: " + t.Name + "}"
		}
		st, err := f.Check(ctx, kube.SystemNamespace, manifest)
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, nil
}

var errNotReady = errors.New("not ready in time")

func (f *readiness) Wait(ctx context.Context, ns, manifest string, o ready.WaitOptions) (ready.State, error) {
	if f.wait != nil {
		if err := f.wait(ctx, nameIn(manifest)); err != nil {
			return ready.State{}, err
		}
	}
	st, err := f.Check(ctx, ns, manifest)
	o.OnChange(st)
	if err == nil && !st.Ready {
		err = errNotReady
	}
	return st, err
}

type story struct {
	mu     sync.Mutex
	events []Event
}

func (s *story) Emit(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *story) of(kind string) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.events), func(e Event) bool { return e.Kind != kind })
}

func (s *story) services(kind string) []string {
	var out []string
	for _, e := range s.of(kind) {
		out = append(out, e.Service)
	}
	slices.Sort(out)
	return out
}

func (s *story) summary() *Summary { return s.of(EventRunDone)[0].Summary }

type lab struct {
	*Platform
	t        testing.TB
	client   *fake.Clientset
	releases *releases
	ready    *readiness
	story    *story
}

func newLab(t testing.TB, objects ...runtime.Object) *lab {
	t.Helper()
	l := &lab{t: t, client: fake.NewClientset(objects...), releases: newReleases(), ready: &readiness{states: map[string]ready.State{}}, story: &story{}}
	l.Platform = &Platform{
		Client: l.client, Releases: l.releases, Ready: l.ready, Clock: time.Now,
		Process: Process{User: "ann", Host: "here", Boot: "b", Namespace: "n", PID: 1, Started: "1"},
	}
	l.configure("", "")
	return l
}

// configure sets the services' sections in the cluster's stored configuration.
func (l *lab) configure(registry, sections string) {
	l.Load = func(context.Context) (*Desired, error) { return desired(l.t, registry, sections), nil }
}

// foreign changes the configuration to a cluster that paictl did not install.
func (l *lab) foreign() {
	load := l.Load
	l.Load = func(ctx context.Context) (*Desired, error) {
		d, err := load(ctx)
		if err == nil {
			d.Config.Kubernetes.Kubernetes.Managed = ptr(false)
		}
		return d, err
	}
}

// options returns the options of a run, and starts a new story for its events.
func (l *lab) options(only ...string) Options {
	l.story = &story{}
	return Options{Names: only, Wait: time.Minute, Sink: l.story, Command: "paictl service start -n " + strings.Join(only, ","), Again: "paictl service start"}
}

func (l *lab) start(only ...string) error { return l.Start(l.t.Context(), l.options(only...)) }

// writes returns the API calls that changed objects other than leases.
func (l *lab) writes() []string {
	var out []string
	for _, a := range l.client.Actions() {
		if v := a.GetVerb(); v != "get" && v != "list" && v != "watch" && a.GetResource().Resource != "leases" {
			out = append(out, v+" "+a.GetResource().Resource)
		}
	}
	return out
}

// catalogueOf returns the catalogue of the default configuration with the given charts.
func catalogueOf(t testing.TB, fs fstest.MapFS) *catalogue.Catalogue {
	t.Helper()
	all, _, err := catalogue.Load(t.Context(), desired(t, "", "").Config, catalogue.Options{Charts: fs})
	require.NoError(t, err)
	return all
}
