package facts

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/state"
)

type checker map[string]ready.State

func (c checker) CheckAll(_ context.Context, releases [][]ready.Target) ([]ready.State, error) {
	out := make([]ready.State, len(releases))
	for i, targets := range releases {
		out[i] = ready.State{Ready: true, Pods: 1, ReadyPods: 1}
		for _, t := range targets {
			if st, ok := c[t.Name]; ok {
				out[i] = st
			}
		}
	}
	return out, nil
}

const servicesText = "apiVersion: paictl.openpai.org/v1\nkind: ServicesConfiguration\ncluster:\n  common: {cluster-id: lab, data-path: /data}\n  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}\n"

type lab struct {
	t       *testing.T
	client  *fake.Clientset
	now     time.Time
	checker checker
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, client: fake.NewClientset(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), checker: checker{}}
	l.push("", "hunter2-of-ssh")
	return l
}

// push stores a configuration with the given sections of services.
func (l *lab) push(sections, password string) {
	l.t.Helper()
	s := store.New(l.client)
	d, err := s.Draft(l.t.Context(), store.Candidate{Force: true, Files: map[string][]byte{
		config.LayoutFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: Layout\nssh: {username: ubuntu, password: " + password + "}\nmachine-sku:\n  g: {mem: 64Gi, cpu: {vcore: 16}, gpu: {type: a100, count: 8}, os: debian12}\n" +
			"machine-list:\n  - {hostname: m1, hostip: 10.0.0.1, machine-type: g, roles: [master]}\n  - {hostname: gpu-1, hostip: 10.0.0.2, machine-type: g, roles: [worker]}\n"),
		config.RolesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: RoleDefinition\nk8s-role:\n" +
			"  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: \"true\"}}\n  worker: {labels: {pai-worker: \"true\"}, workloads: true}\n"),
		config.ServicesFile:   []byte(servicesText + sections),
		config.KubernetesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {managed: false, version: v1.36.3, cluster-name: lab, cluster-dns: [10.0.0.53], load-balance-ip: 10.0.0.1}\n"),
	}})
	require.NoError(l.t, err)
	_, err = s.Push(l.t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(l.t, err)
}

func (l *lab) public() *store.Public {
	l.t.Helper()
	p, err := store.New(l.client).Public(l.t.Context())
	require.NoError(l.t, err)
	return p
}

// lease writes and returns the lease of a run that begins now.
func (l *lab) lease(change func(now, before *coordinationv1.Lease)) *coordinationv1.Lease {
	l.t.Helper()
	api := l.client.CoordinationV1().Leases(kube.SystemNamespace)
	before, err := api.Get(l.t.Context(), Lease, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	now := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Lease, Namespace: kube.SystemNamespace}}
	if missing {
		before = nil
	} else {
		require.NoError(l.t, err)
		now = before.DeepCopy()
	}
	at, holder := metav1.NewMicroTime(l.now), "ann"
	now.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &at, RenewTime: &at}
	metav1.SetMetaDataAnnotation(&now.ObjectMeta, AnnotationCommand, "paictl service start -n grafana")
	change(now, before)
	if missing {
		now, err = api.Create(l.t.Context(), now, metav1.CreateOptions{})
	} else {
		now, err = api.Update(l.t.Context(), now, metav1.UpdateOptions{})
	}
	require.NoError(l.t, err)
	return now
}

// ran changes the lease like a complete run. If publishes is set, the run publishes facts.
func (l *lab) ran(publishes bool) {
	l.t.Helper()
	l.now = l.now.Add(time.Hour)
	l.lease(func(now, before *coordinationv1.Lease) {
		none := ""
		now.Spec.HolderIdentity, now.Spec.RenewTime = &none, nil
		if publishes {
			Acquire(now, before)
			Publish(now)
		}
	})
}

func deployed(name string) Service {
	return Service{Name: name, Namespace: kube.SystemNamespace, Wanted: true, Release: &Release{Status: StatusDeployed, Revision: 3, Chart: name + " 1.2.3",
		Updated: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), Paictl: "v1.2.3", Configuration: state.ConfigurationCurrent,
		Targets: []ready.Target{{Kind: "Deployment", Namespace: kube.SystemNamespace, Name: name}}}}
}

func write(t *testing.T, client *fake.Clientset, p *Published) error {
	t.Helper()
	w, err := Open(t.Context(), client)
	require.NoError(t, err)
	return w.Write(t.Context(), p)
}

// publish publishes facts and changes the lease like a run.
func (l *lab) publish(all ...Service) {
	l.t.Helper()
	p := l.public()
	digest, err := Digest(p)
	require.NoError(l.t, err)
	require.NoError(l.t, write(l.t, l.client, &Published{Services: all, Revision: p.Revision.Number, Configuration: digest}))
	l.ran(true)
}

