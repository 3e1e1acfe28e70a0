package services

import (
	"context"
	"errors"
	"time"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/facts"
)

// Time limits for publishing facts. The shorter limit applies to an interrupted run, because the user is waiting.
const (
	publishTime     = 30 * time.Second
	interruptedTime = 5 * time.Second
)

// Publish publishes the facts about all services. Publish is for commands that change no release. If another run holds the lock, Publish returns
// without publishing, because that run publishes the facts at its end.
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

// publish writes the facts about all services, without secrets, for programs that may not read releases. The caller holds the lock. ctx ends if the
// lock is lost.
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
	// Virtual clusters change without a run, so readers compare the virtual clusters.
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
