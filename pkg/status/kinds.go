package status

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/job"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

// Names of kinds for which it matters whether no objects exist, or whether they aren't known.
const (
	kindPods  = "pods"
	kindNodes = "nodes"
)

// lister is client-go's function for a list.
type lister[L runtime.Object] func(ctx context.Context, o metav1.ListOptions) (L, error)

func listing[L runtime.Object](list lister[L]) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) }
}

// everywhere lists and watches in all namespaces, or within one for users who may not see more.
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

// try asks in all namespaces, or in one if the user isn't allowed more.
func try[T any](e *everywhere, ask func(namespace string) (T, error)) (T, error) {
	out, err := ask(e.namespace())
	if !apierrors.IsForbidden(err) {
		return out, err
	}
	was := e.narrow.Load()
	e.narrow.Store(!was) // permissions may have been added since
	out, other := ask(e.namespace())
	if other != nil && !was {
		e.narrow.Store(false)
		return out, err // its error names the missing permission; the other one is the same for one namespace
	}
	return out, other
}

// selected adds a field selector to list options.
func selected(o metav1.ListOptions, fields string) metav1.ListOptions {
	o.FieldSelector = fields
	return o
}

// allKinds are the objects that are followed.
func (f *Follower) allKinds() []*kind {
	core, resource := f.client.CoreV1(), f.client.ResourceV1()
	nodes := &kind{name: kindNodes, source: SourceAPI, one: &corev1.Node{}, convert: newNodeRow, list: listing(core.Nodes().List), watch: core.Nodes().Watch}
	nodes.set, nodes.replace = setter(f.b.nodes, f.b.nodeChanged)

	gpus := &kind{name: "resourceslices", source: SourceAPI, one: &resourceapi.ResourceSlice{}, convert: newSliceRow,
		list: listing(resource.ResourceSlices().List), watch: resource.ResourceSlices().Watch}
	gpus.set, gpus.replace = setter(f.b.slices, f.b.sliceChanged)

	out := append([]*kind{nodes, f.podKind(), gpus, f.claimKind(), f.jobKind(), f.configKind()}, f.platformKinds()...)
	for _, of := range []struct{ namespace, fields string }{
		{kube.JobNamespace, ""}, {kube.SystemNamespace, ""}, {metav1.NamespaceDefault, "involvedObject.kind=Node"},
	} {
		out = append(out, f.eventKind(of.namespace, of.fields))
	}
	return out
}

func (f *Follower) podKind() *kind {
	core, where := f.client.CoreV1(), &everywhere{within: kube.JobNamespace}
	k := &kind{name: kindPods, source: SourceAPI, one: &corev1.Pod{}, convert: newPodRow,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return try(where, func(ns string) (runtime.Object, error) { return core.Pods(ns).List(ctx, o) })
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Pods(where.namespace()).Watch(ctx, o)
		}}
	k.set, k.replace = setter(f.b.pods, func(key string, was, is *podRow) {
		f.b.podChanged(key, was, is)
		if platformPods(f.namespaces, was, is) {
			f.asker(SourceServices).kick()
		}
		if was != nil && was.job != "" || is != nil && is.job != "" {
			f.asker(SourceScheduler).kick()
		}
	})
	f.ofServices = append(f.ofServices, servicesWatch{k, where})
	return k
}

func (f *Follower) claimKind() *kind {
	resource, where := f.client.ResourceV1(), &everywhere{within: kube.JobNamespace}
	k := &kind{name: "resourceclaims", source: SourceAPI, one: &resourceapi.ResourceClaim{}, convert: newClaimRow,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return try(where, func(ns string) (runtime.Object, error) { return resource.ResourceClaims(ns).List(ctx, o) })
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.ResourceClaims(where.namespace()).Watch(ctx, o)
		}}
	k.set, k.replace = setter(f.b.claims, f.b.claimChanged)
	return k
}

func (f *Follower) jobKind() *kind {
	k := &kind{name: "frameworks", source: SourceJobs, one: &v1.Framework{}, convert: newJobRow,
		list: f.jobs.Frameworks.Source().List, watch: f.jobs.Frameworks.Source().Watch}
	k.set, k.replace = setter(f.b.jobs, func(key string, was, is *job.Brief) {
		f.b.jobChanged(key, was, is)
		f.asker(SourceScheduler).kick()
	})
	return k
}

func (f *Follower) eventKind(namespace, fields string) *kind {
	core := f.client.CoreV1().Events(namespace)
	k := &kind{name: "events of " + namespace, source: SourceAPI, optional: namespace != kube.JobNamespace, one: &corev1.Event{}, convert: newEventRow,
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.List(ctx, selected(o, fields))
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Watch(ctx, selected(o, fields))
		}}
	// Three kinds share one table: each replaces its own alone.
	own := map[string]*eventRow{}
	k.set, k.replace = setter(own, func(key string, _, is *eventRow) {
		put(f.b.events, key, is, func(was, is *eventRow) { f.b.eventChanged(key, was, is) })
		if len(own) > maxEventRows {
			trimEvents(own)
		}
	})
	return k
}

// configRow holds the version of the configuration, to notice that it must be read.
type configRow struct{ version string }

func (f *Follower) configKind() *kind {
	core := f.client.CoreV1().ConfigMaps(kube.SystemNamespace)
	const fields = "metadata.name=" + store.ConfigMapName
	table := map[string]*configRow{}
	k := &kind{name: "configuration", source: SourceServices, optional: true, one: &corev1.ConfigMap{},
		convert: func(o runtime.Object) (string, any) {
			m, ok := o.(*corev1.ConfigMap)
			if !ok {
				return "", nil
			}
			return m.Name, &configRow{m.ResourceVersion}
		},
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return core.List(ctx, selected(o, fields))
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return core.Watch(ctx, selected(o, fields))
		}}
	k.set, k.replace = setter(table, func(string, *configRow, *configRow) { f.asker(SourceServices).kick() })
	return k
}
