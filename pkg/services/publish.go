package services

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/facts"
)

// Time limits for publishing facts. The second limit is for a run that was interrupted, because its user is waiting for the end.
const (
	publishTime     = 30 * time.Second
	interruptedTime = 5 * time.Second
)

// Publish publishes the facts about all services, for commands that change no release. If another run holds the lock, Publish does nothing, because
// that run publishes the facts when it ends.
func (p *Platform) Publish(ctx context.Context, command string) error {
	lock := NewLock(p.Client, p.Process, command, p.Clock)
	held, release, err := lock.Hold(ctx)
	if _, ok := errors.AsType[*LockedError](err); ok {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	if err := p.publish(held); err != nil {
		return err
	}
	lock.published = true
	return nil
}

// publish writes the facts about all services, without secrets, for programs that may not read releases. The caller holds the lock, and ctx ends if
// the lock is lost.
func (p *Platform) publish(ctx context.Context) error {
	limit := publishTime
	if ctx.Err() != nil {
		limit = interruptedTime
	}
	run := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(run), limit)
	defer cancel()
	defer context.AfterFunc(run, func() {
		if errors.Is(context.Cause(run), ErrLockLost) {
			cancel()
		}
	})()
	publication, err := facts.Open(ctx, p.Client)
	if err != nil {
		return err
	}
	snap, err := p.look(ctx)
	if err != nil {
		return err
	}
	// Virtual clusters change without a run, so that readers compare them themselves.
	if s := snap.desired.Catalogue.Get(catalogue.SchedulerService); s != nil && snap.scheduler != "" {
		snap.scheduler = catalogue.SchedulerConfiguration(s.ReleaseValues())
	}
	out := &facts.Published{Revision: snap.desired.Revision.Number}
	if out.Services, err = snap.facts(); err != nil {
		return err
	}
	if public, err := store.New(p.Client).Public(ctx); err == nil && public.Revision.Number == out.Revision && public.Revision.UID == snap.desired.Revision.UID {
		if out.Configuration, err = facts.Digest(public); err != nil {
			return err
		}
	}
	return publication.Write(ctx, out)
}
