package services

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

func (l *lab) states() map[string]Status {
	l.t.Helper()
	list, err := l.Status(l.t.Context())
	require.NoError(l.t, err)
	out := map[string]Status{}
	for _, s := range list {
		out[s.Name] = s
	}
	return out
}

func TestStatusTellsTheStateOfEveryService(t *testing.T) {
	l := started(t)
	l.configure("", "alerts: {password: s3cr3t-word}\nnode-exporter: {enabled: false}\ngrafana: {replicas: 3}\n")
	l.ready.states["prometheus"] = ready.State{Pods: 2, ReadyPods: 1, Problems: []ready.Problem{{Object: "pod/p", Reason: "ProbeFailed", Message: "503"}}}
	l.ready.states["alerts"] = ready.State{Pods: 1, Problems: []ready.Problem{{Object: "pod/a", Reason: "ImagePullBackOff", Message: "s3cr3t-word", Final: true}}}
	cut := l.releases.have["storage"]
	cut.Status = "pending-upgrade"
	l.releases.have["storage"] = cut
	st := l.states()
	for name, want := range map[string]string{
		"prometheus": StateStarting, "alerts": StateFailed, "grafana": StateReady, "storage": StateFailed, "node-exporter": StateOrphan,
	} {
		assert.Equal(t, want, st[name].State, name)
	}
	assert.Equal(t, "********", st["alerts"].Problems[0].Message)
	assert.Equal(t, "its last start failed or was interrupted (pending-upgrade)", st["storage"].Problems[0].Message)
	assert.Equal(t, "run: paictl service stop -n node-exporter", st["node-exporter"].Problems[0].Hint)
	assert.Equal(t, ConfigurationChanged, st["grafana"].Configuration)
	assert.Equal(t, ConfigurationCurrent, st["prometheus"].Configuration)
	assert.Equal(t, ConfigurationCurrent, st["alerts"].Configuration, "its credentials are those of the configuration")
	assert.Equal(t, 2, st["prometheus"].Pods)
	assert.Equal(t, 1, st["prometheus"].ReadyPods)
	assert.Equal(t, "prometheus 0.1.0", st["prometheus"].Chart)
	assert.Equal(t, 1, st["prometheus"].Revision)
}

func TestTheSchedulerIsUpToDateOnceItReadsTheStoredConfiguration(t *testing.T) {
	values := func(text string) map[string]any {
		return map[string]any{"replicas": int64(1), "global": map[string]any{"schedulerConfiguration": text, "other": "x"}}
	}
	svc := &catalogue.Service{Name: catalogue.SchedulerService, Values: values("new: 1\n")}
	rel := &release.Release{Values: values("old: 1\n")}
	assert.Equal(t, ConfigurationChanged, (&snapshot{scheduler: "old: 1\n"}).compare(svc, rel))
	assert.Equal(t, ConfigurationChanged, (&snapshot{}).compare(svc, rel))
	assert.Equal(t, ConfigurationCurrent, (&snapshot{scheduler: "new: 1"}).compare(svc, rel), "vc set has written it")
	rolledBack := &release.Release{Values: values("new: 1\n")}
	assert.Equal(t, ConfigurationChanged, (&snapshot{scheduler: "of vc set: 1"}).compare(svc, rolledBack))
	assert.Equal(t, ConfigurationCurrent, (&snapshot{}).compare(svc, rolledBack))
	rel.Values["replicas"] = int64(2)
	assert.Equal(t, ConfigurationChanged, (&snapshot{scheduler: "new: 1"}).compare(svc, rel))
}

func TestAStopThatWasCutOffIsNoFailedStart(t *testing.T) {
	l := started(t)
	cut := l.releases.have["grafana"]
	cut.Status = "uninstalling"
	l.releases.have["grafana"] = cut
	l.ready.states["grafana"] = ready.State{Problems: []ready.Problem{{Object: "deployment/grafana", Reason: "Missing", Message: "it is missing"}}}
	got := l.states()["grafana"]
	require.Len(t, got.Problems, 1, "that its objects go is what was asked for")
	assert.Equal(t, "its stop was interrupted (uninstalling)", got.Problems[0].Message)
	assert.Contains(t, got.Problems[0].Hint, "paictl service stop -n grafana")
}

