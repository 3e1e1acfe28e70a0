package services

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/facts"
)

// annotationProcess is the annotation of the Lease that describes the holder's process. Runs on the same host read this annotation.
const annotationProcess = "paictl.openpai.org/process"

// The lease of a killed run expires after leaseDuration. A run that can't renew its lease stops before the lease expires, so that two runs never work
// at the same time.
const (
	leaseDuration = facts.LeaseDuration
	leaseRenewal  = 3 * time.Second
	leaseGiveUp   = 25 * time.Second // long enough for a restart of an API server
	leaseTouch    = 8 * time.Second  // for one attempt, even if the server is busy
	// leaseWatch is longer than leaseRenewal. If a lease doesn't change during leaseWatch, the holder no longer runs, even if the clocks of the hosts
	// differ.
	leaseWatch = 4 * time.Second
)

// acquireAttempts is the maximum number of attempts to acquire the lock when several runs start at the same moment. After each conflict, one of the
// runs holds the lock.
const acquireAttempts = 10

// Lock prevents concurrent runs on the services of a cluster.
type Lock struct {
	leases  leases.LeaseInterface
	process Process
	command string
	clock   func() time.Time

	identity string
	lease    *coordinationv1.Lease // as last written by this run
	// published means that this run has published the facts of all services.
	published bool
}

// NewLock returns the lock of a cluster's services without acquiring it.
func NewLock(client kubernetes.Interface, p Process, command string, clock func() time.Time) *Lock {
	return &Lock{leases: client.CoordinationV1().Leases(kube.SystemNamespace), process: p, command: command, clock: clock}
}

// Hold acquires the lock, or returns a *LockedError. The returned context ends with ErrLockLost if the lock is lost. The returned function releases
// the lock.
func (l *Lock) Hold(ctx context.Context) (context.Context, func(), error) {
	l.identity = fmt.Sprintf("%s_%s", l.process, rand.Text())
	if err := l.acquire(ctx); err != nil {
		return ctx, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	// Renew the lease until the release of the lock, because a canceled run still needs the lease for the cleanup.
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := l.renew(lasting); err != nil {
			cancel(err)
		}
	}()
	return held, func() {
		stop()
		<-ended
		l.release(context.WithoutCancel(ctx))
		cancel(nil)
	}, nil
}

// acquire takes the lease if it is free, or if its holder has exited.
func (l *Lock) acquire(ctx context.Context) error {
	var err error
	for range acquireAttempts {
		var have *coordinationv1.Lease
		have, err = l.leases.Get(ctx, facts.Lease, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			l.lease, err = l.leases.Create(ctx, l.filled(nil), metav1.CreateOptions{})
		case err != nil:
			return fmt.Errorf("read the lock of the services: %w", err)
		default:
			if err := l.free(ctx, have); err != nil {
				return err
			}
			l.lease, err = l.leases.Update(ctx, l.filled(have), metav1.UpdateOptions{})
		}
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return fmt.Errorf("take the lock of the services: %w", err)
}

// free returns nil if the lease may be taken. Otherwise free returns a *LockedError.
func (l *Lock) free(ctx context.Context, have *coordinationv1.Lease) error {
	if holder(have) == "" {
		return nil
	}
	if p, ok := processOf(have); ok && p.deadSeenFrom(l.process) {
		return nil
	}
	age := l.clock().Sub(renewed(have))
	if -leaseDuration < age && age < leaseDuration {
		return locked(have, leaseDuration-max(age, 0))
	}
	// The lease has expired according to this host's clock. The clocks may differ, so check whether the holder still renews the lease.
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(leaseWatch):
	}
	now, err := l.leases.Get(ctx, facts.Lease, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the lock of the services: %w", err)
	}
	if err == nil && !renewed(now).Equal(renewed(have)) && holder(now) != "" {
		return locked(now, leaseDuration)
	}
	return nil
}

func locked(l *coordinationv1.Lease, left time.Duration) error {
	e := &LockedError{Owner: holder(l), Command: l.Annotations[facts.AnnotationCommand]}
	if p, ok := processOf(l); ok {
		e.Owner = p.String()
	}
	if t := l.Spec.AcquireTime; t != nil {
		e.Since = t.UTC().Format(time.RFC3339)
	}
	return hint.Wrap(e, fmt.Sprintf("wait for it to end, or end that process: its lock expires %d s later", int(left.Round(time.Second).Seconds())))
}

// filled returns a copy of the lease with this run as the holder. have may be nil.
func (l *Lock) filled(have *coordinationv1.Lease) *coordinationv1.Lease {
	out := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: facts.Lease, Namespace: kube.SystemNamespace, Labels: ownLabels("")}}
	if have != nil {
		out = have.DeepCopy()
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	process, _ := json.Marshal(l.process) // marshalling strings and numbers doesn't fail
	out.Annotations[annotationProcess], out.Annotations[facts.AnnotationCommand] = string(process), l.command
	now, seconds := metav1.NewMicroTime(l.clock()), int32(leaseDuration.Seconds())
	out.Spec = coordinationv1.LeaseSpec{HolderIdentity: &l.identity, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
	facts.Acquire(out, have)
	return out
}

// renew renews the lease until ctx ends. renew returns an error if the lease is lost.
func (l *Lock) renew(ctx context.Context) error {
	last := l.clock()
	wait := leaseRenewal
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		err := l.touch(ctx, min(leaseTouch, leaseGiveUp-l.clock().Sub(last)))
		switch {
		case err == nil:
			last, wait = renewed(l.lease), leaseRenewal // by this clock, if it is kept current
		case errors.Is(err, context.Canceled):
			wait = 0 // released: the loop ends above
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			return fmt.Errorf("%w: another run has taken it", ErrLockLost)
		case l.clock().Sub(last) >= leaseGiveUp:
			return fmt.Errorf("%w: it could not be renewed for %s: %w", ErrLockLost, leaseGiveUp, err)
		default:
			wait = time.Second
		}
	}
}

// touch renews the lease. touch fails if another process has changed the lease.
func (l *Lock) touch(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	next := l.lease.DeepCopy()
	now := metav1.NewMicroTime(l.clock())
	next.Spec.RenewTime = &now
	written, err := l.leases.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return l.excuse(ctx, err)
	}
	l.lease = written
	return nil
}

// excuse returns nil for a conflict if this run still holds the lease. Such a conflict occurs if the response to an earlier renewal was lost. The
// next renewal starts from the current lease.
func (l *Lock) excuse(ctx context.Context, err error) error {
	if !apierrors.IsConflict(err) {
		return err
	}
	have, getErr := l.leases.Get(ctx, facts.Lease, metav1.GetOptions{})
	if getErr != nil {
		return getErr
	}
	if holder(have) != l.identity {
		return err
	}
	l.lease = have
	return nil
}

// release clears the holder, so that the next run can start immediately. If release fails, the lease expires.
func (l *Lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	have, err := l.leases.Get(ctx, facts.Lease, metav1.GetOptions{})
	if err != nil || holder(have) != l.identity {
		return
	}
	none := ""
	have.Spec.HolderIdentity, have.Spec.RenewTime = &none, nil
	if l.published {
		facts.Publish(have)
	}
	_, _ = l.leases.Update(ctx, have, metav1.UpdateOptions{})
}

func holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func renewed(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Time
}

func processOf(l *coordinationv1.Lease) (Process, bool) {
	var p Process
	err := json.Unmarshal([]byte(l.Annotations[annotationProcess]), &p)
	return p, err == nil && p.PID > 0
}
