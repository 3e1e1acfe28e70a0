package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// sources are what makes the controller look at a Framework. Each is known by its name.
func (r *reconciler) sources() []source.Source {
	return []source.Source{
		&source.Informer{Informer: r.cache.frameworks, Handler: r.handler(func(o client.Object) string { return o.GetName() })},
		&source.Informer{Informer: r.cache.frameworks, Handler: r.wakers()},
		&source.Informer{Informer: r.cache.pods, Handler: r.handler(framework)},
		&source.Informer{Informer: r.cache.configMaps, Handler: r.handler(framework)},
		source.Channel(r.logs.done, &handler.Funcs{GenericFunc: func(_ context.Context, e event.GenericEvent, q queue) {
			q.Add(r.request(e.Object.GetName()))
		}}),
	}
}

func framework(o client.Object) string { return o.GetLabels()[v1.LabelFramework] }

func (r *reconciler) request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.o.Namespace, Name: name}}
}

func (r *reconciler) handler(of func(client.Object) string) handler.EventHandler {
	add := func(o client.Object, q queue) {
		name := of(o)
		if name == "" {
			return
		}
		if d := r.entries.settle(name); d > 0 {
			q.AddAfter(r.request(name), d)
			return
		}
		q.Add(r.request(name))
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if addressed(e.ObjectOld, e.ObjectNew) {
				r.entries.addressed(of(e.ObjectNew), r.now())
			}
			if unchanged(e.ObjectOld, e.ObjectNew) {
				return
			}
			if p, ok := e.ObjectNew.(*corev1.Pod); ok && ending(p) {
				r.entries.seen(of(p), p)
			}
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.logs.forget(e.Object.GetUID())
			if p, ok := e.Object.(*corev1.Pod); ok {
				r.entries.seen(of(p), p)
			}
			add(e.Object, q)
		},
	}
}

// ending reports whether a pod says how it ended, or who takes it away.
func ending(p *corev1.Pod) bool { return terminated(p) || len(p.Status.Conditions) > 0 }

// addressed reports whether a pod got its address just now.
func addressed(before, after client.Object) bool {
	b, ok := before.(*corev1.Pod)
	if !ok {
		return false
	}
	a, ok := after.(*corev1.Pod)
	return ok && b.Status.PodIP == "" && a.Status.PodIP != ""
}

// unchanged reports whether an update of a Framework was only the controller's own writing of a status.
func unchanged(before, after client.Object) bool {
	b, ok := before.(*v1.Framework)
	if !ok {
		return false
	}
	a, ok := after.(*v1.Framework)
	return ok && b.UID == a.UID && b.Generation == a.Generation && b.DeletionTimestamp.Equal(a.DeletionTimestamp) &&
		b.Annotations[v1.AnnotationRestart] == a.Annotations[v1.AnnotationRestart] && len(b.Finalizers) == len(a.Finalizers)
}

// settle says how long the events of a Framework are collected.
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
