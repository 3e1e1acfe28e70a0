package app

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
)

// lasts is how long a change continues after its client has left.
const lasts = 30 * time.Second

// did acts, and records the result in the audit. If the client leaves while it acts, the change isn't left half done, and the
// audit doesn't record a failure of a change that was made.
func (d *Actions) did(ctx context.Context, rule string, t rules.Thing, detail map[string]string, act func(context.Context) error) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	err := act(ctx)
	if errors.Is(err, errNothing) {
		return nil
	}
	return d.audited(ctx, rule, t, detail, err)
}

// errNothing is returned by an action that succeeded without a change. The audit has no record of it.
var errNothing = errors.New("nothing changed")

// lasting returns a context that ends some time after the context of a request.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(lasts)
		defer late.Stop()
		select {
		case <-out.Done():
		case <-late.C:
			cancel(context.Cause(ctx))
		}
	})
	return out, func() {
		stop()
		cancel(nil)
	}
}

// keep stops a job that was created while its owner was removed or disabled. The removal of a person stops the jobs that exist
// after the API server has recorded it; keep finds jobs that are created later.
func (s *App) keep(ctx context.Context, owner *people.Person, name string) error {
	if owner == nil {
		return nil
	}
	if err := s.People.Remains(ctx, owner); !errors.Is(err, people.ErrNoUser) {
		return nil // the job exists, and its owner may exist
	}
	made, err := s.Jobs.ResolveExact(ctx, owner.Name, name)
	if err == nil {
		_, err = s.Jobs.Stop(ctx, made)
	}
	if err != nil && !job.IsNotFound(err) {
		return err
	}
	return gone(owner.Name)
}
