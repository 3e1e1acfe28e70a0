package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// sources returns the sources of events that queue a Framework by its name.
func (r *reconciler) sources() []source.Source {
	return []source.Source{
		&source.Informer{Informer: r.cache.frameworks, Handler: r.handler(func(o client.Object) string { return o.GetName() })},
		&source.Informer{Informer: r.cache.frameworks, Handler: r.wakers()},
		source.Func(r.followPods),
		&source.Informer{Informer: r.cache.configMaps, Handler: r.handler(framework)},
		source.Channel(r.logs.done, &handler.Funcs{GenericFunc: func(_ context.Context, e event.GenericEvent, q queue) {
			r.look(e.Object.GetName(), q)
		}}),
	}
}

func framework(o client.Object) string { return o.GetLabels()[v1.LabelFramework] }

func (r *reconciler) request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.o.Namespace, Name: name}}
}

func (r *reconciler) handler(of func(client.Object) string) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { r.look(of(e.Object), q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if !unchanged(e.ObjectOld, e.ObjectNew) {
				r.look(of(e.ObjectNew), q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { r.look(of(e.Object), q) },
	}
}

// look queues a Framework by its name. It first collects events of a large Framework for a while.
func (r *reconciler) look(name string, q queue) {
	if name == "" {
		return
	}
	if d := r.entries.settle(name); d > 0 {
		q.AddAfter(r.request(name), d)
		return
	}
	q.Add(r.request(name))
}

func (r *reconciler) followPods(_ context.Context, q queue) error {
	_, err := r.cache.pods.AddEventHandler(r.podHandler(q))
	return err
}

func (r *reconciler) podHandler(q queue) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if p := podFrom(o); p != nil {
				r.look(p.Labels[v1.LabelFramework], q)
			}
		},
		UpdateFunc: func(before, after any) {
			b, a := podFrom(before), podFrom(after)
			if b == nil || a == nil {
				return
			}
			of := a.Labels[v1.LabelFramework]
			if b.Status.PodIP == "" && a.Status.PodIP != "" {
				r.entries.addressed(of, r.now())
			}
			if ending(a) {
				r.entries.seen(of, a)
			}
			r.look(of, q)
		},
		DeleteFunc: func(o any) {
			if p := podFrom(o); p != nil {
				of := p.Labels[v1.LabelFramework]
				r.logs.forget(p.UID)
				r.entries.seen(of, p)
				r.look(of, q)
			}
		},
	}
}

// ending reports whether a pod's status may show how the pod ended or why it is being removed.
func ending(p *corev1.Pod) bool { return terminated(p) || len(p.Status.Conditions) > 0 }

// unchanged reports whether an update of a Framework changed only its status, which the controller itself writes.
func unchanged(before, after client.Object) bool {
	b, ok := before.(*v1.Framework)
	if !ok {
		return false
	}
	a, ok := after.(*v1.Framework)
	return ok && b.UID == a.UID && b.Generation == a.Generation && b.DeletionTimestamp.Equal(a.DeletionTimestamp) &&
		b.Annotations[v1.AnnotationRestart] == a.Annotations[v1.AnnotationRestart] && len(b.Finalizers) == len(a.Finalizers)
}

// settle returns how long the events of a Framework are collected before it is processed.
func (e *entries) settle(name string) time.Duration {
	if one := e.get(name); one != nil {
		return settle(one.tasks.Load())
	}
	return 0
}

func (e *entries) addressed(name string, at time.Time) {
	if one := e.get(name); one != nil {
		one.lastAddress.Store(at.UnixNano())
	}
}

func (e *entries) seen(name string, p *corev1.Pod) {
	if one := e.get(name); one != nil {
		one.seen(p)
	}
}
