package services

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmchart "helm.sh/helm/v3/pkg/chart"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
	"github.com/openpai/paictl/pkg/version"
)

// brings changes the charts of services, as if another paictl was used.
func (p *Platform) brings(edit func(*helmchart.Chart), names ...string) {
	load := p.Load
	p.Load = func(ctx context.Context) (*Desired, error) {
		d, err := load(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			s := d.Catalogue.Get(name)
			c := *s.Chart // charts of paictl are read once, and shared
			about := *c.Metadata
			c.Metadata, c.Templates, c.Files = &about, slices.Clone(c.Templates), slices.Clone(c.Files)
			edit(&c)
			s.Chart = &c
		}
		return d, nil
	}
}

func newer(c *helmchart.Chart) { c.Metadata.Version = "0.2.0" }

// withNewer returns a lab with running services. The charts of the changed services are newer.
func withNewer(t *testing.T, changed ...string) *lab {
	t.Helper()
	l := newLab(t)
	require.NoError(t, l.start())
	l.releases.forget()
	l.client.ClearActions()
	l.brings(newer, changed...)
	return l
}

func (l *lab) upgrade(only ...string) error { return l.Upgrade(l.t.Context(), l.options(only...)) }

var allServices = []string{"alerts", "grafana", "node-exporter", "prometheus", "storage"}

func TestServicesAreUpgradedOneAfterTheOther(t *testing.T) {
	l := withNewer(t, allServices...)
	working := 0
	l.ready.wait = func(context.Context, string) error { working++; return nil }
	require.NoError(t, l.upgrade())
	log := l.releases.changes()
	require.Len(t, log, 10)
	for i := 0; i < len(log); i += 2 { // each is settled before the next one begins
		name := log[i][len("upgraded "):]
		assert.Equal(t, []string{"upgraded " + name, "settle " + name}, log[i:i+2])
	}
	before(t, log, "settle storage", "upgraded prometheus")
	before(t, log, "settle alerts", "upgraded prometheus")
	before(t, log, "settle prometheus", "upgraded grafana")
	assert.Equal(t, 5, working)
	assert.Len(t, l.story.summary().Changed, 5)

	l.releases.forget()
	require.NoError(t, l.upgrade())
	assert.Zero(t, l.story.summary().Changes)
	assert.Equal(t, 5, working, "what is as it should be isn't waited for")
}

func TestAServiceThatDoesNotBecomeReadyEndsTheUpgrade(t *testing.T) {
	l := withNewer(t, allServices...)
	l.ready.states["alerts"] = ready.State{Pods: 1, Problems: []ready.Problem{{Object: "pod/alerts-0", Reason: "ImagePullBackOff", Message: "image can't be pulled: no such image", Hint: "check it", Final: true}}}
	err := l.upgrade()
	var partial *PartialError
	require.ErrorAs(t, err, &partial)
	assert.Equal(t, []Failed{{Service: "alerts", Error: "pod/alerts-0: image can't be pulled: no such image", Hint: "check it"}}, partial.Failed)
	assert.Equal(t, []string{"upgraded alerts", "rollback alerts to 1"}, l.releases.changes(), "alerts is the first")
	assert.Equal(t, []string{"grafana", "node-exporter", "prometheus", "storage"}, l.story.services(EventNotStarted))
	assert.Equal(t, 1, partial.ExitCode())
	assert.Equal(t, "1 of 5 services failed to upgrade: alerts; left as they are: grafana, node-exporter, prometheus, storage", err.Error())
}

func TestMoreFailuresAreAllowedButNothingFollowsWhatFailed(t *testing.T) {
	l := withNewer(t, allServices...)
	l.ready.states["alerts"] = ready.State{}
	o := l.options()
	o.MaxFailures = 2
	err := l.Upgrade(t.Context(), o)
	var partial *PartialError
	require.ErrorAs(t, err, &partial)
	assert.Equal(t, 3, partial.ExitCode())
	assert.Equal(t, []string{"grafana", "prometheus"}, l.story.services(EventNotStarted))
	for _, e := range l.story.of(EventNotStarted) {
		assert.Contains(t, []string{"not upgraded: it requires alerts", "not upgraded: it requires prometheus"}, e.Message)
	}
	assert.ElementsMatch(t, []string{"upgraded alerts", "rollback alerts to 1", "upgraded node-exporter", "settle node-exporter", "upgraded storage", "settle storage"}, l.releases.changes())
}

