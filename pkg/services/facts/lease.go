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

// Lease is the name of a lease in kube.SystemNamespace. Each run holds this lease while it changes services. Earlier versions of paictl also hold the
// lease, but publish no facts.
const Lease = "paictl"

// LeaseDuration is how long the lease is valid after the last renewal.
const LeaseDuration = 30 * time.Second

// These are annotations of the lease.
const (
	AnnotationCommand = "paictl.openpai.org/command"
	// annotationPublished is the acquire time of the last run that published facts. A run that was killed, or a run of an earlier paictl, doesn't change
	// this annotation.
	annotationPublished = "paictl.openpai.org/published"
	// annotationKnown is the acquire time of a run. annotationKnown is set only if the published facts were current at that time. These facts describe
	// the services before the run.
	annotationKnown = "paictl.openpai.org/published-before"
)

func acquired(l *coordinationv1.Lease) string {
	if l.Spec.AcquireTime == nil {
		return ""
	}
	return l.Spec.AcquireTime.UTC().Format(metav1.RFC3339Micro)
}

// Current reports whether the last holder of the lease has published facts.
func Current(l *coordinationv1.Lease) bool {
	return acquired(l) != "" && l.Annotations[annotationPublished] == acquired(l)
}

// Acquire records in l whether the published facts are current. l is the lease to write. before is the previous lease, or nil.
func Acquire(l, before *coordinationv1.Lease) {
	if before != nil && Current(before) {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, annotationKnown, acquired(l))
		return
	}
	delete(l.Annotations, annotationKnown)
}

// Publish records that the current holder of the lease has published facts.
func Publish(l *coordinationv1.Lease) {
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, annotationPublished, acquired(l))
}

// age describes whether published facts are current.
type age int

const (
	current age = iota
	before      // a run is changing services, and the facts describe the services before it
	unknown     // a run changed services, and didn't publish
)

// readLease returns the age of the published facts, and the lease. The lease is nil if it doesn't exist.
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

// held reports whether a run holds the lease. held tolerates clock differences between machines.
func held(l *coordinationv1.Lease, now time.Time) bool {
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil {
		return false
	}
	since := now.Sub(l.Spec.RenewTime.Time)
	return -LeaseDuration < since && since < LeaseDuration
}