func TestChangedCredentialsNeedARestart(t *testing.T) {
	l := started(t)
	l.configure("", "alerts: {password: another-word}\n")
	assert.Equal(t, ConfigurationChanged, l.states()["alerts"].Configuration)
}

func TestWhatIsNotThereIsStoppedDisabledOrNotInstalled(t *testing.T) {
	l := newLab(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "prometheus-data", Namespace: "pai-system"}})
	l.configure("", "node-exporter: {enabled: false}\n")
	st := l.states()
	assert.Equal(t, StateStopped, st["prometheus"].State, "its data is there")
	assert.Equal(t, StateDisabled, st["node-exporter"].State)
	assert.Equal(t, StateNotInstalled, st["grafana"].State)
}

func TestWhatWasStoppedIsStoppedAlsoWhereItKeepsNoData(t *testing.T) {
	l := started(t)
	require.NoError(t, l.stop("grafana", "node-exporter"))
	l.configure("", "node-exporter: {enabled: false}\n")
	st := l.states()
	assert.Equal(t, StateStopped, st["grafana"].State)
	assert.Equal(t, "paictl service start -n grafana", st["grafana"].Hint)
	assert.Equal(t, StateDisabled, st["node-exporter"].State, "it wouldn't be started")
	assert.Empty(t, st["node-exporter"].Hint)
	assert.Empty(t, st["prometheus"].Hint)

	l.configure("", "")
	require.NoError(t, l.start("grafana"))
	assert.Equal(t, StateReady, l.states()["grafana"].State)
	require.NoError(t, l.Delete(t.Context(), l.options("grafana")))
	st = l.states()
	assert.Equal(t, StateNotInstalled, st["grafana"].State, "a service that is deleted is not only stopped")
	assert.Equal(t, "paictl service start -n grafana", st["grafana"].Hint)
	assert.Equal(t, StateStopped, st["node-exporter"].State, "that start was of another")
}

func TestStatusAsksForFewThings(t *testing.T) {
	l := started(t)
	l.client.ClearActions()
	l.states()
	assert.LessOrEqual(t, len(l.client.Actions()), 5, "inventory, claims, credentials, ConfigMaps and pods, and no more per service")
}

func TestStatusAsJSONHoldsNoSecret(t *testing.T) {
	l := started(t)
	list, err := l.Status(t.Context())
	require.NoError(t, err)
	raw, err := json.Marshal(list)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "s3cr3t-word")
}

func TestAnOrphanOfAnEarlierConfigurationIsShown(t *testing.T) {
	l := started(t)
	l.Load = func(context.Context) (*Desired, error) {
		d := desired(t, "", "")
		fs := testCharts()
		for name := range fs {
			if len(name) > 15 && name[:15] == "charts/grafana/" {
				delete(fs, name)
			}
		}
		d.Catalogue = catalogueOf(t, fs)
		return d, nil
	}
	assert.Equal(t, StateOrphan, l.states()["grafana"].State)
}

func TestTheConfigMapsOfAReleaseAreFound(t *testing.T) {
	one := func(name string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	for manifest, want := range map[string][]string{
		one("there") + one("other"): {"there", "other"},
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: long\ndata:\n  a: |\n    kind: ConfigMap\n    not: [yaml\n" +
			"---\napiVersion: v1\ndata:\n  metadata: no\nkind: ConfigMap\nmetadata: {name: below}\n---\nkind: ConfigMap\nmetadata: {name: there}\n" +
			"---\nkind: ConfigMap\nmetadata: {name: elsewhere, namespace: other}\n---\nkind: Secret\nmetadata: {name: secret}\n": {"long", "below", "there"},
	} {
		got, err := configMapsOf(&release.Release{Namespace: "pai-system", Manifest: manifest})
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}
