package people

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

const (
	// held is the duration of the Lease of administrators.
	held = 15 * time.Second
	// working is the maximum time of the work under the Lease. It ends before another holder may acquire the Lease.
	working = 12 * time.Second
	// waitsFor is the maximum time that a change waits for the Lease.
	waitsFor = time.Minute
)

// state determines which people are administrators.
type state struct {
	users     map[string]*v1.User // by name of the object
	groups    map[string]*v1.Group
	passwords map[string]bool
}

// administrators counts the people who can sign in as administrators without a group of a provider. These people are enabled, are by name in a group
// of administrators, and have a password or are linked with a provider.
func (s *state) administrators() int {
	made := newSnapshot(s.users, s.groups, nil, nil)
	n := 0
	for _, p := range made.sorted {
		inside := false
		for _, name := range p.User.Spec.Groups {
			g := made.byGroup[name]
			inside = inside || g != nil && g.Spec.Administrator
		}
		if inside && !p.Disabled && (len(p.User.Spec.Identities) > 0 || s.passwords[string(p.UID)]) {
			n++
		}
	}
	return n
}

// keepsAdministrator returns an error if a change would remove the last administrator. It reads people, groups and passwords from the API server.
func (d *Directory) keepsAdministrator(ctx context.Context, change func(*state)) error {
	s, err := d.counted(ctx)
	if err != nil {
		return err
	}
	if s.administrators() == 0 {
		return nil // no administrator can be lost
	}
	change(s)
	if s.administrators() == 0 {
		return hint.Wrap(ErrLastAdministrator, "make another person an administrator first: paictl user add NAME --administrator, or paictl group add-member")
	}
	return nil
}

// counted reads the current state from the API server.
func (d *Directory) counted(ctx context.Context) (*state, error) {
	if err := d.Load(ctx); err != nil {
		return nil, err
	}
	list, err := d.core.CoreV1().Secrets(v1.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1.LabelPeople + "=" + v1.SecretPassword})
	if err != nil {
		return nil, fmt.Errorf("list who has a password: %w", err)
	}
	s := &state{users: d.users.All(), groups: d.groups.All(), passwords: map[string]bool{}}
	for i := range list.Items {
		s.passwords[string(list.Items[i].Data[keyUID])] = true
	}
	return s, nil
}

// HasAdministrator reports whether at least one administrator can sign in. It sends requests to the API server.
func (d *Directory) HasAdministrator(ctx context.Context) (bool, error) {
	s, err := d.counted(ctx)
	if err != nil {
		return false, explain(err)
	}
	return s.administrators() > 0, nil
}

// exclusively calls do under the Lease of administrators, because do may remove the last administrator. Only one such call runs in the cluster at a
// time.
func (d *Directory) exclusively(ctx context.Context, do func(context.Context) error) error {
	d.alone.Lock()
	defer d.alone.Unlock()
	me := rand.Text()
	since, err := d.take(ctx, me)
	if err != nil {
		return err
	}
	defer d.giveBack(context.WithoutCancel(ctx), me)
	ctx, cancel := context.WithDeadline(ctx, since.Add(working))
	defer cancel()
	return do(ctx)
}

// take acquires the Lease, and returns the start time of the successful attempt.
func (d *Directory) take(ctx context.Context, me string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, waitsFor)
	defer cancel()
	leases := d.core.CoordinationV1().Leases(v1.Namespace)
	var seen string // the version of a Lease that another caller holds
	var seenAt time.Time
	for {
		began := time.Now()
		l, err := leases.Get(ctx, v1.AdministratorsLease, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1.AdministratorsLease, Namespace: v1.Namespace}}
			fill(l, me)
			if _, err = leases.Create(ctx, l, metav1.CreateOptions{}); err == nil {
				return began, nil
			}
		case err == nil && l.ResourceVersion != seen && l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "":
			seen, seenAt = l.ResourceVersion, time.Now()
		case err == nil && (l.ResourceVersion != seen || time.Since(seenAt) > held): // it is free, or its holder hasn't renewed it, by our own clock
			fill(l, me)
			if _, err = leases.Update(ctx, l, metav1.UpdateOptions{}); err == nil {
				return began, nil
			}
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return time.Time{}, fmt.Errorf("take the Lease %s: %w", v1.AdministratorsLease, err)
		}
		pause, _ := rand.Int(rand.Reader, big.NewInt(100))
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%w: another change of administrators takes too long", ErrUnavailable)
		case <-time.After(20*time.Millisecond + time.Duration(pause.Int64())*time.Millisecond):
		}
	}
}

func fill(l *coordinationv1.Lease, holder string) {
	seconds, now := int32(held/time.Second), metav1.NowMicro()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.AcquireTime, l.Spec.RenewTime = &holder, &seconds, &now, &now
}

// giveBack releases the Lease. If the release fails, other changes wait until the Lease expires.
func (d *Directory) giveBack(ctx context.Context, me string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	leases := d.core.CoordinationV1().Leases(v1.Namespace)
	l, err := leases.Get(ctx, v1.AdministratorsLease, metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != me {
		return
	}
	l.Spec.HolderIdentity = nil
	if _, err := leases.Update(ctx, l, metav1.UpdateOptions{}); err != nil {
		d.o.Log.WarnContext(ctx, "the Lease of administrators stays until its end", "error", err)
	}
}
