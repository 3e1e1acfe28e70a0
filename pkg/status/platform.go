package status

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/services/state"
)

// Selectors of the objects of services: their workloads, and Helm's records of their releases. Only metadata is
// watched, because any change means that the services must be read again. A record contains the manifests of a whole
// release, which are large.
const (
	ofHelm  = "app.kubernetes.io/managed-by=Helm"
	records = "owner=helm"
)

// versionRow is the version of an object whose content isn't needed.
type versionRow struct{ namespace, version string }

func newVersionRow(m *metav1.PartialObjectMetadata) *versionRow {
	return &versionRow{m.Namespace, m.ResourceVersion}
}

// platformKinds returns the kinds of objects whose changes affect services. A user may not be allowed to read these
// objects. In that case the services are read every half minute.
func (f *Follower) platformKinds() []*kind {
	apps, core := appsv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	return []*kind{
		f.platformKind(apps.WithResource("deployments"), ofHelm), f.platformKind(apps.WithResource("statefulsets"), ofHelm),
		f.platformKind(apps.WithResource("daemonsets"), ofHelm), f.platformKind(core.WithResource("secrets"), records),
	}
}

func (f *Follower) platformKind(resource schema.GroupVersionResource, labels string) *kind {
	where := &everywhere{within: kube.SystemNamespace}
	from := where.source(func(ns string) watch.Source {
		return watch.From(f.metadata.Resource(resource).Namespace(ns), metav1.ListOptions{LabelSelector: labels})
	})
	k := follow(f, &kind{name: resource.Resource + " of services", source: SourceServices, optional: true}, from, newVersionRow,
		into(map[string]*versionRow{}, func(_ string, was, is *versionRow) {
			if is == nil {
				is = was
			}
			if f.namespaces.Has(is.namespace) {
				f.asker(SourceServices).kick()
			}
		}))
	f.ofServices = append(f.ofServices, servicesWatch{k, where})
	return k
}

// servicesWatch is a watch for a kind of object in the namespaces of services.
type servicesWatch struct {
	kind  *kind
	where *everywhere
}

// pause returns how long an asker waits for its next request without a kick.
func (f *Follower) pause(a *asker) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.source == SourceServices && a.err == nil && f.hearsServices() {
		return servicesRarely
	}
	return a.every
}

// hearsServices reports whether all changes of services are watched. Services that aren't ready are polled anyway,
// because their problems also change over time. The caller holds the lock.
func (f *Follower) hearsServices() bool {
	elsewhere := f.namespaces.Len() > 1 || !f.namespaces.Has(kube.SystemNamespace)
	for _, w := range f.ofServices {
		narrow := w.where.narrow.Load()
		if !w.kind.live || narrow && (elsewhere || w.where.within != kube.SystemNamespace) {
			return false
		}
	}
	return !slices.ContainsFunc(f.b.services, func(s Service) bool {
		return s.State == state.StateStarting || s.State == state.StateFailed
	})
}
