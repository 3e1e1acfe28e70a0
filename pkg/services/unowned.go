package services

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/services/ready"
)

const (
	labelName = "app.kubernetes.io/name"
	// collectorPatience is how long Kubernetes' garbage collector has to remove the pods of a workload that is gone.
	// On a cluster with much to remove it is minutes behind.
	collectorPatience = 10 * time.Second
)

// owners says which owners of pods are gone. It asks once for each.
type owners struct {
	client kubernetes.Interface
	mu     sync.Mutex
	gone   map[types.UID]bool
}

func newOwners(c kubernetes.Interface) *owners {
	return &owners{client: c, gone: map[types.UID]bool{}}
}

// lost reports whether the pod's owner is gone, so that the pod isn't restarted or removed. A ReplicaSet whose Deployment is gone counts
// as gone.
func (o *owners) lost(ctx context.Context, p *corev1.Pod) (bool, error) {
	ref := metav1.GetControllerOf(p)
	if ref == nil {
		return len(p.OwnerReferences) == 0, nil
	}
	o.mu.Lock()
	gone, known := o.gone[ref.UID]
	o.mu.Unlock()
	if known {
		return gone, nil
	}
	owner, err := o.get(ctx, p.Namespace, ref)
	if err != nil {
		return false, err
	}
	gone = owner == nil
	if !gone {
		if above := metav1.GetControllerOf(owner); above != nil {
			top, err := o.get(ctx, p.Namespace, above)
			if err != nil {
				return false, err
			}
			gone = top == nil
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[ref.UID] = gone
	return gone, nil
}

// learn asks for the owners of all pods at a time.
func (o *owners) learn(ctx context.Context, pods []corev1.Pod) error {
	one := map[types.UID]*corev1.Pod{} // of each owner
	for i := range pods {
		if ref := metav1.GetControllerOf(&pods[i]); ref != nil {
			one[ref.UID] = &pods[i]
		}
	}
	return each(slices.Collect(maps.Values(one)), defaultParallel, func(p *corev1.Pod) error {
		_, err := o.lost(ctx, p)
		return err
	})
}

// get returns an owner, or nil if it is gone. An owner of an unknown kind counts as existing.
func (o *owners) get(ctx context.Context, namespace string, ref *metav1.OwnerReference) (owner metav1.Object, err error) {
	apps, opts := o.client.AppsV1(), metav1.GetOptions{}
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	switch group + "/" + ref.Kind {
	case "apps/ReplicaSet":
		owner, err = apps.ReplicaSets(namespace).Get(ctx, ref.Name, opts)
	case "apps/Deployment":
		owner, err = apps.Deployments(namespace).Get(ctx, ref.Name, opts)
	case "apps/StatefulSet":
		owner, err = apps.StatefulSets(namespace).Get(ctx, ref.Name, opts)
	case "apps/DaemonSet":
		owner, err = apps.DaemonSets(namespace).Get(ctx, ref.Name, opts)
	case "batch/Job":
		owner, err = o.client.BatchV1().Jobs(namespace).Get(ctx, ref.Name, opts)
	default:
		return &metav1.ObjectMeta{}, nil
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for the owner of a pod: %w", err)
	case owner.GetUID() != ref.UID: // a later one of the same name
		return nil, nil
	}
	return owner, nil
}

// unowned returns the pods of services that no longer have an owner, by service.
func unowned(ctx context.Context, c kubernetes.Interface, namespaces []string) (map[string][]corev1.Pod, error) {
	out, owners := map[string][]corev1.Pod{}, newOwners(c)
	for _, namespace := range namespaces {
		list, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labelPartOf + "=" + manager + "," + labelName})
		if err != nil {
			return nil, fmt.Errorf("list the pods of the services: %w", err)
		}
		pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if err := owners.learn(ctx, pods); err != nil {
			return nil, err
		}
		for i := range pods {
			p := &pods[i]
			lost, err := owners.lost(ctx, p)
			if err != nil {
				return nil, err
			}
			if lost {
				name := p.Labels[labelName]
				out[name] = append(out[name], *p)
			}
		}
	}
	return out, nil
}

// unownedProblem describes a pod without an owner.
func unownedProblem(service string, p *corev1.Pod) ready.Problem {
	what := "it has no owner"
	if ref := metav1.GetControllerOf(p); ref != nil {
		what = fmt.Sprintf("its %s %s is gone", ref.Kind, ref.Name)
	}
	return ready.Problem{Object: "pod/" + p.Name, Reason: "Unowned", Message: "left behind: " + what + ", and nothing will remove it",
		Hint: "remove it with: paictl service stop " + service + "; then start the service again if you need it"}
}

// removeUnowned deletes those of the pods that no longer have an owner. If a ReplicaSet is left without its Deployment, it deletes the
// ReplicaSet first, which would otherwise make the pods again.
func (r *run) removeUnowned(ctx context.Context, service string, pods []corev1.Pod) error {
	owners := newOwners(r.Client)
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil || p.Labels[labelPartOf] != manager { // a selector may fit pods of others
			continue
		}
		lost, err := owners.lost(ctx, p)
		if err != nil {
			return err
		}
		if !lost {
			continue
		}
		if ref := metav1.GetControllerOf(p); ref != nil && ref.Kind == "ReplicaSet" {
			err := r.Client.AppsV1().ReplicaSets(p.Namespace).Delete(ctx, ref.Name, exactly(ref.UID))
			if tolerable(err) != nil {
				return fmt.Errorf("remove the ReplicaSet %s: %w", ref.Name, err)
			}
		}
		r.emit(Event{Kind: EventProgress, Service: service, Message: "removes pod " + p.Name + ", which no longer has an owner"})
		if err := r.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, exactly(p.UID)); tolerable(err) != nil {
			return fmt.Errorf("remove the pod %s: %w", p.Name, err)
		}
	}
	return nil
}

// exactly keeps a deletion from a later object of the same name.
func exactly(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

// tolerable drops errors that say that an object is gone, or another one has its name.
func tolerable(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
