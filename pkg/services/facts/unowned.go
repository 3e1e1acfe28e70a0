package facts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/services/ready"
)

// parallel is the maximum number of concurrent requests for the owners of pods.
const parallel = 8

const labelName = "app.kubernetes.io/name"

// Owners reports whether the owners of pods still exist. Owners sends the requests for each owner only once.
type Owners struct {
	client kubernetes.Interface
	mu     sync.Mutex
	gone   map[types.UID]bool
}

// NewOwners returns Owners for a cluster. NewOwners sends no request.
func NewOwners(c kubernetes.Interface) *Owners {
	return &Owners{client: c, gone: map[types.UID]bool{}}
}

// Missing reports whether a pod's owner no longer exists. No controller replaces or removes such a pod. A ReplicaSet doesn't count as an owner if its
// Deployment no longer exists.
func (o *Owners) Missing(ctx context.Context, p *corev1.Pod) (bool, error) {
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

// learn reads the owners of all pods with concurrent requests.
func (o *Owners) learn(ctx context.Context, pods []corev1.Pod) error {
	one := map[types.UID]*corev1.Pod{} // one pod of each owner
	for i := range pods {
		if ref := metav1.GetControllerOf(&pods[i]); ref != nil {
			one[ref.UID] = &pods[i]
		}
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, p := range one {
		group.Go(func() error {
			_, err := o.Missing(ctx, p)
			return err
		})
	}
	return group.Wait()
}

// get returns an owner, or nil if the owner no longer exists. get treats owners of unknown kinds as existing.
func (o *Owners) get(ctx context.Context, namespace string, ref *metav1.OwnerReference) (owner metav1.Object, err error) {
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
	case owner.GetUID() != ref.UID: // a later object of the same name
		return nil, nil
	}
	return owner, nil
}

// Unowned returns the services' pods whose owner no longer exists, by service.
func Unowned(ctx context.Context, c kubernetes.Interface, namespaces []string) (map[string][]corev1.Pod, error) {
	out, owners := map[string][]corev1.Pod{}, NewOwners(c)
	for _, namespace := range namespaces {
		list, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: LabelPartOf + "=" + Manager + "," + labelName})
		if err != nil {
			return nil, fmt.Errorf("list the pods of the services: %w", err)
		}
		pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if err := owners.learn(ctx, pods); err != nil {
			return nil, err
		}
		for i := range pods {
			p := &pods[i]
			lost, err := owners.Missing(ctx, p)
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

func unownedProblem(service string, p *corev1.Pod) ready.Problem {
	what := "it has no owner"
	if ref := metav1.GetControllerOf(p); ref != nil {
		what = fmt.Sprintf("its %s %s is gone", ref.Kind, ref.Name)
	}
	return ready.Problem{Object: "pod/" + p.Name, Reason: "Unowned", Message: "left behind: " + what + ", and nothing will remove it",
		Hint: "remove it with: paictl service stop " + service + "; then start the service again if you need it"}
}
