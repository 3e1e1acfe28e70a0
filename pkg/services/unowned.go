package services

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/services/facts"
)

// collectorPatience is how long the wait for Kubernetes' garbage collector lasts. The collector removes the pods of a deleted workload, but may be
// minutes late if it must remove many objects.
const collectorPatience = 10 * time.Second

// removeUnowned deletes pods whose owner no longer exists. If a ReplicaSet exists without its Deployment, removeUnowned deletes the ReplicaSet first,
// because the ReplicaSet would create the pods again.
func (r *run) removeUnowned(ctx context.Context, service string, pods []corev1.Pod) error {
	owners := facts.NewOwners(r.Client)
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil || p.Labels[labelPartOf] != manager { // a selector may also match pods of others
			continue
		}
		lost, err := owners.Missing(ctx, p)
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

// exactly returns options for deleting only the object with the given UID, and not a newer object with the same name.
func exactly(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

// tolerable returns nil for an error that means that an object no longer exists or was replaced with another object.
func tolerable(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
