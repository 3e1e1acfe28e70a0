package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// look is the longest time between two rounds.
	look = time.Minute
	// most messages are sent between two writes of the record. A handler that is killed sends at most these again.
	chunk = 20
	// firstBackoff and lastBackoff are the times before a broken channel is retried.
	firstBackoff = time.Minute
	// unknownWait is how long Round waits before it checks again whether the cluster is known.
	unknownWait = 2 * time.Second
	lastBackoff = 15 * time.Minute
	// recordTime bounds the write of the record when a term ends.
	recordTime = 5 * time.Second
)

// Store keeps the record.
type Store interface {
	// Load returns the record, or nil before the first one.
	Load(ctx context.Context) (*Ledger, error)
	// Save replaces the record that was loaded or saved last. It returns ErrReplaced if another one has written it since.
	Save(ctx context.Context, l *Ledger) error
}

// ErrReplaced means that another replica has written the record.
var ErrReplaced = errors.New("another replica has written the record of notices")

// Counters count the results of notices.
type Counters interface {
	// Told counts notices to a kind of receiver, by their result.
	Told(channel string, r Result, n int)
	// Failed counts messages and connections of a channel that failed and are retried.
	Failed(channel string)
}

// Options of a Notifier.
type Options struct {
	Config *Config
	// World returns the world now; an error means that it isn't known.
	World    func() (*World, error)
	Mail     Channel
	Webhooks map[string]Channel
	// Own returns the channel of a person's own webhook; nil if the site permits none.
	Own      func(person string) Channel
	Store    Store
	Counters Counters
	Log      *slog.Logger
	Now      func() time.Time
	// Pause is the shortest time between two rounds.
	Pause time.Duration
	// Jumped reports whether the clock was set a short time ago. Then no notice is lost because it is old. Nil means that it never is.
	Jumped func() bool
}

// Notifier sends notices. Only one may run in a cluster.
type Notifier struct {
	o       Options
	ledger  *Ledger
	unsaved bool
	// began is when it began to look. A new record begins then: events may come before the cluster is known.
	began   time.Time
	backoff map[string]*backoff // of channels and receivers
	// pending are the notices that wait to be sent, by their keys in the record.
	pending map[string]Notice
	// next is the person whose own webhook is served first.
	next string

	mu         sync.Mutex
	deliveries map[types.UID]Delivery // of the Actions that the last round has seen
}

type backoff struct {
	failures int
	// refused counts the failures by which a server refused the receiver.
	refused int
	until   time.Time
}

// New returns a Notifier.
func New(o Options) *Notifier { return &Notifier{o: o, backoff: map[string]*backoff{}} }

// Run sends until ctx ends. touched has one entry if the world has changed.
func (n *Notifier) Run(ctx context.Context, touched <-chan struct{}) {
	n.ledger, n.unsaved, n.pending = nil, false, nil // another one may have written it
	n.deliver(nil, nil)
	n.began = n.o.Now()
	for ctx.Err() == nil {
		after, err := n.Round(ctx)
		if err != nil && ctx.Err() == nil {
			n.o.Log.WarnContext(ctx, "send notices", "error", err.Error())
		}
		if !sleep(ctx, n.o.Pause, nil) || !sleep(ctx, after-n.o.Pause, touched) {
			return
		}
	}
}

// sleep waits, or less if touched, and reports whether ctx is still open.
func sleep(ctx context.Context, d time.Duration, touched <-chan struct{}) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-touched:
	case <-t.C:
	}
	return ctx.Err() == nil
}

// Round sends the notices that are due, and returns how long to wait before the next round.
func (n *Notifier) Round(ctx context.Context) (time.Duration, error) {
	if n.began.IsZero() {
		n.began = n.o.Now()
	}
	world, err := n.o.World()
	if err != nil {
		return unknownWait, err
	}
	if n.ledger == nil {
		if err := n.load(ctx); err != nil {
			return firstBackoff, err
		}
	}
	if !n.jumped() {
		n.ledger.prune(n.o.Now())
	}
	if n.ledger.configure(n.o.Config.keys(), n.o.Now()) {
		n.unsaved = true
	}
	n.overflown(ctx)
	if n.unsaved {
		if err := n.save(ctx); err != nil {
			return firstBackoff, err
		}
	}
	all := n.o.Config.Notices(world)
	defer func() { n.deliver(world, all) }()
	due := n.settle(ctx, n.ledger.due(all))
	if n.unsaved {
		if err := n.save(ctx); err != nil {
			return firstBackoff, err
		}
	}
	batches, wait := n.ledger.plan(due, n.o.Config.PerHour, n.o.Now())
	after := look
	if wait > 0 {
		after = min(after, wait)
	}
	by, own := map[string][]Batch{}, map[string][]Batch{}
	for _, b := range batches {
		if b.To.Own {
			own[b.To.Person] = append(own[b.To.Person], b)
		} else {
			by[b.To.Webhook] = append(by[b.To.Webhook], b) // "" is mail
		}
	}
	for name, list := range by {
		channel, label := n.o.Mail, labelMail
		if name != "" {
			channel, label = n.o.Webhooks[name], name
		}
		left, err := n.channel(ctx, channel, label, label, list, n.o.Now().Add(channelTime))
		if err != nil {
			return firstBackoff, err
		}
		if left {
			after = 0
		}
	}
	if err := n.ownWebhooks(ctx, own); err != nil {
		return firstBackoff, err
	}
	for key, b := range n.backoff {
		if left := b.until.Sub(n.o.Now()); left > 0 {
			after = min(after, left)
		} else if left < -time.Hour {
			delete(n.backoff, key)
		}
	}
	return max(after, time.Second), nil
}