func (l *lab) report() (map[string]state.Status, []state.Note) {
	l.t.Helper()
	r := &Reporter{Client: l.client, Ready: l.checker, Now: func() time.Time { return l.now }}
	out, err := r.Report(l.t.Context())
	require.NoError(l.t, err)
	by := map[string]state.Status{}
	for _, s := range out.Items {
		by[s.Name] = s
	}
	return by, out.Notes
}

func TestServicesAreJudgedByFactsAndObjects(t *testing.T) {
	l := newLab(t)
	failed, cut, orphan := deployed("prometheus"), deployed("storage"), deployed("old")
	failed.Release.ConfigMaps = []string{"rules"}
	cut.Release.Status = "pending-upgrade"
	orphan.Wanted, orphan.Release.Configuration = false, ""
	l.publish(deployed("grafana"), failed, cut, orphan,
		Service{Name: "watchdog", Namespace: kube.SystemNamespace, Wanted: true, Absent: state.StateStopped}, Service{Name: "agent", Namespace: kube.SystemNamespace, Absent: state.StateDisabled})
	l.checker["prometheus"] = ready.State{Pods: 2, ReadyPods: 1, Problems: []ready.Problem{{Object: "pod/p", Reason: "ImagePullBackOff", Message: "no image", Final: true}}}
	st, notes := l.report()
	assert.Empty(t, notes)
	for name, want := range map[string]string{"grafana": state.StateReady, "prometheus": state.StateFailed, "storage": state.StateFailed, "old": state.StateOrphan, "watchdog": state.StateStopped, "agent": state.StateDisabled} {
		assert.Equal(t, want, st[name].State, name)
	}
	assert.Equal(t, state.Status{Name: "grafana", Namespace: kube.SystemNamespace, State: state.StateReady, Pods: 1, ReadyPods: 1, Revision: 3, Chart: "grafana 1.2.3",
		Updated: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), Configuration: state.ConfigurationCurrent, Paictl: "v1.2.3"}, st["grafana"])
	assert.Equal(t, "configmap/rules", st["prometheus"].Problems[0].Object)
	assert.Equal(t, "pod/p", st["prometheus"].Problems[1].Object)
	assert.Equal(t, "its last start failed or was interrupted (pending-upgrade)", st["storage"].Problems[0].Message)
	assert.Equal(t, "paictl service start -n watchdog", st["watchdog"].Hint)
	assert.Empty(t, st["agent"].Hint)
}

func TestARunThatDidNotPublishMakesEverythingUnknown(t *testing.T) {
	l := newLab(t)
	l.publish(deployed("grafana"), Service{Name: "agent", Namespace: kube.SystemNamespace, Absent: state.StateDisabled})
	l.ran(false) // of an earlier paictl
	st, notes := l.report()
	for _, name := range []string{"grafana", "agent"} {
		assert.Equal(t, state.StateUnknown, st[name].State)
		assert.Empty(t, st[name].Configuration)
	}
	require.Len(t, notes, 1)
	assert.Equal(t, `"paictl service start -n grafana" of 2026-03-01T14:00:00Z published no releases, because an earlier paictl made it or because it was interrupted: those that are shown may have changed`, notes[0].Message)
	assert.Contains(t, notes[0].Remedy, "paictl service status --kubeconfig FILE")

	l.ran(true)
	st, notes = l.report()
	assert.Equal(t, state.StateReady, st["grafana"].State, "a later run publishes again")
	assert.Empty(t, notes)

	require.NoError(t, l.client.CoordinationV1().Leases(kube.SystemNamespace).Delete(t.Context(), Lease, metav1.DeleteOptions{}))
	st, notes = l.report()
	assert.Equal(t, state.StateUnknown, st["grafana"].State)
	assert.Contains(t, notes[0].Message, "the Lease paictl doesn't exist")
}

func TestServicesThatAnEarlierPaictlStoppedAreNotStartedAgain(t *testing.T) {
	l := newLab(t)
	orphan, cut := deployed("old"), deployed("storage")
	orphan.Wanted, orphan.Release.Configuration, cut.Release.Status = false, "", "pending-upgrade"
	elsewhere := deployed("a")
	elsewhere.Namespace = "mine"
	grafana := deployed("grafana")
	grafana.Release.ConfigMaps = []string{"dashboards"}
	l.publish(grafana, orphan, cut, elsewhere)
	l.checker["grafana"] = ready.State{Problems: []ready.Problem{{Object: "deployment/grafana", Reason: ready.ReasonMissing, Hint: "paictl service start"}, {Object: "pod/g", Reason: "ProbeFailed"}}}
	l.ran(false)
	st, _ := l.report()
	assert.Equal(t, []ready.Problem{{Object: "pod/g", Reason: "ProbeFailed"}}, st["grafana"].Problems, "what the cluster has now stays")
	assert.Empty(t, st["old"].Problems)
	assert.Empty(t, st["storage"].Problems)
	require.Len(t, st["a"].Problems, 1)
	assert.Contains(t, st["a"].Problems[0].Message, "the namespace mine")
}

