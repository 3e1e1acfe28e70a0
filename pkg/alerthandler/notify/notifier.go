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
	// look is the maximum time between two rounds of the notifier.
	look = time.Minute
	// chunk is the number of messages between two writes of the record. After a crash, at most these messages are sent again.
	chunk = 20
	// firstBackoff is the shortest time before a broken channel is retried, and lastBackoff is the longest.
	firstBackoff = time.Minute
	// unknownWait is the time after which Round checks again whether the facts are complete.
	unknownWait = 2 * time.Second
	lastBackoff = 15 * time.Minute
	// recordTime limits the time to write the record after the messages of a connection. The write doesn't end when ctx ends.
	recordTime = 5 * time.Second
)

// Store stores the record of sent notices.
type Store interface {
	// Load returns the record, or nil if no record exists.
	Load(ctx context.Context) (*Ledger, error)
	// Save writes the record over the version that was last loaded or saved. It returns ErrReplaced if another replica has written the record since.
	Save(ctx context.Context, l *Ledger) error
}

// ErrReplaced means that another replica has written the record since it was loaded.
var ErrReplaced = errors.New("another replica has written the record of notices")

// Counters counts notices and failures for metrics.
type Counters interface {
	// Notices adds n to the number of notices with a result on a channel.
	Notices(channel string, r Result, n int)
	// Failed counts a failed message or connection that is retried.
	Failed(channel string)
}

// Options configure a Notifier.
type Options struct {
	Config *Config
	// World returns the current facts. An error means that the facts are incomplete or may be stale.
	World    func() (*World, error)
	Mail     Channel
	Webhooks map[string]Channel
	// OwnWebhook returns the channel of a person's own webhook. OwnWebhook is nil if people may not have their own webhooks.
	OwnWebhook func(person string) Channel
	Store      Store
	Counters   Counters
	Log        *slog.Logger
	Now        func() time.Time
	// Pause is the minimum time between two rounds.
	Pause time.Duration
	// Jumped reports whether the clock was set a short time ago. While Jumped returns true, no notice is lost because of its age. A nil Jumped means
	// that the clock is never set.
	Jumped func() bool
}

// Notifier sends notices. Only one Notifier may run in a cluster.
type Notifier struct {
	o       Options
	ledger  *Ledger
	unsaved bool
	// began is the time at which the notifier started. A new record begins at that time, because events may happen before the facts are complete.
	began   time.Time
	backoff map[string]*backoff // of channels and receivers
	// pending holds the waiting notices by their keys in the record.
	pending map[string]Notice
	// refusals counts, by notice, how often a server has permanently rejected the address.
	refusals map[string]int
	// next is the name of the person whose own webhook comes first in the next round.
	next string

	mu         sync.Mutex
	deliveries map[types.UID]Delivery // of the Actions that the last round has seen
}

type backoff struct {
	failures int
	until    time.Time
}

// New returns a Notifier.
func New(o Options) *Notifier {
	return &Notifier{o: o, backoff: map[string]*backoff{}, refusals: map[string]int{}}
}

// Run sends notices until ctx ends. A value in touched means that the cluster has changed.
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

// sleep waits for d or for a value in touched. It returns false if ctx has ended.
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

// Round sends the notices that are due. It returns the time until the next round.
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
		if b.To.OwnWebhook {
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

// settle records the final result of notices that can't be sent, and returns the other notices.
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
		n.o.Counters.Notices(channelOf(d.To), result, 1)
	}
	n.pending = map[string]Notice{}
	for i := range out {
		n.pending[out[i].key()] = out[i]
	}
	maps.DeleteFunc(n.refusals, func(key string, _ int) bool { _, pending := n.pending[key]; return !pending })
	return out
}

func (n *Notifier) lost(ctx context.Context, d *Notice) {
	n.o.Log.WarnContext(ctx, "a notice was not sent", "to", d.To.Key(), "subject", d.Subject)
}

// overflown counts waiting notices as lost after the record stopped covering their events. Their receivers had too many entries.
func (n *Notifier) overflown(ctx context.Context) {
	for key, d := range n.pending {
		if n.ledger.forgets(&d) {
			n.lost(ctx, &d)
			n.o.Counters.Notices(channelOf(d.To), ResultLost, 1)
			delete(n.pending, key)
		}
	}
}

