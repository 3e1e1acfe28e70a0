package services

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
)

// stored stores a configuration with the given sections in the cluster. The loaded configuration has the same revision.
func (l *lab) stored(sections ...string) {
	l.t.Helper()
	s := store.New(l.client)
	d, err := s.Draft(l.t.Context(), store.Candidate{Force: true, Files: map[string][]byte{
		config.LayoutFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: Layout\nssh: {username: ubuntu, password: hunter2-of-ssh}\nmachine-sku:\n  g: {mem: 64Gi, cpu: {vcore: 16}, os: debian12}\n" +
			"machine-list:\n  - {hostname: m1, hostip: 10.0.0.1, machine-type: g, roles: [master]}\n"),
		config.RolesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: RoleDefinition\nk8s-role:\n" +
			"  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: \"true\"}}\n  worker: {labels: {pai-worker: \"true\"}, workloads: true}\n"),
		config.ServicesFile:   []byte("apiVersion: paictl.openpai.org/v1\nkind: ServicesConfiguration\ncluster:\n  common: {cluster-id: lab, data-path: /data}\n  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}\n" + strings.Join(sections, "")),
		config.KubernetesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {managed: false, version: v1.36.3, cluster-name: lab, cluster-dns: [10.0.0.53], load-balance-ip: 10.0.0.1}\n"),
	}})
	require.NoError(l.t, err)
	_, err = s.Push(l.t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(l.t, err)
	load := l.Load
	l.Load = func(ctx context.Context) (*Desired, error) {
		d, err := load(ctx)
		if err == nil {
			d.Revision, err = s.Current(ctx)
		}
		return d, err
	}
}

// report returns the report for a program that can't read releases.
func (l *lab) report() *state.Report {
	l.t.Helper()
	r := &facts.Reporter{Client: l.client, Ready: l.ready, Now: time.Now}
	out, err := r.Report(l.t.Context())
	require.NoError(l.t, err)
	return out
}

func TestWhatARunPublishesIsWhatTheReleasesSay(t *testing.T) {
	l := newLab(t)
	l.configure("", "alerts: {password: s3cr3t-word}\n")
	l.stored()
	require.NoError(t, l.start())
	l.configure("", "alerts: {password: s3cr3t-word}\ngrafana: {replicas: 3}\nnode-exporter: {enabled: false}\n")
	l.stored()
	require.NoError(t, l.start("storage"))
	l.ready.states["prometheus"] = ready.State{Pods: 2, ReadyPods: 1, Problems: []ready.Problem{{Object: "pod/p", Reason: "ProbeFailed", Message: "503"}}}
	same := func() {
		t.Helper()
		want, err := l.Status(t.Context())
		require.NoError(t, err)
		got := l.report()
		assert.Equal(t, want, got.Items)
		assert.Empty(t, got.Notes)
	}
	same()
	assert.Equal(t, ConfigurationChanged, l.states()["grafana"].Configuration)
	assert.Equal(t, StateOrphan, l.states()["node-exporter"].State)

	require.NoError(t, l.stop("grafana"))
	same()
	l.releases.refuse["alerts"] = errors.New("no")
	l.configure("", "alerts: {password: s3cr3t-word, replicas: 2}\n")
	l.stored()
	require.Error(t, l.Start(t.Context(), Options{Names: []string{"alerts"}, KeepFailed: true}))
	same()
	assert.Equal(t, StateFailed, l.states()["alerts"].State)

	cm, err := l.client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), facts.ConfigMap, metav1.GetOptions{})
	require.NoError(t, err)
	text, err := json.Marshal(cm)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "s3cr3t-word")
	assert.NotContains(t, string(text), "hunter2-of-ssh")
	assert.NotContains(t, string(text), "replicas", "it has neither values nor manifests")
}

func TestARunThatPublishesNothingMakesTheStateUnknown(t *testing.T) {
	l := newLab(t)
	l.stored()
	require.NoError(t, l.start())
	assert.Equal(t, StateReady, l.report().Items[0].State)

	_, release, err := NewLock(l.client, l.Process, "paictl service start", time.Now).Hold(t.Context()) // it is killed before it publishes, or an earlier paictl's
	require.NoError(t, err)
	assert.Contains(t, l.report().Notes[0].Message, "changes services")
	release()
	got := l.report()
	assert.Equal(t, state.StateUnknown, got.Items[0].State)
	assert.Contains(t, got.Notes[0].Message, "published no releases")

	require.NoError(t, l.start("storage"))
	got = l.report()
	assert.Equal(t, StateReady, got.Items[0].State)
	assert.Empty(t, got.Notes)
}

