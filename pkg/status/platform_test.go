package status

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/test/tier"
)

// If a Deployment has no pods yet, only the watch of Deployments reports its change.
func TestAChangeOfAWorkloadOrAReleaseHasTheServicesAsked(t *testing.T) {
	tier.More(t, "it waits to see that nothing happens")
	w := newWorld(t)
	f, err := New(w.Cluster, options(t, w.Cluster))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	// No asker runs in this test, so the test reads the asker's channel.
	kicked := func() bool {
		select {
		case <-f.asker(SourceServices).kicked:
			return true
		default:
			return false
		}
	}
	for _, o := range f.ofServices {
		running.Go(func() { o.kind.store.Run(ctx) })
		require.Eventually(t, func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return o.kind.live
		}, time.Minute, 10*time.Millisecond)
	}
	kicked()
	labels := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}}}
	meta, of := metav1.ObjectMeta{Name: "status-kick", Labels: labels}, &metav1.LabelSelector{MatchLabels: labels}
	deployment := func(namespace string) func() error {
		return func() error {
			_, err := w.Client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: of, Template: pod}}, metav1.CreateOptions{})
			return err
		}
	}
	core, apps := w.Client.CoreV1().Secrets(kube.SystemNamespace), w.Client.AppsV1()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, ns := range []string{kube.SystemNamespace, metav1.NamespaceDefault} {
			_ = apps.Deployments(ns).Delete(ctx, meta.Name, metav1.DeleteOptions{})
			_ = apps.DaemonSets(ns).Delete(ctx, meta.Name, metav1.DeleteOptions{})
			_ = apps.StatefulSets(ns).Delete(ctx, meta.Name, metav1.DeleteOptions{})
		}
		_ = core.Delete(ctx, meta.Name, metav1.DeleteOptions{})
	})
	require.NoError(t, deployment(metav1.NamespaceDefault)())
	for _, one := range []struct {
		what   string
		change func() error
	}{
		{"a Deployment", deployment(kube.SystemNamespace)},
		{"a StatefulSet", func() error {
			_, err := apps.StatefulSets(kube.SystemNamespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: new(int32), Selector: of, Template: pod}}, metav1.CreateOptions{})
			return err
		}},
		{"a DaemonSet", func() error {
			_, err := apps.DaemonSets(kube.SystemNamespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: of, Template: pod}}, metav1.CreateOptions{})
			return err
		}},
		{"a release", func() error {
			_, err := core.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: meta.Name, Labels: map[string]string{"owner": "helm"}}}, metav1.CreateOptions{})
			return err
		}},
	} {
		assert.Never(t, kicked, 300*time.Millisecond, 20*time.Millisecond, "what is in another namespace is of no interest, nor told twice: before %s", one.what)
		require.NoError(t, one.change(), one.what)
		require.Eventually(t, kicked, time.Minute, 10*time.Millisecond, one.what)
	}
}

func TestServicesAreAskedRarelyOnlyWhileAllTheirChangesAreHeard(t *testing.T) {
	live := func() *Follower {
		f := &Follower{b: newTables(), namespaces: sets.New(kube.SystemNamespace)}
		for _, within := range []string{kube.JobNamespace, kube.SystemNamespace} {
			f.ofServices = append(f.ofServices, servicesWatch{&kind{live: true}, &everywhere{within: within}})
		}
		f.b.services = []Service{{services.Status{State: services.StateReady}}, {services.Status{State: services.StateDisabled}}}
		return f
	}
	for name, one := range map[string]struct {
		change func(f *Follower)
		want   time.Duration
	}{
		"all is heard": {func(*Follower) {}, servicesRarely},
		"a kind isn't heard, as without the right": {func(f *Follower) { f.ofServices[1].kind.live = false }, servicesEvery},
		"pods of the platform aren't seen":         {func(f *Follower) { f.ofServices[0].where.narrow.Store(true) }, servicesEvery},
		"only the platform's namespace is seen":    {func(f *Follower) { f.ofServices[1].where.narrow.Store(true) }, servicesRarely},
		"and a service lies in another":            {func(f *Follower) { f.ofServices[1].where.narrow.Store(true); f.namespaces.Insert("monitoring") }, servicesEvery},
		"one is starting, which changes with time": {func(f *Follower) { f.b.services[0].State = services.StateStarting }, servicesEvery},
		"one has failed":                           {func(f *Follower) { f.b.services[0].State = services.StateFailed }, servicesEvery},
	} {
		f := live()
		one.change(f)
		assert.Equal(t, one.want, f.pause(&asker{source: SourceServices, every: servicesEvery}), name)
		assert.Equal(t, servicesEvery, f.pause(&asker{source: SourceServices, every: servicesEvery, err: store.ErrNone}), name)
		assert.Equal(t, schedulerEvery, f.pause(&asker{source: SourceScheduler, every: schedulerEvery}), name)
	}
}