func TestWhatIsNotInstalledIsNamedAndLeftAlone(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start("prometheus"))
	// The name of this release is the name of a service, but paictl didn't start the service.
	l.releases.have["grafana"] = release.Release{Name: "grafana", Namespace: kube.SystemNamespace, Status: facts.StatusDeployed, Revision: 1, Version: "7"}
	l.releases.forget()
	l.configure("", "alerts: {enabled: false}\n")
	l.brings(newer, allServices...)
	require.NoError(t, l.upgrade())
	assert.Equal(t, []string{"upgraded storage", "settle storage", "upgraded prometheus", "settle prometheus"}, l.releases.changes())
	var texts []string
	for _, e := range l.story.of(EventWarning) {
		texts = append(texts, e.Message)
	}
	assert.Contains(t, texts, "not installed, left alone: grafana, node-exporter")
	assert.Contains(t, texts, "started earlier, but now disabled or no longer in the configuration: alerts")
	assert.Equal(t, 2, l.story.summary().Services)
}

func TestAnUpgradeAsksOnceAndChangesNothingBefore(t *testing.T) {
	l := withNewer(t, "prometheus", "storage")
	o := l.options()
	var asked [][]string
	o.ConfirmUpgrade = func(_ context.Context, events []Event) error {
		var changed []string
		for _, e := range events {
			if e.Action != release.Unchanged {
				changed = append(changed, e.Service)
			}
		}
		asked = append(asked, changed)
		return errors.New("no")
	}
	require.ErrorContains(t, l.Upgrade(t.Context(), o), "no")
	assert.Equal(t, [][]string{{"storage", "prometheus"}}, asked)
	assert.Empty(t, l.releases.changes())
	assert.Empty(t, l.writes())

	same := withNewer(t)
	o = same.options()
	o.ConfirmUpgrade = func(context.Context, []Event) error { return errors.New("there is nothing to ask about") }
	require.NoError(t, same.Upgrade(t.Context(), o))
}

func TestAConfigurationThatWasPushedMeanwhileIsNotWhatWasAgreedTo(t *testing.T) {
	l := withNewer(t, "storage")
	l.Current = func(context.Context) (store.Revision, error) { return store.Revision{Number: 7}, nil }
	err := l.upgrade()
	require.ErrorIs(t, err, ErrConfigurationChanged)
	assert.Equal(t, "run the same command again", hint.Of(err))
	assert.Empty(t, l.releases.changes())
}

// TestAReleaseThatChangedMeanwhileIsNotWhatWasAgreedTo simulates another run that changes releases. The change happens after the user's confirmation
// and before this run acquires the lock.
func TestAReleaseThatChangedMeanwhileIsNotWhatWasAgreedTo(t *testing.T) {
	for name, change := range map[string]func(r *release.Release){
		"a later paictl upgraded it":   func(r *release.Release) { r.By, r.Revision = "v9.0.0", r.Revision+1 },
		"a later paictl settled it":    func(r *release.Release) { r.By = "v9.0.0" },
		"the same one made a revision": func(r *release.Release) { r.Revision++ },
		"it is gone":                   nil,
	} {
		t.Run(name, func(t *testing.T) {
			l := withNewer(t, "storage", "prometheus")
			o := l.options()
			o.ConfirmUpgrade = func(context.Context, []Event) error {
				have := l.releases.have["storage"]
				if change == nil {
					delete(l.releases.have, "storage")
					return nil
				}
				change(&have)
				l.releases.have["storage"] = have
				return nil
			}
			err := l.Upgrade(t.Context(), o)
			require.ErrorIs(t, err, ErrReleaseChanged)
			assert.ErrorContains(t, err, ": storage")
			assert.Contains(t, hint.Of(err), "run the same command again")
			assert.Empty(t, l.releases.changes())
		})
	}
}

func TestADryRunOfAnUpgradeChangesNothing(t *testing.T) {
	l := withNewer(t, "storage")
	o := l.options()
	o.DryRun = true
	require.NoError(t, l.Upgrade(t.Context(), o))
	assert.Empty(t, l.releases.changes())
	assert.Empty(t, l.writes())
	assert.Equal(t, []string{"storage"}, l.story.summary().Changed)
}

