package ready

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/kube/watch"
)

// snapshot holds the objects that judge needs, as they were at one time.
type snapshot struct {
	now          time.Time
	deployments  []*appsv1.Deployment
	daemonSets   []*appsv1.DaemonSet
	statefulSets []*appsv1.StatefulSet
	replicaSets  []*appsv1.ReplicaSet
	revisions    []*appsv1.ControllerRevision
	jobs         []*batchv1.Job
	pods         []*corev1.Pod
	claims       []*corev1.PersistentVolumeClaim
	volumes      []*corev1.PersistentVolume
	classes      []*storagev1.StorageClass
	nodes        []*corev1.Node

	byOwner map[types.UID][]*corev1.Pod
	byNode  map[string]*corev1.Node
}

// index builds the maps for looking up pods by owner, and nodes by name.
func (s *snapshot) index() *snapshot {
	s.byOwner, s.byNode = map[types.UID][]*corev1.Pod{}, map[string]*corev1.Node{}
	for _, p := range s.pods {
		if owner := metav1.GetControllerOf(p); owner != nil {
			s.byOwner[owner.UID] = append(s.byOwner[owner.UID], p)
		}
	}
	for _, n := range s.nodes {
		s.byNode[n.Name] = n
	}
	return s
}

func find[T metav1.Object](list []T, namespace, name string) (out T, ok bool) {
	for _, o := range list {
		if o.GetNamespace() == namespace && o.GetName() == name {
			return o, true
		}
	}
	return out, false
}

func (s *snapshot) put(o any) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		s.deployments = append(s.deployments, o)
	case *appsv1.DaemonSet:
		s.daemonSets = append(s.daemonSets, o)
	case *appsv1.StatefulSet:
		s.statefulSets = append(s.statefulSets, o)
	case *appsv1.ReplicaSet:
		s.replicaSets = append(s.replicaSets, o)
	case *appsv1.ControllerRevision:
		s.revisions = append(s.revisions, o)
	case *batchv1.Job:
		s.jobs = append(s.jobs, o)
	case *corev1.Pod:
		s.pods = append(s.pods, o)
	case *corev1.PersistentVolumeClaim:
		s.claims = append(s.claims, o)
	case *corev1.PersistentVolume:
		s.volumes = append(s.volumes, o)
	case *storagev1.StorageClass:
		s.classes = append(s.classes, o)
	case *corev1.Node:
		s.nodes = append(s.nodes, o)
	}
}

// source defines how to read a kind of object, and which kinds of targets need this kind.
type source struct {
	need []string
	from func(c kubernetes.Interface, namespace string) watch.Source
}

var everything = metav1.ListOptions{}

// namespaced lists the kinds with a namespace, and clusterWide lists the kinds without a namespace.
var namespaced = []source{
	{[]string{kindDeployment}, func(c kubernetes.Interface, ns string) watch.Source {
		return watch.From(c.AppsV1().Deployments(ns), everything)
	}},
	{[]string{kindDeployment}, func(c kubernetes.Interface, ns string) watch.Source {
		return watch.From(c.AppsV1().ReplicaSets(ns), everything)
	}},
	{[]string{kindDaemonSet}, func(c kubernetes.Interface, ns string) watch.Source {
		return watch.From(c.AppsV1().DaemonSets(ns), everything)
	}},
	{[]string{kindDaemonSet}, func(c kubernetes.Interface, ns string) watch.Source {
		return watch.From(c.AppsV1().ControllerRevisions(ns), everything)
	}},
	{[]string{kindStatefulSet}, func(c kubernetes.Interface, ns string) watch.Source {
		return watch.From(c.AppsV1().StatefulSets(ns), everything)
	}},
	{[]string{kindJob}, func(c kubernetes.Interface, ns string) watch.Source {
		return watch.From(c.BatchV1().Jobs(ns), everything)
	}},
	{podKinds, func(c kubernetes.Interface, ns string) watch.Source {
		return watch.From(c.CoreV1().Pods(ns), everything)
	}},
	{[]string{kindClaim, kindStatefulSet}, func(c kubernetes.Interface, ns string) watch.Source {
		return watch.From(c.CoreV1().PersistentVolumeClaims(ns), everything)
	}},
}

var podKinds = []string{kindDeployment, kindDaemonSet, kindStatefulSet, kindJob, kindPod}

var clusterWide = []source{
	{podKinds, func(c kubernetes.Interface, _ string) watch.Source { return watch.From(c.CoreV1().Nodes(), everything) }},
	{[]string{kindVolume}, func(c kubernetes.Interface, _ string) watch.Source {
		return watch.From(c.CoreV1().PersistentVolumes(), everything)
	}},
	{[]string{kindClaim, kindStatefulSet}, func(c kubernetes.Interface, _ string) watch.Source {
		return watch.From(c.StorageV1().StorageClasses(), everything)
	}},
}

// take reads a snapshot with concurrent requests. take lists the kinds that the targets in each namespace need.
func take(ctx context.Context, c kubernetes.Interface, targets []target) (*snapshot, error) {
	needed := func(kinds []string, in func(target) bool) bool {
		return slices.ContainsFunc(targets, func(t target) bool { return slices.Contains(kinds, t.kind) && in(t) })
	}
	out := &snapshot{now: time.Now()}
	var lock sync.Mutex
	var group errgroup.Group
	read := func(k source, namespace string) {
		group.Go(func() error {
			found, err := k.from(c, namespace).List(ctx, everything)
			if err != nil {
				return fmt.Errorf("read the state of the services: %w", err)
			}
			lock.Lock()
			defer lock.Unlock()
			return meta.EachListItem(found, func(o runtime.Object) error { out.put(o); return nil })
		})
	}
	for _, k := range clusterWide {
		if needed(k.need, func(target) bool { return true }) {
			read(k, "")
		}
	}
	for _, namespace := range namespacesOf(targets) {
		for _, k := range namespaced {
			if needed(k.need, func(t target) bool { return t.namespace == namespace }) {
				read(k, namespace)
			}
		}
	}
	err := group.Wait()
	return out.index(), err
}

func namespacesOf(targets []target) []string {
	var out []string
	for _, t := range targets {
		if t.namespace != "" && !slices.Contains(out, t.namespace) {
			out = append(out, t.namespace)
		}
	}
	return out
}
