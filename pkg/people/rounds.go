package people

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Rounds describes the rounds of requests to providers. Since is the time since which rounds have run without a gap. Last is the end of the last
// round. A zero time means that the time is unknown.
type Rounds struct{ Since, Last time.Time }

// Rounds reads the stored times of the rounds. It returns the zero Rounds if no times are stored.
func (d *Directory) Rounds(ctx context.Context) (Rounds, error) {
	l, err := d.core.CoordinationV1().Leases(v1.Namespace).Get(ctx, v1.RoundsLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Rounds{}, nil
	}
	if err != nil {
		return Rounds{}, fmt.Errorf("read the Lease %s: %w", v1.RoundsLease, err)
	}
	var r Rounds
	if l.Spec.AcquireTime != nil {
		r.Since = l.Spec.AcquireTime.Time
	}
	if l.Spec.RenewTime != nil {
		r.Last = l.Spec.RenewTime.Time
	}
	return r, nil
}

// NoteRounds stores the times of the rounds for the next replica that sends requests to providers.
func (d *Directory) NoteRounds(ctx context.Context, r Rounds) error {
	leases := d.core.CoordinationV1().Leases(v1.Namespace)
	l, err := leases.Get(ctx, v1.RoundsLease, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read the Lease %s: %w", v1.RoundsLease, err)
	}
	if missing {
		l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1.RoundsLease, Namespace: v1.Namespace}}
	}
	l.Spec.AcquireTime, l.Spec.RenewTime = &metav1.MicroTime{Time: r.Since}, &metav1.MicroTime{Time: r.Last}
	if missing {
		_, err = leases.Create(ctx, l, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write the Lease %s: %w", v1.RoundsLease, err)
	}
	return nil
}