func TestAStartDoesNotChangeChartsByTheWay(t *testing.T) {
	l := withNewer(t, "storage", "alerts")
	for verb, run := range map[string]func(context.Context, Options) error{"start": l.Start, "restart": l.Restart} {
		for _, dry := range []bool{true, false} {
			o := l.options()
			o.DryRun = dry
			err := run(t.Context(), o)
			var old *OutdatedError
			require.ErrorAs(t, err, &old, verb)
			assert.Equal(t, "alerts, storage run with other charts than this paictl's ("+version.Version+")", err.Error())
			assert.Contains(t, hint.Of(err), "paictl service upgrade -n alerts,storage")
		}
	}
	assert.Empty(t, l.releases.changes())
	assert.Equal(t, []string{"node-exporter"}, func() []string { require.NoError(t, l.start("node-exporter")); return l.story.services(EventReady) }(), "others start")
}

// by sets the version of paictl that installed the services.
func (l *lab) by(version string, names ...string) {
	for _, name := range names {
		r := l.releases.have[name]
		r.By = version
		l.releases.have[name] = r
	}
}

func becomes(t *testing.T, v string) {
	t.Helper()
	was := version.Version
	version.Version = v
	t.Cleanup(func() { version.Version = was })
}

func TestAnEarlierPaictlDoesNotUpgrade(t *testing.T) {
	becomes(t, "v1.2.3")
	l := withNewer(t, "storage", "alerts", "prometheus")
	l.by("v1.10.0", "alerts")
	l.by("v2.0.0_abc", "prometheus")
	for _, dry := range []bool{true, false} {
		o := l.options("prometheus")
		o.DryRun = dry
		o.ConfirmUpgrade = func(context.Context, []Event) error { return errors.New("it asked") }
		err := l.Upgrade(t.Context(), o)
		var back *DowngradeError
		require.ErrorAs(t, err, &back)
		assert.Equal(t, "alerts, prometheus were installed by paictl v2.0.0+abc and v1.10.0, and this is v1.2.3: its charts are older", err.Error())
		assert.Equal(t, "use paictl v2.0.0+abc or a later one; to go back to older charts in spite of that: paictl service upgrade -n alerts,prometheus --downgrade, of which --dry-run shows what is lost", hint.Of(err))
		assert.Empty(t, l.releases.changes())
		assert.Empty(t, l.writes())
	}
	require.NoError(t, l.upgrade("storage"), "what it installed itself, it upgrades")
	l.releases.forget()

	o := l.options("prometheus")
	o.Downgrade = true
	require.NoError(t, l.Upgrade(t.Context(), o))
	assert.Equal(t, []string{"upgraded alerts", "settle alerts", "upgraded prometheus", "settle prometheus"}, withoutStorage(l.releases.changes()))
}

func withoutStorage(log []string) []string {
	return slices.DeleteFunc(log, func(s string) bool { return strings.HasSuffix(s, "storage") })
}

func TestBuildsOfOneVersionMayUpgradeEachOther(t *testing.T) {
	becomes(t, "v1.2.4-dev+aaa")
	l := withNewer(t, "storage")
	l.by("v1.2.4-dev_bbb", "storage")
	require.NoError(t, l.upgrade("storage"))
	l.by("custom", "storage")
	require.NoError(t, l.upgrade("storage"), "what is no version is not a later one")
}

func TestStatusTellsWhoseChartAServiceRunsWith(t *testing.T) {
	l := withNewer(t, "storage")
	r := l.releases.have["storage"]
	r.By = "v1.0.0_abc"
	l.releases.have["storage"] = r
	st := l.states()
	assert.Equal(t, ConfigurationCurrent, st["alerts"].Configuration)
	assert.Empty(t, st["alerts"].Paictl)
	assert.Equal(t, ConfigurationChart, st["storage"].Configuration)
	assert.Equal(t, "v1.0.0+abc", st["storage"].Paictl)
}

// adds returns a function that adds a template to a chart.
func adds(name, text string) func(*helmchart.Chart) {
	return func(c *helmchart.Chart) {
		c.Templates = append(c.Templates, &helmchart.File{Name: "templates/" + name, Data: []byte(text)})
	}
}

