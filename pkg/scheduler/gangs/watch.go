package gangs

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// watch adds event handlers for pods, nodes, claims and the configuration. kube-scheduler also watches pods, nodes and claims.
func (b *Store) watch(shared informers.SharedInformerFactory) {
	b.pods = shared.Core().V1().Pods().Informer()
	b.nodes = shared.Core().V1().Nodes().Informer()
	if b.opts.Claims {
		b.claims = shared.Resource().V1().ResourceClaims().Informer()
	}
	only := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithNamespace(b.opts.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, b.opts.ConfigMap).String()
		}))
	b.config = only.Core().V1().ConfigMaps().Informer()
	// AddEventHandler fails only after the informer has stopped.
	_, _ = b.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { b.podSeen(nil, obj) },
		UpdateFunc: func(old, obj any) { b.podSeen(old, obj) },
		DeleteFunc: func(obj any) { b.podSeen(obj, nil) },
	})
	for informer, handle := range map[cache.SharedIndexInformer]func(key string){b.nodes: b.nodeChanged, b.config: b.configChanged} {
		h := func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				handle(key)
			}
		}
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: h, UpdateFunc: func(_, obj any) { h(obj) }, DeleteFunc: h,
		})
	}
}

func (b *Store) synced() bool {
	return b.pods.HasSynced() && b.nodes.HasSynced() && b.config.HasSynced()
}

// podSeen handles an event of a pod. If a pod's name is reused, the informer may report an update to an object with a different
// UID.
func (b *Store) podSeen(old, obj any) {
	if unknown, ok := old.(cache.DeletedFinalStateUnknown); ok {
		old = unknown.Obj
	}
	before, _ := old.(*corev1.Pod)
	now, _ := obj.(*corev1.Pod)
	ours := func(p *corev1.Pod) bool { return p != nil && RequestsCells(p) }
	if !ours(before) && !ours(now) {
		return
	}
	b.locked(func(s *state) {
		if before != nil && (now == nil || now.UID != before.UID) {
			s.gone(before.UID)
		}
		if now != nil {
			s.observe(now)
		}
	})
	b.signal()
}

func (b *Store) nodeChanged(name string) {
	b.locked(func(s *state) { s.reconcileNode(name, b.nodeObject(name)) })
	b.signal()
}

func (b *Store) podObject(key string) *corev1.Pod {
	obj, _, _ := b.pods.GetStore().GetByKey(key) // the store of an informer returns no errors
	p, _ := obj.(*corev1.Pod)
	return p
}

func (b *Store) nodeObject(name string) *corev1.Node {
	obj, _, _ := b.nodes.GetStore().GetByKey(name)
	n, _ := obj.(*corev1.Node)
	return n
}