func TestARunThatLostTheLockDoesNotReplaceWhatTheNextOnePublished(t *testing.T) {
	l := newLab(t)
	l.stored()
	require.NoError(t, l.start())
	maps := corev1.SchemeGroupVersion.WithResource("configmaps")
	published := func() *corev1.ConfigMap {
		o, err := l.client.Tracker().Get(maps, kube.SystemNamespace, facts.ConfigMap)
		require.NoError(t, err)
		return o.(*corev1.ConfigMap)
	}
	l.client.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) { // as an API server does
		o := a.(clienttesting.UpdateAction).GetObject().(*corev1.ConfigMap)
		if o.Name == facts.ConfigMap && o.ResourceVersion != published().ResourceVersion {
			return true, nil, apierrors.NewConflict(maps.GroupResource(), o.Name, errors.New("changed"))
		}
		return false, nil, nil
	})
	load, done := l.Load, false
	l.releases.hold = func(string, string) { done = true }
	l.Load = func(ctx context.Context) (*Desired, error) {
		if done { // it publishes, and another run does so first
			other := published().DeepCopy()
			other.ResourceVersion, other.Data["grafana"] = "2", `{"namespace":"pai-system","absent":"stopped"}`
			require.NoError(t, l.client.Tracker().Update(maps, other, kube.SystemNamespace))
		}
		return load(ctx)
	}
	require.NoError(t, l.stop("node-exporter"))
	assert.Contains(t, published().Data["grafana"], "stopped")
	assert.Equal(t, state.StateUnknown, l.report().Items[0].State, "this run published nothing")
}

func TestAStopWithoutAConfigurationPublishesNothing(t *testing.T) {
	l := newLab(t)
	l.stored()
	require.NoError(t, l.start())
	l.Load = func(context.Context) (*Desired, error) { return nil, errors.New("broken") }
	require.NoError(t, l.stop("grafana"))
	assert.Equal(t, state.StateUnknown, l.report().Items[0].State)
}

func TestAStopWithNothingToDoPublishes(t *testing.T) {
	for verb, again := range map[string]func(*lab) error{
		"stop":   func(l *lab) error { return l.stop("grafana") },
		"delete": func(l *lab) error { return l.Delete(l.t.Context(), l.options("grafana")) },
	} {
		t.Run(verb, func(t *testing.T) {
			l := newLab(t)
			l.stored()
			require.NoError(t, l.start())
			require.NoError(t, l.stop("grafana"))
			_, release, err := NewLock(l.client, l.Process, "paictl service stop", time.Now).Hold(t.Context()) // it is killed before it publishes
			require.NoError(t, err)
			release()
			require.Equal(t, state.StateUnknown, l.report().Items[0].State)

			o := l.options("grafana")
			o.DryRun = true
			require.NoError(t, l.Stop(t.Context(), o))
			require.Equal(t, state.StateUnknown, l.report().Items[0].State, "a dry run writes nothing")

			require.NoError(t, again(l))
			got := l.report()
			assert.Empty(t, got.Notes)
			want, err := l.Status(t.Context())
			require.NoError(t, err)
			assert.Equal(t, want, got.Items)
		})
	}
}

func TestACommandThatChangesNoReleasePublishes(t *testing.T) {
	l := newLab(t)
	l.stored()
	require.NoError(t, l.start())
	l.configure("", "grafana: {replicas: 3}\n")
	l.stored("grafana: {replicas: 3}\n")
	got := l.report()
	require.NotEmpty(t, got.Notes, "it isn't known how services compare with the new configuration")

	_, release, err := NewLock(l.client, ThisProcess(), "paictl service start", time.Now).Hold(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Publish(t.Context(), "paictl config push"), "the run that holds the lock publishes")
	require.NotEmpty(t, l.report().Notes)
	release()

	require.NoError(t, l.Publish(t.Context(), "paictl config push"))
	want, err := l.Status(t.Context())
	require.NoError(t, err)
	got = l.report()
	assert.Equal(t, want, got.Items)
	assert.Empty(t, got.Notes)
	assert.Equal(t, ConfigurationChanged, l.states()["grafana"].Configuration)
}

func TestAnInterruptedRunPublishesWhatItDid(t *testing.T) {
	l := newLab(t)
	l.stored()
	require.NoError(t, l.start())
	ctx, cancel := context.WithCancel(t.Context())
	l.releases.hold = func(verb, _ string) {
		if verb == "uninstall" {
			cancel()
		}
	}
	require.Error(t, l.Stop(ctx, l.options("node-exporter")))
	l.releases.hold = func(string, string) {}
	want, err := l.Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, l.report().Items)
	assert.Empty(t, l.report().Notes)
}