func (n *Notifier) load(ctx context.Context) error {
	l, err := n.o.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("read the record of notices: %w", err)
	}
	if l == nil {
		n.ledger = NewLedger(n.began)
		return n.save(ctx)
	}
	n.ledger = l
	return nil
}

// settle ends the notices that can't be sent, and returns the others.
func (n *Notifier) settle(ctx context.Context, due []Notice) (out []Notice) {
	now := n.o.Now()
	for i := range due {
		d := &due[i]
		var result Result
		switch {
		case d.To.mail() && !validAddress(d.To.Address):
			result = ResultSkipped
		case !n.jumped() && now.Sub(d.At) > tellWithin, n.ledger.Entries[d.key()].Tries >= mostTries:
			result = ResultLost
			n.lost(ctx, d)
		default:
			out = append(out, *d)
			continue
		}
		n.ledger.finish(d, result, now)
		n.unsaved = true
		n.o.Counters.Told(channelOf(d.To), result, 1)
	}
	n.pending = map[string]Notice{}
	for i := range out {
		n.pending[out[i].key()] = out[i]
	}
	return out
}

func (n *Notifier) lost(ctx context.Context, d *Notice) {
	n.o.Log.WarnContext(ctx, "a notice was not sent", "to", d.To.Key(), "subject", d.Subject)
}

// overflown counts the waiting notices that aren't sent because their receivers have too many: the record no longer covers the time of their events.
func (n *Notifier) overflown(ctx context.Context) {
	for key, d := range n.pending {
		if n.ledger.forgets(&d) {
			n.lost(ctx, &d)
			n.o.Counters.Told(channelOf(d.To), ResultLost, 1)
			delete(n.pending, key)
		}
	}
}

// Labels of channels in metrics and logs; webhooks have their names.
const (
	labelMail = "mail"
	labelOwn  = "personal-webhooks"
)

func channelOf(r Receiver) string {
	switch {
	case r.Own:
		return labelOwn
	case r.Webhook != "":
		return r.Webhook
	}
	return labelMail
}

// channelTime bounds how long a round serves one channel, or people's own webhooks: a slow one doesn't delay the notices of others for long.
const channelTime = 20 * time.Second

// ownWebhooks sends messages to people's own webhooks. Those that a round has no time for are served first in the next one.
func (n *Notifier) ownWebhooks(ctx context.Context, own map[string][]Batch) error {
	if n.o.Own == nil || len(own) == 0 {
		return nil
	}
	people := slices.Sorted(maps.Keys(own))
	if at, _ := slices.BinarySearch(people, n.next); at < len(people) {
		people = slices.Concat(people[at:], people[:at])
	}
	end := n.o.Now().Add(channelTime)
	over := func() bool { return !n.o.Now().Before(end) || ctx.Err() != nil }
	for _, name := range people {
		n.next = name
		if over() {
			return nil
		}
		if _, err := n.channel(ctx, n.o.Own(name), labelOwn, labelOwn+" "+name, own[name], end); err != nil {
			return err
		}
	}
	n.next = ""
	return nil
}

const (
	// mostBroken is how many receivers may break their connections, one after the other, before the channel counts as broken.
	mostBroken = 2
	// known is how often a receiver breaks the connection until a further break no longer counts against the channel.
	known = 2
)

