package status

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/watch"
)

// Kinds of objects for which the model distinguishes an empty list from an unknown list.
const (
	kindPods  = "pods"
	kindNodes = "nodes"
)

// everywhere lists and watches objects in all namespaces. If the user may not list all namespaces, it uses only the
// namespace in the field within.
type everywhere struct {
	within string
	narrow atomic.Bool
}

func (e *everywhere) namespace() string {
	if e.narrow.Load() {
		return e.within
	}
	return metav1.NamespaceAll
}

// try sends a request for all namespaces, or for one namespace if that succeeded last time. If the request is
// forbidden, try sends the other request.
func try[T any](e *everywhere, ask func(namespace string) (T, error)) (T, error) {
	out, err := ask(e.namespace())
	if !apierrors.IsForbidden(err) {
		return out, err
	}
	was := e.narrow.Load()
	e.narrow.Store(!was) // permissions may have been added in the meantime
	out, other := ask(e.namespace())
	if other != nil && !was {
		e.narrow.Store(false)
		return out, err // its error names the missing permission; the error for one namespace says the same
	}
	return out, other
}

func (e *everywhere) source(in func(namespace string) watch.Source) watch.Source {
	return watch.Source{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return try(e, func(ns string) (runtime.Object, error) { return in(ns).List(ctx, o) })
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return in(e.namespace()).Watch(ctx, o)
		},
	}
}

func (f *Follower) allKinds() []*kind {
	core, resource := f.client.CoreV1(), f.client.ResourceV1()
	nodes := follow(f, &kind{name: kindNodes, source: SourceAPI}, watch.From(core.Nodes(), metav1.ListOptions{}), newNodeRow, into(f.b.nodes, f.b.nodeChanged))
	gpus := follow(f, &kind{name: "resourceslices", source: SourceAPI}, watch.From(resource.ResourceSlices(), metav1.ListOptions{}), newSliceRow, into(f.b.slices, f.b.sliceChanged))
	out := append([]*kind{nodes, f.podKind(), gpus, f.claimKind(), f.jobKind(), f.configKind()}, f.platformKinds()...)
	for _, of := range []struct{ namespace, fields string }{
		{kube.JobNamespace, ""}, {kube.SystemNamespace, ""}, {metav1.NamespaceDefault, "involvedObject.kind=Node"},
	} {
		out = append(out, f.eventKind(of.namespace, of.fields))
	}
	return out
}

func (f *Follower) podKind() *kind {
	where := &everywhere{within: kube.JobNamespace}
	from := where.source(func(ns string) watch.Source { return watch.From(f.client.CoreV1().Pods(ns), metav1.ListOptions{}) })
	k := follow(f, &kind{name: kindPods, source: SourceAPI}, from, newPodRow, into(f.b.pods, func(key string, was, is *podRow) {
		f.b.podChanged(key, was, is)
		if platformPods(f.namespaces, was, is) {
			f.asker(SourceServices).kick()
		}
		if was != nil && was.job != "" || is != nil && is.job != "" {
			f.asker(SourceScheduler).kick()
		}
	}))
	f.ofServices = append(f.ofServices, servicesWatch{k, where})
	return k
}

func (f *Follower) claimKind() *kind {
	where := &everywhere{within: kube.JobNamespace}
	from := where.source(func(ns string) watch.Source {
		return watch.From(f.client.ResourceV1().ResourceClaims(ns), metav1.ListOptions{})
	})
	return follow(f, &kind{name: "resourceclaims", source: SourceAPI}, from, newClaimRow, into(f.b.claims, f.b.claimChanged))
}

func (f *Follower) jobKind() *kind {
	return follow(f, &kind{name: "frameworks", source: SourceJobs, named: true}, f.jobs.Frameworks.Source(), job.NewBrief, into(f.b.jobs, func(key string, was, is *job.Brief) {
		f.b.jobChanged(key, was, is)
		f.asker(SourceScheduler).kick()
	}))
}

func (f *Follower) eventKind(namespace, fields string) *kind {
	from := watch.From(f.client.CoreV1().Events(namespace), metav1.ListOptions{FieldSelector: fields})
	k := &kind{name: "events of " + namespace, source: SourceAPI, optional: namespace != kube.JobNamespace}
	own, dropped := map[string]*eventRow{}, []string{}
	k.after = func() {
		if len(dropped) > 0 {
			k.store.Forget(dropped...)
			dropped = nil
		}
	}
	recent := &newest{}
	k.reset = recent.reset
	row := func(e *corev1.Event) *eventRow {
		if r := newEventRow(e); recent.has(r.uid, r.At) {
			return r
		}
		return nil
	}
	return follow(f, k, from, row, into(own, func(key string, _, is *eventRow) {
		put(f.b.events, key, is, func(was, is *eventRow) { f.b.eventChanged(key, was, is) })
		if len(own) > maxEventRows {
			dropped = append(dropped, trimEvents(own)...)
		}
	}))
}

// configRow holds the version of the configuration, which shows whether the configuration has changed.
type configRow struct{ version string }

func (f *Follower) configKind() *kind {
	from := watch.From(f.client.CoreV1().ConfigMaps(kube.SystemNamespace), metav1.ListOptions{FieldSelector: "metadata.name=" + store.ConfigMapName})
	return follow(f, &kind{name: "configuration", source: SourceServices, optional: true}, from,
		func(m *corev1.ConfigMap) *configRow { return &configRow{m.ResourceVersion} },
		into(map[string]*configRow{}, func(string, *configRow, *configRow) { f.asker(SourceServices).kick() }))
}
