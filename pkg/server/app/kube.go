package app

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/people/rules"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/server/wire"
)

// KubeQuery selects Kubernetes objects, and limits their number.
type KubeQuery struct {
	Namespace, LabelSelector, FieldSelector string
	// Limit is the maximum number of objects. 0 means all objects. Continue is the continue token of an earlier list.
	Limit    int
	Continue string
}

// maxObjects limits the number of objects in memory during a response. A pod takes about ten kilobytes.
const maxObjects = 1000

func (q *KubeQuery) options() (o metav1.ListOptions, err error) {
	if _, err := labels.Parse(q.LabelSelector); err != nil {
		return o, wire.Bad(`"labelSelector" is malformed`)
	}
	if _, err := fields.ParseSelector(q.FieldSelector); err != nil {
		return o, wire.Bad(`"fieldSelector" is malformed`)
	}
	if q.Limit < 0 || q.Limit > maxObjects {
		return o, wire.Bad(fmt.Sprintf(`"limit" must be between 0 and %d`, maxObjects))
	}
	if q.Namespace != "" && len(validation.IsDNS1123Label(q.Namespace)) > 0 {
		return o, wire.Bad(`"namespace" can't be a name of a namespace`)
	}
	o = metav1.ListOptions{LabelSelector: q.LabelSelector, FieldSelector: q.FieldSelector, Limit: int64(q.Limit), Continue: q.Continue}
	if o.Limit == 0 {
		o.Limit = maxObjects
	}
	return o, nil
}

// pages reads a list page by page, and calls each with every page. If the query has a limit, it reads only one page.
func pages[List interface{ GetContinue() string }](q *KubeQuery, read func(metav1.ListOptions) (List, error), each func(List) error) error {
	o, err := q.options()
	if err != nil {
		return err
	}
	for {
		list, err := read(o)
		if apierrors.IsResourceExpired(err) && o.Continue != q.Continue {
			return &wire.Error{Status: http.StatusServiceUnavailable, Code: wire.CodeUnavailable, Message: "the list couldn't be read to its end in time", Remedy: `ask again, or for parts with "limit"`, RetryAfter: retryAfter}
		}
		if err != nil {
			return kubeError(err)
		}
		if err := each(list); err != nil {
			return err
		}
		if o.Continue = list.GetContinue(); o.Continue == "" || q.Limit > 0 {
			return nil
		}
	}
}

// KubeNodes reads the nodes of Kubernetes, and calls each with pages of the list. Only administrators may call it.
func (d *Actions) KubeNodes(ctx context.Context, q KubeQuery, each func(*corev1.NodeList) error) error {
	if err := rules.Class("kube.read", &d.caller.Subject); err != nil {
		return err
	}
	read := func(o metav1.ListOptions) (*corev1.NodeList, error) {
		return d.app.Jobs.Client.CoreV1().Nodes().List(ctx, o)
	}
	return pages(&q, read, func(list *corev1.NodeList) error {
		list.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}
		for i := range list.Items {
			plainMeta(&list.Items[i].ObjectMeta)
		}
		return each(list)
	})
}

// GPUs returns the names of the nodes, and the GPUs that their agents reported. Only administrators may call it.
func (d *Actions) GPUs(ctx context.Context) (nodes []string, gpus []schedulerapi.GPU, err error) {
	if err := rules.Class("kube.read", &d.caller.Subject); err != nil {
		return nil, nil, err
	}
	list, err := d.app.Jobs.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, kubeError(err)
	}
	for i := range list.Items {
		n := &list.Items[i]
		nodes = append(nodes, n.Name)
		reported, err := schedulerapi.ReadDevices(n.Annotations)
		if err != nil {
			return nil, nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		gpus = append(gpus, reported.GPUs(n.Name)...)
	}
	return nodes, gpus, nil
}

// KubePods reads the pods of Kubernetes without the environment of their containers, and calls each with pages of the list. Only administrators may
// call it.
func (d *Actions) KubePods(ctx context.Context, q KubeQuery, each func(*corev1.PodList) error) error {
	if err := rules.Class("kube.read", &d.caller.Subject); err != nil {
		return err
	}
	read := func(o metav1.ListOptions) (*corev1.PodList, error) {
		return d.app.Jobs.Client.CoreV1().Pods(q.Namespace).List(ctx, o)
	}
	return pages(&q, read, func(list *corev1.PodList) error {
		plainPods(list)
		return each(list)
	})
}

func plainPods(list *corev1.PodList) {
	list.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
	for i := range list.Items {
		p := &list.Items[i]
		plainMeta(&p.ObjectMeta)
		for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for k := range containers {
				containers[k].Env = nil // it may hold secrets
			}
		}
		for k := range p.Spec.EphemeralContainers {
			p.Spec.EphemeralContainers[k].Env = nil
		}
	}
}

// plainMeta removes metadata that repeats the other fields of the object, because the repetition includes the environment.
func plainMeta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
}

// kubeError converts errors that the client's query caused to responses. It returns other errors unchanged.
func kubeError(err error) error {
	switch {
	case apierrors.IsBadRequest(err):
		return wire.Bad("the selectors are refused: " + wire.Shown(err.Error()))
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return wire.Bad(`"continue" is too old: begin again without it`)
	}
	return err
}
