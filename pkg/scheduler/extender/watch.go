package extender

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// watch makes the informers of pods, nodes and the configuration.
func (e *Extender) watch() {
	all := informers.NewSharedInformerFactory(e.client, 0)
	e.pods = all.Core().V1().Pods().Informer()
	e.nodes = all.Core().V1().Nodes().Informer()
	only := informers.NewSharedInformerFactoryWithOptions(e.client, 0, informers.WithNamespace(e.opts.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, e.opts.ConfigMap).String()
		}))
	e.config = only.Core().V1().ConfigMaps().Informer()
	for informer, handle := range map[cache.SharedIndexInformer]func(key string){
		e.pods: e.podChanged, e.nodes: e.nodeChanged, e.config: e.configChanged,
	} {
		_ = informer.SetTransform(trim) // it hasn't started
		h := func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				handle(key)
			}
		}
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: h, UpdateFunc: func(_, obj any) { h(obj) }, DeleteFunc: h,
		}) // as above
	}
}

// trim drops who wrote which field, which is a third of a pod.
func trim(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// startWatching starts the informers and waits until they know what there is.
func (e *Extender) startWatching(ctx context.Context) error {
	for _, informer := range []cache.SharedIndexInformer{e.pods, e.nodes, e.config} {
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), e.pods.HasSynced, e.nodes.HasSynced, e.config.HasSynced) {
		return errors.New("stopped before pods, nodes and the configuration were read")
	}
	return nil
}

func (e *Extender) synced() bool {
	return e.pods.HasSynced() && e.nodes.HasSynced() && e.config.HasSynced()
}

// podChanged looks at what is in the store, not at the object of the event, which is older.
func (e *Extender) podChanged(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != nil {
		e.state.reconcile(key, e.podObject(key))
	}
}

func (e *Extender) nodeChanged(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != nil {
		e.state.reconcileNode(name, e.nodeObject(name))
	}
}

func (e *Extender) podObject(key string) *corev1.Pod {
	obj, _, _ := e.pods.GetStore().GetByKey(key) // the store has no errors
	p, _ := obj.(*corev1.Pod)
	return p
}

func (e *Extender) nodeObject(name string) *corev1.Node {
	obj, _, _ := e.nodes.GetStore().GetByKey(name)
	n, _ := obj.(*corev1.Node)
	return n
}
