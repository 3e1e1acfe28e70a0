package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// byFramework is the name of an index of pods by the names of their Frameworks.
const byFramework = "framework"

// caches contains the objects of jobs. The objects are shared and must not be changed, except pods, which are decoded for each caller.
type caches struct {
	namespace  string
	frameworks toolscache.SharedIndexInformer
	pods       toolscache.SharedIndexInformer
	configMaps toolscache.SharedIndexInformer // metadata of the attempts' ConfigMaps
	nodes      toolscache.SharedIndexInformer // jobs don't wait for them: they run without them as well
	machines   *machines
}

func newCaches(api client.WithWatch, namespace string) (*caches, error) {
	ours, err := labels.NewRequirement(v1.LabelFramework, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	attempts, err := labels.NewRequirement(status.LabelPart, selection.Equals, []string{partAttempt})
	if err != nil {
		return nil, err
	}
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	one := &metav1.PartialObjectMetadata{}
	one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	c := &caches{
		namespace:  namespace,
		frameworks: informer(api, namespace, &v1.FrameworkList{}, &v1.Framework{}, labels.Everything()),
		pods:       informer(api, namespace, &corev1.PodList{}, &corev1.Pod{}, labels.NewSelector().Add(*ours)),
		configMaps: informer(api, namespace, metadata, one, labels.NewSelector().Add(*attempts)),
		nodes:      informer(api, "", &corev1.NodeList{}, &corev1.Node{}, labels.Everything()),
		machines:   newMachines(),
	}
	_, err = c.nodes.AddEventHandler(c.machines.handler())
	return c, errors.Join(
		err, c.nodes.SetTransform(slimNode),
		c.frameworks.SetTransform(slimFramework), c.pods.SetTransform(packPod), c.configMaps.SetTransform(slimMetadata),
		c.pods.AddIndexers(toolscache.Indexers{byFramework: func(o any) ([]string, error) {
			return []string{podFrom(o).Labels[v1.LabelFramework]}, nil
		}}),
		c.frameworks.AddIndexers(toolscache.Indexers{byAfter: awaited}),
	)
}

// partAttempt is the value of status.LabelPart on the ConfigMap of an attempt. ConfigMaps with tasks have another value.
const partAttempt = "attempt"

func informer(api client.WithWatch, namespace string, list client.ObjectList, one runtime.Object, sel labels.Selector) toolscache.SharedIndexInformer {
	from := sourceOf(api, namespace, list, client.ListOptions{LabelSelector: sel})
	lw := &toolscache.ListWatch{ListWithContextFunc: from.List, WatchFuncWithContext: from.Watch}
	return toolscache.NewSharedIndexInformer(lw, one, 0, toolscache.Indexers{})
}

// sourceOf returns a source that lists and watches the objects of a namespace which match the selectors in only.
func sourceOf(api client.WithWatch, namespace string, list client.ObjectList, only client.ListOptions) watch.Source {
	options := func(o metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: namespace, LabelSelector: only.LabelSelector, FieldSelector: only.FieldSelector, Limit: o.Limit, Continue: o.Continue, Raw: &o}
	}
	empty := func() client.ObjectList { return list.DeepCopyObject().(client.ObjectList) }
	return watch.Source{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l := empty()
			return l, api.List(ctx, l, options(o))
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return api.Watch(ctx, empty(), options(o))
		},
	}
}

// start begins to fill the caches and keeps them up to date until the context ends. It returns when the Frameworks, pods and ConfigMaps have been
// read.
func (c *caches) start(ctx context.Context) error {
	for _, i := range []toolscache.SharedIndexInformer{c.frameworks, c.pods, c.configMaps, c.nodes} {
		go i.RunWithContext(ctx)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), c.frameworks.HasSynced, c.pods.HasSynced, c.configMaps.HasSynced) {
		return fmt.Errorf("list Frameworks, pods and ConfigMaps: %w", context.Cause(ctx))
	}
	return nil
}

func (c *caches) framework(name string) *v1.Framework {
	o, _, _ := c.frameworks.GetIndexer().GetByKey(c.namespace + "/" + name)
	f, _ := o.(*v1.Framework)
	return f
}

func (c *caches) pod(name string) *corev1.Pod {
	o, _, _ := c.pods.GetIndexer().GetByKey(c.namespace + "/" + name)
	return podFrom(o)
}

// podOf returns the pod with a name, or nil if there is no such pod or it has a different UID.
func (c *caches) podOf(name string, uid types.UID) *corev1.Pod {
	if p := c.pod(name); p != nil && p.UID == uid {
		return p
	}
	return nil
}

func (c *caches) node(name string) *corev1.Node {
	o, _, _ := c.nodes.GetIndexer().GetByKey(name)
	n, _ := o.(*corev1.Node)
	return n
}

func (c *caches) podsOf(framework string) []*corev1.Pod {
	all, _ := c.pods.GetIndexer().ByIndex(byFramework, framework)
	out := make([]*corev1.Pod, 0, len(all))
	for _, o := range all {
		out = append(out, podFrom(o))
	}
	return out
}

func (c *caches) configMap(name string) *metav1.PartialObjectMetadata {
	o, _, _ := c.configMaps.GetIndexer().GetByKey(c.namespace + "/" + name)
	cm, _ := o.(*metav1.PartialObjectMetadata)
	return cm
}

func pick(m map[string]string, keys ...string) map[string]string {
	out := make(map[string]string, len(keys))
	for _, k := range keys {
		if v, ok := m[k]; ok {
			out[k] = v
		}
	}
	return out
}

// slimFramework reduces a Framework for the cache. It packs the pod templates, which are needed only to make new pods, and removes the fields
// that an archived job no longer needs. The object in the API isn't changed.
func slimFramework(o any) (any, error) {
	f, ok := o.(*v1.Framework)
	if !ok {
		return o, nil
	}
	f.ManagedFields = nil
	archived := f.Status != nil && f.Status.ArchivedTime != nil
	if archived {
		delete(f.Annotations, v1.AnnotationConfig)
	}
	for i := range f.Spec.TaskRoles {
		task := &f.Spec.TaskRoles[i].Task
		part := limits(&task.Pod)
		if archived {
			task.Pod = part
			continue
		}
		part.Annotations = pick(task.Pod.Annotations, v1.AnnotationTaskRole, annotation.SpecKey)
		if err := task.Pack(part); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// limits returns the part of a pod template that lists and the accounting of GPUs need.
func limits(of *corev1.PodTemplateSpec) (out corev1.PodTemplateSpec) {
	for i := range of.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{Limits: of.Spec.Containers[i].Resources.Limits}})
	}
	return out
}

func slimMetadata(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		m.ManagedFields = nil
	}
	return o, nil
}

// settle returns how long the events of a Framework are collected before the Framework is processed. This is longer for a large Framework, which
// has more events and costs more to process.
func settle(tasks int32) time.Duration {
	if tasks < 50 {
		return 0
	}
	return min(time.Duration(tasks)*100*time.Microsecond, time.Second)
}
