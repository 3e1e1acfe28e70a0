package desk

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// KubeQuery selects objects of Kubernetes.
type KubeQuery struct {
	Namespace, LabelSelector, FieldSelector string
	// Limit is how many at most, Continue where an earlier list ended.
	Limit    int
	Continue string
}

// maxObjects is how many objects one answer has: a pod takes some ten kilobytes.
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

// KubeNodes are Kubernetes' nodes, for administrators.
func (d *Desk) KubeNodes(ctx context.Context, q KubeQuery) (*corev1.NodeList, error) {
	if err := rules.Class("kube.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	o, err := q.options()
	if err != nil {
		return nil, err
	}
	list, err := d.shop.Jobs.Client.CoreV1().Nodes().List(ctx, o)
	if err != nil {
		return nil, kubeError(err)
	}
	list.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}
	for i := range list.Items {
		plainMeta(&list.Items[i].ObjectMeta)
	}
	return list, nil
}

// KubePods are Kubernetes' pods, for administrators, without the environment of their containers.
func (d *Desk) KubePods(ctx context.Context, q KubeQuery) (*corev1.PodList, error) {
	if err := rules.Class("kube.read", &d.caller.Subject); err != nil {
		return nil, err
	}
	o, err := q.options()
	if err != nil {
		return nil, err
	}
	list, err := d.shop.Jobs.Client.CoreV1().Pods(q.Namespace).List(ctx, o)
	if err != nil {
		return nil, kubeError(err)
	}
	list.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
	for i := range list.Items {
		p := &list.Items[i]
		plainMeta(&p.ObjectMeta)
		for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for k := range containers {
				containers[k].Env = nil // others write secrets into it
			}
		}
		for k := range p.Spec.EphemeralContainers {
			p.Spec.EphemeralContainers[k].Env = nil
		}
	}
	return list, nil
}

// plainMeta takes out what repeats the rest of the object, environment included.
func plainMeta(m *metav1.ObjectMeta) {
	m.ManagedFields = nil
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
}

// kubeError is an error of a list: whose fault it is.
func kubeError(err error) error {
	switch {
	case apierrors.IsBadRequest(err):
		return wire.Bad("the selectors are refused: " + wire.Shown(err.Error()))
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return wire.Bad(`"continue" is too old: begin again without it`)
	}
	return err
}