// Labels of channels in metrics and logs. A configured webhook has its name as the label.
const (
	labelMail = "mail"
	labelOwn  = "personal-webhooks"
)

func channelOf(r Receiver) string {
	switch {
	case r.OwnWebhook:
		return labelOwn
	case r.Webhook != "":
		return r.Webhook
	}
	return labelMail
}

// channelTime limits the time for one channel in a round, so that a slow channel doesn't delay other notices for long. The webhooks of all people
// share one such limit.
const channelTime = 20 * time.Second

// ownWebhooks sends messages to people's own webhooks. If the time of a round isn't enough, the next round begins with the remaining webhooks.
func (n *Notifier) ownWebhooks(ctx context.Context, own map[string][]Batch) error {
	if n.o.OwnWebhook == nil || len(own) == 0 {
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
		if _, err := n.channel(ctx, n.o.OwnWebhook(name), labelOwn, labelOwn+" "+name, own[name], end); err != nil {
			return err
		}
	}
	n.next = ""
	return nil
}

const (
	// mostBroken is the number of consecutive receivers that may break the connection before the notifier treats the channel as broken.
	mostBroken = 2
	// known is the number of broken connections of one receiver after which more of them no longer count against the channel.
	known = 2
)

// channel sends the messages of the channel with the given key. left reports whether messages remain at the end of the channel's time. An error means
// that the record can't be written. If a receiver breaks the connection, only messages to that receiver wait. The other receivers get a new
// connection, and come first the next time.
func (n *Notifier) channel(ctx context.Context, channel Channel, label, key string, list []Batch, end time.Time) (left bool, err error) {
	key = "channel " + key
	if channel == nil || n.waits(key) {
		return false, nil
	}
	slices.SortStableFunc(list, func(a, b Batch) int { return cmp.Compare(max(n.failures(&a), known), max(n.failures(&b), known)) })
	broken := 0
	for {
		ready := n.ready(list)
		if len(ready) == 0 || ctx.Err() != nil {
			return false, nil //nolint:nilerr // the term ends
		}
		if !n.o.Now().Before(end) {
			return true, nil
		}
		part := ready[:min(chunk, len(ready))]
		session, err := channel.Open(ctx)
		if err != nil {
			n.failed(ctx, label, key, err)
			return false, nil
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

// failures returns the number of failed messages to the receiver of a batch since the last success.
func (n *Notifier) failures(b *Batch) int {
	if f := n.backoff["to "+b.To.Key()]; f != nil {
		return f.failures
	}
	return 0
}

// ready returns the messages whose receivers aren't in backoff.
func (n *Notifier) ready(list []Batch) (out []Batch) {
	for _, b := range list {
		if !n.waits("to " + b.To.Key()) {
			out = append(out, b)
		}
	}
	return out
}

// send sends messages over one connection, between two writes of the record. tried is the number of messages before the end of the channel's time.
// lost is the error if the last of these messages broke the connection.
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
		if i > 0 && n.waits("to "+b.To.Key()) { // a message before this one has failed
			n.ledger.revert(b)
			continue
		}
		err := s.Send(ctx, b.To.Address, n.o.Config.message(b))
		if err == nil {
			for k := range b.Notices {
				n.ledger.finish(&b.Notices[k], ResultSent, n.o.Now())
				delete(n.pending, b.Notices[k].key())
			}
			delete(n.backoff, channel)
			delete(n.backoff, "to "+b.To.Key())
			n.o.Counters.Notices(label, ResultSent, len(b.Notices))
			continue
		}
		if !errors.Is(err, ErrUnknown) {
			n.ledger.revert(b)
		}
		if !errors.Is(err, ErrRefused) {
			lost = err
		}
		if errors.Is(err, ErrAddress) {
			for k := range b.Notices {
				n.refusals[b.Notices[k].key()]++
			}
		}
		n.failed(ctx, label, "to "+b.To.Key(), err)
	}
	// Write the record even if ctx has ended.
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return tried, lost, n.save(rest)
}

// save writes the record. If the write fails, the next round writes the record in memory again. If another replica has written the record, save
// discards the record in memory.
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

// waits reports whether a channel or a receiver is in backoff.
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
	b.until = n.o.Now().Add(after)
	n.o.Counters.Failed(label)
	n.o.Log.WarnContext(ctx, "a notice is sent later", "channel", label, "after", after, "error", err.Error())
}