func TestARunAfterTheLeaseWasDeletedDoesNotKnowTheReleases(t *testing.T) {
	l := newLab(t)
	l.publish(deployed("grafana"))
	l.ran(false) // of an earlier paictl
	require.NoError(t, l.client.CoordinationV1().Leases(kube.SystemNamespace).Delete(t.Context(), Lease, metav1.DeleteOptions{}))
	l.lease(Acquire)
	st, _ := l.report()
	assert.Equal(t, state.StateUnknown, st["grafana"].State)
}

func TestDuringARunReleasesAreThoseBeforeIt(t *testing.T) {
	l := newLab(t)
	l.publish(deployed("grafana"))
	begin := func() {
		l.now = l.now.Add(time.Hour)
		l.lease(Acquire)
	}
	begin()
	st, notes := l.report()
	assert.Equal(t, state.StateReady, st["grafana"].State)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0].Message, `"paictl service start -n grafana" of 2026-03-01T14:00:00Z changes services`)

	l.now = l.now.Add(time.Minute) // it was killed
	st, notes = l.report()
	assert.Equal(t, state.StateUnknown, st["grafana"].State)
	assert.Contains(t, notes[0].Message, "published no releases")

	begin() // another one begins, which doesn't know what the killed one did
	st, _ = l.report()
	assert.Equal(t, state.StateUnknown, st["grafana"].State)
}

func TestAConfigurationThatWasPushedSinceIsTold(t *testing.T) {
	for _, tc := range []struct{ name, sections, password, configuration, note string }{
		{name: "the same", password: "hunter2-of-ssh", configuration: state.ConfigurationCurrent},
		{name: "other virtual clusters", sections: "scheduler:\n  virtualClusters:\n    vision: {cells: [{cellType: g-NODE, cellNumber: 1}]}\n", password: "hunter2-of-ssh", configuration: state.ConfigurationCurrent},
		{name: "another section", sections: "grafana: {enabled: true}\n", password: "hunter2-of-ssh", configuration: state.ConfigurationUnknown, note: "releases were compared with revision 1 of the configuration, and revision 2 was pushed since"},
		{name: "another setting of the scheduler", sections: "scheduler: {replicas: 1}\n", password: "hunter2-of-ssh", configuration: state.ConfigurationUnknown, note: "revision 2 was pushed since"},
		{name: "another secret", password: "hunter3-of-ssh", configuration: state.ConfigurationUnknown, note: "revision 2 was pushed since"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			l.publish(deployed("grafana"))
			l.push(tc.sections, tc.password)
			st, notes := l.report()
			assert.Equal(t, tc.configuration, st["grafana"].Configuration)
			if tc.note == "" {
				assert.Empty(t, notes)
				return
			}
			require.Len(t, notes, 1)
			assert.Contains(t, notes[0].Message, tc.note)
		})
	}
}

func TestVirtualClustersOfTheSchedulerAreCompared(t *testing.T) {
	l := newLab(t)
	l.publish(deployed(scheduler))
	st, _ := l.report()
	assert.Equal(t, state.ConfigurationUnknown, st[scheduler].Configuration, "its ConfigMap doesn't exist")

	p := l.public()
	c, found := schedulerconfig.FromCluster(p.Cluster.Layout, config.ServicesFile, p.Files[config.ServicesFile])
	require.NoError(t, found.Err())
	text, err := schedulerconfig.Encode(c)
	require.NoError(t, err)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: schedulerconfig.ConfigMap, Namespace: kube.SystemNamespace}, Data: map[string]string{schedulerconfig.ConfigMapKey: string(text) + "\n"}}
	_, err = l.client.CoreV1().ConfigMaps(kube.SystemNamespace).Create(t.Context(), cm, metav1.CreateOptions{})
	require.NoError(t, err)
	st, _ = l.report()
	assert.Equal(t, state.ConfigurationCurrent, st[scheduler].Configuration)

	l.push("scheduler:\n  virtualClusters:\n    vision: {cells: [{cellType: g-NODE, cellNumber: 1}]}\n", "hunter2-of-ssh")
	st, _ = l.report()
	assert.Equal(t, state.ConfigurationChanged, st[scheduler].Configuration)
}

