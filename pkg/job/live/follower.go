package live

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/job/listing/feed"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// follower is the store of a reflector: it keeps little of each object, and passes changes to an index in the order in which the API server
// sends them. It isn't an informer, since an informer doesn't say when it has passed all of a later list.
type follower struct {
	index   *listing.Index
	handler toolscache.ResourceEventHandler
	// at returns the versions that an index has seen with a list of a version.
	at     func(version uint64) listing.Seen
	kind   any
	from   toolscache.ListerWatcher
	known  map[string]*known // by namespace and name; of the reflector's goroutine alone
	filled atomic.Bool
}

func newFollower(index *listing.Index, handler toolscache.ResourceEventHandler, kind any, from toolscache.ListerWatcher, at func(version uint64) listing.Seen) *follower {
	return &follower{index: index, handler: handler, at: at, kind: kind, from: from, known: map[string]*known{}}
}

// known is the part of an object that is kept: a hundredth of it.
type known struct {
	namespace, name, version string
	uid                      types.UID
	brief                    *listing.Brief
	pod                      feed.Pod
}

// GetObjectMeta returns the metadata that a reflector needs.
func (k *known) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: k.namespace, Name: k.name, ResourceVersion: k.version, UID: k.uid}
}

func (k *known) key() string { return k.namespace + "/" + k.name }

func slim(o any) (any, error) {
	switch o := o.(type) {
	case *v1.Framework:
		return &known{namespace: o.Namespace, name: o.Name, version: o.ResourceVersion, uid: o.UID, brief: listing.NewBrief(o)}, nil
	case *corev1.Pod:
		return &known{namespace: o.Namespace, name: o.Name, version: o.ResourceVersion, uid: o.UID,
			pod: feed.Pod{Framework: o.Labels[v1.LabelFramework], UID: o.UID, Start: listing.NewStart(o), Version: listing.ReadVersion(o.ResourceVersion)}}, nil
	}
	return o, nil
}

func briefOf(o any) *listing.Brief {
	if k, ok := o.(*known); ok {
		return k.brief
	}
	return nil
}

func podOf(o any) (feed.Pod, bool) {
	if k, ok := o.(*known); ok && k.brief == nil {
		return k.pod, true
	}
	return feed.Pod{}, false
}

func (f *follower) run(ctx context.Context) {
	toolscache.NewReflectorWithOptions(f.from, f.kind, f, toolscache.ReflectorOptions{}).RunWithContext(ctx)
}

// Transformer lets the reflector keep no more than this does, also while a list comes.
func (f *follower) Transformer() toolscache.TransformFunc { return slim }

// Add takes an object that came.
func (f *follower) Add(o any) error {
	s, _ := slim(o)
	if k, ok := s.(*known); ok {
		f.put(k)
	}
	return nil
}

// Update takes an object that changed.
func (f *follower) Update(o any) error { return f.Add(o) }

// Delete takes an object that went, as it was then.
func (f *follower) Delete(o any) error {
	s, _ := slim(o)
	if k, ok := s.(*known); ok {
		delete(f.known, k.key())
		f.handler.OnDelete(k)
	}
	return nil
}

// Replace takes a whole list.
func (f *follower) Replace(all []any, version string) error {
	at := f.at(listing.ReadVersion(version))
	f.index.Begin(at)
	gone := f.known
	f.known = make(map[string]*known, len(all))
	for _, o := range all {
		s, _ := slim(o)
		k, ok := s.(*known)
		if !ok {
			continue
		}
		have := gone[k.key()]
		if have != nil && have.uid == k.uid {
			delete(gone, k.key())
		}
		if f.known[k.key()] = k; have == nil || have.version != k.version {
			f.handler.OnAdd(k, !f.filled.Load())
		}
	}
	for key, k := range gone {
		f.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key, Obj: k})
	}
	f.index.Listed(at)
	f.filled.Store(true)
	return nil
}

// Resync implements the store of a reflector.
func (f *follower) Resync() error { return nil }

// put takes an object. One of that name that went unheard is gone first.
func (f *follower) put(k *known) {
	if have := f.known[k.key()]; have != nil && have.uid != k.uid {
		f.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: k.key(), Obj: have})
	}
	f.known[k.key()] = k
	f.handler.OnAdd(k, false)
}