const (
	harmless = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-next}\ndata: {word: next}\n"
	// No node has this label, so the pods of this Deployment never run.
	homeless = `apiVersion: apps/v1
kind: Deployment
metadata: {name: homeless}
spec:
  selector: {matchLabels: {app: homeless}}
  template:
    metadata: {labels: {app: homeless}}
    spec: {nodeSelector: {no: such-node}, containers: [{name: a, image: example.org/a:1}]}
`
)

func (l *apiLab) has(configMap string) bool {
	l.t.Helper()
	_, err := l.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(l.t.Context(), configMap, metav1.GetOptions{})
	return err == nil
}

func (l *apiLab) hasHomeless() bool {
	l.t.Helper()
	_, err := l.Client.AppsV1().Deployments(kube.SystemNamespace).Get(l.t.Context(), "homeless", metav1.GetOptions{})
	return err == nil
}

func TestAnUpgradeOnARealAPI(t *testing.T) {
	l := newAPILab(t)
	require.NoError(t, l.Start(t.Context(), l.options("watchdog", "node-exporter")))
	was := l.revisions()
	load := l.Load

	// A successful upgrade adds a revision. A start succeeds afterwards.
	l.brings(adds("next.yaml", harmless), "watchdog")
	require.ErrorAs(t, l.Start(t.Context(), l.options("watchdog")), new(*OutdatedError))
	require.NoError(t, l.Upgrade(t.Context(), l.options()))
	assert.True(t, l.has("watchdog-next"))
	assert.Equal(t, []string{"watchdog"}, l.story.summary().Changed)
	assert.Equal(t, was["watchdog"]+1, l.revisions()["watchdog"])
	require.NoError(t, l.Start(t.Context(), l.options("watchdog")))
	require.NoError(t, l.Upgrade(t.Context(), l.options()))
	assert.Zero(t, l.story.summary().Changes)
	good := l.Load

	// A service never becomes ready. The service is rolled back, the error explains the reason, and the upgrade skips later services.
	l.brings(adds("homeless.yaml", homeless), "node-exporter")
	l.brings(adds("more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"), "watchdog")
	o := l.options()
	o.Wait = 40 * time.Second
	err := l.Upgrade(t.Context(), o)
	var partial *PartialError
	require.ErrorAs(t, err, &partial)
	require.Len(t, partial.Failed, 1)
	assert.Equal(t, "node-exporter", partial.Failed[0].Service)
	assert.Contains(t, partial.Failed[0].Error, "homeless")
	assert.Equal(t, []string{"watchdog"}, partial.NotStarted)
	assert.False(t, l.hasHomeless())
	assert.False(t, l.has("more"))
	texts := []string{}
	for _, e := range l.story.of(EventReverted) {
		texts = append(texts, e.Message)
	}
	assert.Equal(t, []string{"rolled back to revision 1", "ready again"}, texts)

	// The run is killed while it waits. The next run continues, and rolls back to the working revision.
	ctx, kill := context.WithCancel(t.Context())
	o = l.options()
	told := o.Sink
	o.Sink = SinkFunc(func(e Event) {
		told.Emit(e)
		if e.Kind == EventApplied && e.Service == "node-exporter" {
			kill()
		}
	})
	require.ErrorIs(t, l.Upgrade(ctx, o), context.Canceled)
	assert.True(t, l.hasHomeless())
	o = l.options()
	o.Wait = 40 * time.Second
	require.ErrorAs(t, l.Upgrade(t.Context(), o), &partial)
	assert.False(t, l.hasHomeless())
	for _, e := range l.story.of(EventApplied) {
		assert.Equal(t, release.Unchanged, e.Action, "%s was there, and is only waited for", e.Service)
	}

	// The charts of the previous paictl still match the releases.
	l.Load = good
	require.NoError(t, l.Start(t.Context(), l.options()))
	l.Load = load
	require.ErrorAs(t, l.Start(t.Context(), l.options()), new(*OutdatedError), "an earlier paictl doesn't go back by the way either")
}

const wheels = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wheels.test.paictl.example}
spec:
  group: test.paictl.example
  scope: Namespaced
  names: {kind: Wheel, plural: wheels, singular: wheel, listKind: WheelList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}COLOR}}}}}}
