package facts

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/kube"
)

// Lease in kube.SystemNamespace is held by each run while it changes services, also by those of earlier paictls, which publish nothing.
const Lease = "paictl"

// LeaseDuration is how long after its last renewal a run holds the lease.
const LeaseDuration = 30 * time.Second

// Annotations of the lease.
const (
	AnnotationCommand = "paictl.openpai.org/command"
	// annotationPublished is the time at which the last run acquired the lease that published facts. A run that doesn't, because an earlier paictl
	// made it or because it was killed, leaves the time of another one.
	annotationPublished = "paictl.openpai.org/published"
	// annotationKnown is the time at which a run acquired the lease that found published facts up to date: they are about the services before it.
	annotationKnown = "paictl.openpai.org/published-before"
)

func acquired(l *coordinationv1.Lease) string {
	if l.Spec.AcquireTime == nil {
		return ""
	}
	return l.Spec.AcquireTime.UTC().Format(metav1.RFC3339Micro)
}

// Current reports whether the last run that held the lease has published facts.
func Current(l *coordinationv1.Lease) bool {
	return acquired(l) != "" && l.Annotations[annotationPublished] == acquired(l)
}

// Acquire notes whether the published facts were current. l is about to be acquired; before is the lease until then, or nil.
func Acquire(l, before *coordinationv1.Lease) {
	if before != nil && Current(before) {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, annotationKnown, acquired(l))
		return
	}
	delete(l.Annotations, annotationKnown)
}

// Publish notes that the run that holds the lease has published facts.
func Publish(l *coordinationv1.Lease) {
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, annotationPublished, acquired(l))
}

// age is the age of published facts.
type age int

const (
	current age = iota
	before      // a run changes services, and they are about the services before it
	unknown     // a run changed services, and didn't publish
)

// readLease returns the age of the published facts, and the lease; nil if it doesn't exist.
func readLease(ctx context.Context, client kubernetes.Interface, now time.Time) (age, *coordinationv1.Lease, error) {
	l, err := client.CoordinationV1().Leases(kube.SystemNamespace).Get(ctx, Lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return unknown, nil, nil
	case err != nil:
		return unknown, nil, fmt.Errorf("read whether a run changes services: %w", err)
	case Current(l):
		return current, l, nil
	case held(l, now) && l.Annotations[annotationKnown] == acquired(l):
		return before, l, nil
	}
	return unknown, l, nil
}

// held reports whether a run holds the lease. Clocks of machines may differ.
func held(l *coordinationv1.Lease, now time.Time) bool {
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil {
		return false
	}
	since := now.Sub(l.Spec.RenewTime.Time)
	return -LeaseDuration < since && since < LeaseDuration
}
