package apivip

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

type link interface {
	// put adds the address to the interface, or extends its lifetime.
	put() error
	// remove removes the address. It returns nil if the machine doesn't have the address.
	remove() error
	// announce broadcasts in the network that this machine has the address.
	announce() error
	// other searches the network for another machine with the address. It returns the hardware address of that machine, or "" if no machine responds.
	other(ctx context.Context) (string, error)
}

// keeper holds the address while this machine has the lease and the local API server is ready.
type keeper struct {
	link   link
	lock   *lock
	ready  func(context.Context) error
	timing timing
	log    *slog.Logger

	isReady  atomic.Bool
	has      bool // this machine has the address
	since    int  // the number of ticks since then
	conflict string
	failing  time.Time // the time since which this machine has had the lease but not the address; zero if it has both
}

// The numbers of ticks between two announcements, and between two searches for another machine with the address. The first announceOften
// announcements are sent on consecutive ticks, because a single announcement may be lost.
const (
	announceOften = 4
	announceEvery = 10
	lookEvery     = 60
)

func (k *keeper) run(ctx context.Context) error {
	if err := k.link.remove(); err != nil { // an earlier process may have been killed
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { k.watch(ctx) })
	for k.untilReady(ctx) {
		if err := k.term(ctx); err != nil {
			return err
		}
		if k.gaveUp() {
			k.log.WarnContext(ctx, "this machine gave up the lease, and stays out of the election for a while: it can't have the address")
			pause(ctx, 2*k.timing.lease) // by then another machine has the lease, if there is one
		}
		k.failing = time.Time{}
	}
	return nil
}

// watch updates isReady with the state of the local API server until ctx ends.
func (k *keeper) watch(ctx context.Context) {
	failed, told := k.timing.failures, false
	for ctx.Err() == nil {
		ask, cancel := context.WithTimeout(ctx, k.timing.check)
		err := k.ready(ask)
		cancel()
		switch {
		case err == nil:
			if !k.isReady.Swap(true) {
				k.log.InfoContext(ctx, "the API server of this machine is ready")
			}
			failed, told = 0, false
		case ctx.Err() == nil:
			failed++
			if failed < k.timing.failures {
				break
			}
			k.isReady.Store(false)
			if !told { // this also warns of a server that was never ready
				told = true
				k.log.WarnContext(ctx, "the API server of this machine is not ready", "err", err)
			}
		}
		pause(ctx, k.timing.check)
	}
}

func (k *keeper) untilReady(ctx context.Context) bool {
	for ctx.Err() == nil && !k.isReady.Load() {
		pause(ctx, k.timing.tick)
	}
	return ctx.Err() == nil
}

// term takes part in the election. It returns when the API server isn't ready, this machine loses the lease, the address can't be set, or ctx ends.
// It removes the address before it releases the lease.
func (k *keeper) term(ctx context.Context) error {
	e, err := k.elector()
	if err != nil {
		return err
	}
	election, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	over := make(chan struct{})
	go func() {
		defer close(over)
		e.Run(election)
	}()
	for running := true; running && ctx.Err() == nil && k.isReady.Load() && !k.gaveUp(); {
		k.look(ctx)
		select {
		case <-over:
			running = false
		case <-ctx.Done():
		case <-time.After(k.timing.tick):
		}
	}
	k.drop(ctx)
	end()
	<-over
	return nil
}

// gaveUp reports whether this machine has had the lease without the address for too long. The limit is the time for which a hanging master may keep
// the address.
func (k *keeper) gaveUp() bool {
	return !k.failing.IsZero() && time.Since(k.failing) > k.timing.lifetime
}

// failed records the time of the first in a series of failed attempts to set the address.
func (k *keeper) failed() {
	if k.failing.IsZero() {
		k.failing = time.Now()
	}
}

// look sets or renews the address if this machine has the lease, and otherwise removes the address.
func (k *keeper) look(ctx context.Context) {
	if !k.lock.holds(k.timing.renew) {
		k.drop(ctx)
		k.failing = time.Time{}
		return
	}
	if !k.has || k.since%lookEvery == lookEvery-1 {
		if k.claimed(ctx) && !k.has {
			k.failed()
			return
		}
		if !k.lock.holds(k.timing.renew) {
			return
		}
	}
	if err := k.link.put(); err != nil {
		k.log.ErrorContext(ctx, "the address can't be set", "err", err)
		k.failed()
		return
	}
	k.failing = time.Time{}
	if !k.has {
		k.log.InfoContext(ctx, "this machine has the address")
		k.has, k.since = true, 0
	}
	if k.since < announceOften || k.since%announceEvery == 0 {
		if err := k.link.announce(); err != nil {
			k.log.ErrorContext(ctx, "the address can't be announced", "err", err)
		}
	}
	k.since++
}

// claimed reports whether another machine uses the address. That machine may be foreign, or a hanging master that had the address before.
func (k *keeper) claimed(ctx context.Context) bool {
	mac, err := k.link.other(ctx)
	if err != nil {
		k.log.ErrorContext(ctx, "whether another machine has the address is unknown", "err", err)
		return false
	}
	if mac != "" && mac != k.conflict {
		k.log.ErrorContext(ctx, "another machine of the network has the address", "hardware-address", mac)
	}
	k.conflict = mac
	return mac != ""
}

// drop removes the address if this machine has it. If the removal fails, the address expires when its lifetime ends.
func (k *keeper) drop(ctx context.Context) {
	if !k.has {
		return
	}
	if err := k.link.remove(); err != nil {
		k.log.ErrorContext(ctx, "the address can't be removed", "err", err)
		return
	}
	k.has = false
	k.log.InfoContext(ctx, "this machine no longer has the address")
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