`

func TestAnEarlierPaictlTakesNothingBackOnARealAPI(t *testing.T) {
	l := newAPILab(t)
	load := l.Load
	// Other tests use the same API server. This test must not find their objects or leave its own objects.
	away := func() {
		assert.NoError(t, l.Releases.Uninstall(context.WithoutCancel(t.Context()), kube.SystemNamespace, "watchdog"))
	}
	away()
	t.Cleanup(away)
	later := strings.Replace(wheels, "COLOR", ", color: {type: string}", 1)
	becomes(t, "v1.2.4-dev+one")
	l.brings(adds("wheels.yaml", later), "watchdog")
	require.NoError(t, l.Start(t.Context(), l.options("watchdog")))
	fields := func() string {
		raw, err := l.Client.Discovery().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/wheels.test.paictl.example").SetHeader("Accept", "application/json").DoRaw(t.Context())
		require.NoError(t, err)
		var crd struct {
			Spec struct {
				Versions []struct{ Schema map[string]any }
			}
		}
		require.NoError(t, json.Unmarshal(raw, &crd))
		text, err := json.Marshal(crd.Spec.Versions)
		require.NoError(t, err)
		return string(text)
	}
	require.Contains(t, fields(), "color")
	was := l.revisions()

	becomes(t, "v1.2.3")
	l.Load = load
	l.brings(adds("wheels.yaml", strings.Replace(wheels, "COLOR", "", 1)), "watchdog")
	require.ErrorAs(t, l.Upgrade(t.Context(), l.options("watchdog")), new(*DowngradeError))
	becomes(t, "v1.2.4-dev+another") // as between builds of one version
	err := l.Upgrade(t.Context(), l.options("watchdog"))
	require.ErrorContains(t, err, "customresourcedefinition wheels.test.paictl.example would lose field spec.color of version v1")
	assert.Equal(t, was, l.revisions())
	assert.Contains(t, fields(), "color")

	becomes(t, "v1.2.3")
	o := l.options("watchdog")
	o.Downgrade = true
	require.NoError(t, l.Upgrade(t.Context(), o))
	assert.NotContains(t, fields(), "color")
	var texts []string
	for _, e := range l.story.of(EventWarning) {
		texts = append(texts, e.Message)
	}
	assert.Contains(t, texts, "watchdog: objects lose their data in CustomResourceDefinition wheels.test.paictl.example: field spec.color of version v1")
	list, err := l.Status(t.Context())
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(s Status) bool { return s.Name == "watchdog" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, "v1.2.3", list[i].Paictl)
}

func TestSecretsOfBeforeAndAfterAreNotInDiffs(t *testing.T) {
	l := newAPILab(t)
	chart := func(text string) func(*helmchart.Chart) {
		return func(c *helmchart.Chart) {
			*c = helmchart.Chart{Metadata: &helmchart.Metadata{APIVersion: "v2", Name: "demo", Version: "0.1.0"},
				Templates: []*helmchart.File{{Name: "templates/c.yaml", Data: []byte(text)}}}
		}
	}
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo}\ndata: {login: 'user {{ .Values.word }}'}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: demo}\nstringData: {word: {{ .Values.word }}}\n"
	use := func(secret, text string) {
		l.configure("demo: {chart: ./demo, version: 0.1.0, secretValues: {word: " + secret + "}}\n")
		l.Load = func(ctx context.Context) (*Desired, error) {
			d, err := FromFolder(l.dir)(ctx)
			if err == nil {
				d.Catalogue.Get("demo").Chart = &helmchart.Chart{}
				chart(text)(d.Catalogue.Get("demo").Chart)
			}
			return d, err
		}
	}
	use("first-word", text)
	require.NoError(t, l.Start(t.Context(), l.options("demo")))
	use("second-word", text+"immutable: false\n")
	o := l.options("demo")
	o.DryRun = true
	require.NoError(t, l.Upgrade(t.Context(), o))
	planned := l.story.of(EventPlanned)
	require.Len(t, planned, 1)
	require.Len(t, planned[0].Plan.Changes, 2)
	raw, err := json.Marshal(l.story.events)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "first-word")
	assert.NotContains(t, string(raw), "second-word")
	assert.Contains(t, string(raw), "********")
}