// channel sends the messages of one channel, which key names, and reports whether some are left at the end of its time. An error means that the
// record can't be written. A receiver that breaks the connection waits alone: the others get a new connection, and come first the next time.
func (n *Notifier) channel(ctx context.Context, channel Channel, label, key string, list []Batch, end time.Time) (left bool, err error) {
	key = "channel " + key
	if channel == nil || n.waits(key) {
		return false, nil
	}
	slices.SortStableFunc(list, func(a, b Batch) int { return cmp.Compare(n.failures(&a), n.failures(&b)) })
	broken := 0
	for {
		ready := n.ready(list)
		if len(ready) == 0 || ctx.Err() != nil {
			return false, nil
		}
		if !n.o.Now().Before(end) {
			return true, nil
		}
		part := ready[:min(chunk, len(ready))]
		session, err := channel.Open(ctx)
		if err != nil {
			n.failed(ctx, label, key, err)
			return false, nil //nolint:nilerr // the channel is retried
		}
		sent, lost, err := n.send(ctx, session, label, key, part, end)
		session.Close()
		if err != nil {
			return false, err
		}
		list = ready[sent:]
		if sent > 1 || lost == nil {
			broken = 0
		}
		if lost == nil || n.failures(&part[sent-1]) > known {
			continue
		}
		if broken++; broken >= mostBroken {
			n.failed(ctx, label, key, lost)
			return false, nil
		}
	}
}

// failures returns how often messages to the receiver have failed since the last success.
func (n *Notifier) failures(b *Batch) int {
	if f := n.backoff["to "+b.To.Key()]; f != nil {
		return f.failures
	}
	return 0
}

// ready returns the messages whose receivers don't wait.
func (n *Notifier) ready(list []Batch) (out []Batch) {
	for _, b := range list {
		if !n.waits("to " + b.To.Key()) {
			out = append(out, b)
		}
	}
	return out
}

// send sends some messages over one connection, between two writes of the record. It returns how many it has tried until the end of the channel's time, and
// why the connection was lost by the last one of them, if it was.
func (n *Notifier) send(ctx context.Context, s Session, label, channel string, part []Batch, end time.Time) (tried int, lost, err error) {
	for i := range part {
		n.ledger.begin(&part[i], n.o.Now())
	}
	if err := n.save(ctx); err != nil {
		if n.ledger != nil {
			for i := range part {
				n.ledger.revert(&part[i])
			}
		}
		return 0, nil, err
	}
	for i := range part {
		b := &part[i]
		if lost != nil || ctx.Err() != nil || i > 0 && !n.o.Now().Before(end) {
			n.ledger.revert(b)
			continue
		}
		tried++
		err := s.Send(ctx, b.To.Address, n.o.Config.message(b))
		if err == nil {
			for k := range b.Notices {
				n.ledger.finish(&b.Notices[k], ResultSent, n.o.Now())
				delete(n.pending, b.Notices[k].key())
			}
			delete(n.backoff, channel)
			delete(n.backoff, "to "+b.To.Key())
			n.o.Counters.Told(label, ResultSent, len(b.Notices))
			continue
		}
		if !errors.Is(err, ErrUnknown) {
			n.ledger.revert(b)
		}
		if !errors.Is(err, ErrRefused) {
			lost = err
		}
		n.failed(ctx, label, "to "+b.To.Key(), err)
	}
	// The record is written even if the term ends here.
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return tried, lost, n.save(rest)
}

// save writes the record. If that fails, the record in memory is still the latest, and is written in the next round; unless another replica
// has written one.
func (n *Notifier) save(ctx context.Context) error {
	if !n.jumped() {
		n.ledger.prune(n.o.Now())
	}
	err := n.o.Store.Save(ctx, n.ledger)
	n.unsaved = err != nil
	if errors.Is(err, ErrReplaced) {
		n.ledger, n.unsaved = nil, false
	}
	if err != nil {
		return fmt.Errorf("write the record of notices: %w", err)
	}
	return nil
}

func (n *Notifier) jumped() bool { return n.o.Jumped != nil && n.o.Jumped() }

// waits reports whether a channel or a receiver isn't tried yet.
func (n *Notifier) waits(key string) bool {
	b := n.backoff[key]
	if b == nil {
		return false
	}
	left := b.until.Sub(n.o.Now())
	return left > 0 && left <= lastBackoff // otherwise the clock was ahead
}

func (n *Notifier) failed(ctx context.Context, label, key string, err error) {
	b := n.backoff[key]
	if b == nil {
		b = &backoff{}
		n.backoff[key] = b
	}
	after := lastBackoff
	if b.failures < 4 {
		after = min(firstBackoff<<b.failures, lastBackoff)
	}
	b.failures++
	if errors.Is(err, ErrRefused) {
		b.refused++
	}
	b.until = n.o.Now().Add(after)
	n.o.Counters.Failed(label)
	n.o.Log.WarnContext(ctx, "a notice is sent later", "channel", label, "after", after, "error", err.Error())
}
