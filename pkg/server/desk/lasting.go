package desk

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
)

// lasts is how long a change goes on after its client has left.
const lasts = 30 * time.Second

// did acts, and writes what came of it to the audit. A client that leaves meanwhile neither leaves a change half made, nor the audit with
// a failure of something that was done.
func (d *Desk) did(ctx context.Context, rule string, t rules.Thing, detail map[string]string, act func(context.Context) error) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	return d.audited(ctx, rule, t, detail, act(ctx))
}

// lasting is a context that ends some time after the one of a request.
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

// keep stops a job that was made while its owner was removed or disabled. Who removes a person looks for their jobs once the API server knows
// that they may make no more; a job that comes later than that is found here.
func (s *Shop) keep(ctx context.Context, owner *people.Person, name string) error {
	if owner == nil {
		return nil
	}
	if err := s.People.Remains(ctx, owner); !errors.Is(err, people.ErrNoUser) {
		return nil // the job is there, and nothing says that it must not be
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