func TestServicesOutsideTheNamespaceAreUnknown(t *testing.T) {
	l := newLab(t)
	elsewhere, partly, claims := deployed("a"), deployed("b"), deployed("c")
	elsewhere.Namespace = "mine"
	partly.Release.Targets = append(partly.Release.Targets, ready.Target{Kind: "Deployment", Namespace: "theirs", Name: "x"})
	claims.Release.Targets = append(claims.Release.Targets, ready.Target{Kind: "PersistentVolumeClaim", Namespace: kube.JobNamespace, Name: "x"}, ready.Target{Kind: "PersistentVolume", Name: "x"})
	l.publish(elsewhere, partly, claims)
	st, notes := l.report()
	assert.Empty(t, notes)
	assert.Equal(t, state.StateUnknown, st["a"].State)
	assert.Equal(t, "it has objects in the namespace theirs, which the platform's server doesn't read", st["b"].Problems[0].Message)
	assert.Equal(t, state.StateReady, st["c"].State)
	for _, a := range l.client.Actions() {
		assert.NotContains(t, []string{"mine", "theirs"}, a.GetNamespace())
		if a.GetVerb() == "list" {
			assert.NotEqual(t, "secrets", a.GetResource().Resource)
		}
	}
}

func TestWithoutFactsTheErrorSaysHowTheyAreMade(t *testing.T) {
	l := newLab(t)
	r := &Reporter{Client: l.client, Ready: l.checker, Now: time.Now}
	_, err := r.Report(t.Context())
	require.ErrorIs(t, err, ErrNone)
	assert.Contains(t, hint.Of(err), "paictl service start -n NAME")
}

func (l *lab) corrupt(text string) {
	l.t.Helper()
	api := l.client.CoreV1().ConfigMaps(kube.SystemNamespace)
	cm, err := api.Get(l.t.Context(), ConfigMap, metav1.GetOptions{})
	require.NoError(l.t, err)
	cm.Data["grafana"] = text
	cm.Annotations[annotationRevision] = text
	_, err = api.Update(l.t.Context(), cm, metav1.UpdateOptions{})
	require.NoError(l.t, err)
}

func TestFactsThatPaictlDidNotWriteAreUnknown(t *testing.T) {
	l := newLab(t)
	l.publish(deployed("grafana"), deployed("prometheus"))
	for _, text := range []string{
		"", "null", "[]", "{", `{"namespace":"pai-system"}`, `{"namespace":"pai-system","absent":"ready"}`, `{"namespace":"pai-system","release":{}}`, `{"namespace":1}`,
		`{"namespace":"pai-system","release":{"revision":-1}}`, `{"namespace":"pai-system","release":{"revision":1,"configuration":"\u001b[31m"}}`, `{"namespace":"pai-system","release":{"revision":1e99}}`,
		`{"namespace":"pai-system","release":{"revision":1,"targets":[{"kind":"Secret","name":"x","namespace":"pai-system"}]}}`, `{"namespace":"pai-system","release":{"revision":1,"targets":[null]}}`,
		`{"namespace":"pai-system","release":{"revision":1,"updated":"yesterday"}}`, strings.Repeat("[", 100000),
	} {
		l.corrupt(text)
		st, _ := l.report()
		assert.Equal(t, state.StateUnknown, st["grafana"].State, "%.80s", text)
		assert.Contains(t, st["grafana"].Problems[0].Message, "paictl did not write its facts in ConfigMap pai-releases")
		assert.Equal(t, state.StateReady, st["prometheus"].State)
	}
}

func TestFactsAreWrittenOnlyIfTheyChanged(t *testing.T) {
	client := fake.NewClientset()
	p := &Published{Services: []Service{deployed("grafana"), deployed("storage")}, Revision: 4, Configuration: "abc"}
	for range 3 {
		require.NoError(t, write(t, client, p))
	}
	p.Services = p.Services[:1]
	require.NoError(t, write(t, client, p))
	var verbs []string
	for _, a := range client.Actions() {
		verbs = append(verbs, a.GetVerb())
	}
	assert.Equal(t, []string{"get", "create", "get", "get", "get", "update"}, verbs)
	back, spoilt, err := read(t.Context(), client)
	require.NoError(t, err)
	assert.Empty(t, spoilt)
	assert.Equal(t, p, back)
}

func FuzzFacts(f *testing.F) {
	text, err := json.Marshal(deployed("grafana"))
	require.NoError(f, err)
	f.Add(string(text), "1", "")
	f.Add("{}", "x", "2026-01-01T00:00:00Z")
	f.Fuzz(func(t *testing.T, text, revision, published string) {
		client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ConfigMap, Namespace: kube.SystemNamespace, Annotations: map[string]string{annotationRevision: revision}},
			Data: map[string]string{"grafana": text}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Lease, Namespace: kube.SystemNamespace, Annotations: map[string]string{annotationPublished: published}}})
		r := &Reporter{Client: client, Ready: ready.New(client), Now: time.Now}
		out, err := r.Report(t.Context())
		require.NoError(t, err)
		assert.Len(t, out.Items, 1)
	})
}
