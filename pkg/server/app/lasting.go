package app

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
)

// lasts is how long a change continues after its client has disconnected.
const lasts = 30 * time.Second

// did makes a change, and writes the result to the audit log. If the client disconnects during the change, did still completes the change and records
// its real result.
func (d *Actions) did(ctx context.Context, rule string, t rules.Object, detail map[string]string, act func(context.Context) error) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	err := act(ctx)
	if errors.Is(err, errNothing) {
		return nil
	}
	return d.audited(ctx, rule, t, detail, err)
}

// errNothing means that an operation succeeded without a change. Such an operation gets no audit record.
var errNothing = errors.New("nothing changed")

// lasting returns a context that ends 30 seconds after the context of a request has ended.
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

// keep stops a job if its owner was removed or disabled while the job was created. The removal of a person stops only jobs that exist at that time.
func (s *App) keep(ctx context.Context, owner *people.Person, name string) error {
	if owner == nil {
		return nil
	}
	if err := s.People.Remains(ctx, owner); !errors.Is(err, people.ErrNoUser) {
		return nil // the owner may still exist, so the job stays
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
