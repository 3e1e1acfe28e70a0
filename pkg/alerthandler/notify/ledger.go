package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// tellWithin is how long the notifier tries to send a notice.
	tellWithin = 24 * time.Hour
	// rememberFor is how long the record keeps a notice. It must exceed tellWithin, so that no notice is sent twice.
	rememberFor = 2 * tellWithin
	// mostEntries limits the number of entries in the record. 5000 entries take less than 600 KiB, and a Kubernetes object may take 1 MiB.
	mostEntries = 5000
	// mostTries limits how often a message with an unknown delivery is repeated.
	mostTries = 8
)

// Result is the result of sending a notice.
type Result string

// All results except ResultUnknown are final.
const (
	// ResultUnknown means that the notice may have been sent. The notifier sends it again.
	ResultUnknown Result = ""
	ResultSent    Result = "sent"
	// ResultSkipped means that the person has no valid address.
	ResultSkipped Result = "skipped"
	// ResultLost means that the notice couldn't be sent within a day, or that its delivery stayed unknown.
	ResultLost Result = "lost"
)

// Entry records one notice to one receiver.
type Entry struct {
	// To is the key of the receiver.
	To string `json:"t"`
	// Event is the time of the event. Sent is the time of the last message about the event. Both times are in seconds since 1970.
	Event int64 `json:"e"`
	Sent  int64 `json:"s,omitempty"`
	// Tries counts the messages with the notice whose delivery is unknown.
	Tries  int    `json:"n,omitempty"`
	Result Result `json:"r,omitempty"`
	// Until is the time until which the entry is kept, if longer than the default.
	Until int64 `json:"u,omitempty"`
}

func (n *Notice) entry(now time.Time, tries int, r Result) Entry {
	e := Entry{To: n.To.Key(), Event: n.At.Unix(), Sent: now.Unix(), Tries: tries, Result: r}
	if !n.Keep.IsZero() {
		e.Until = n.Keep.Unix()
	}
	return e
}

// Ledger is the record of sent notices.
type Ledger struct {
	// Since is the time of the earliest events that get notices. Of holds later times for receivers whose older entries were removed because the
	// receivers had too many entries.
	Since   int64            `json:"since"`
	Of      map[string]int64 `json:"of,omitempty"`
	Entries map[string]Entry `json:"entries"`
	// Mails holds, by receiver, the times of the messages within the last hour.
	Mails map[string][]int64 `json:"mails,omitempty"`
	// Configured holds the time at which each receiver was added to the configuration. A receiver gets no notices about earlier events. Configured is
	// nil in a record of an older release.
	Configured map[string]int64 `json:"configured"`
	// Began is the time at which the record began, in seconds since 1970. It is 0 in a record of an older release.
	Began int64 `json:"began,omitempty"`
}

// NewLedger returns an empty record that begins now, so that earlier events get no notices.
func NewLedger(now time.Time) *Ledger {
	return &Ledger{Since: now.Unix(), Began: now.Unix(), Of: map[string]int64{}, Entries: map[string]Entry{}, Mails: map[string][]int64{}}
}

// ParseLedger decodes the result of Marshal.
func ParseLedger(data []byte) (*Ledger, error) {
	l := &Ledger{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("the record of notices can't be read: %w", err)
	}
	if l.Of == nil {
		l.Of = map[string]int64{}
	}
	if l.Entries == nil {
		l.Entries = map[string]Entry{}
	}
	if l.Mails == nil {
		l.Mails = map[string][]int64{}
	}
	return l, nil
}

// Marshal encodes the record as JSON.
func (l *Ledger) Marshal() ([]byte, error) { return json.Marshal(l) }

func (n *Notice) key() string { return entryKey(n.ID, n.To) }

func entryKey(id string, to Receiver) string {
	sum := sha256.Sum256([]byte(id + "\n" + to.Key()))
	return hex.EncodeToString(sum[:8])
}

// due returns the notices that must still be sent.
func (l *Ledger) due(all []Notice) (out []Notice) {
	for i := range all {
		n := &all[i]
		if l.forgets(n) {
			continue
		}
		if e, ok := l.Entries[n.key()]; ok && e.Result != ResultUnknown {
			continue
		}
		if n.After != "" {
			if e := l.Entries[entryKey(n.After, n.To)]; e.Result != ResultSent {
				continue
			}
		}
		out = append(out, *n)
	}
	return out
}

// forgets reports whether a notice must not be sent. The record may no longer cover the time of the event, or the receiver was added after the event.
func (l *Ledger) forgets(n *Notice) bool {
	key := n.To.Key()
	return n.At.Unix() < max(l.Since, l.Of[key], l.Configured[key])
}

// configure records the configured receivers, and reports whether receivers were added or removed. Receivers in the first configuration get notices
// about all events that the record covers.
func (l *Ledger) configure(keys []string, now time.Time) (changed bool) {
	was, first := l.Configured, l.Configured == nil
	l.Configured = make(map[string]int64, len(keys))
	for _, key := range keys {
		at, known := was[key]
		if !known && !first {
			at = now.Unix()
		}
		l.Configured[key] = at
	}
	return first || !maps.Equal(was, l.Configured)
}

func (l *Ledger) finish(n *Notice, r Result, now time.Time) {
	e := l.Entries[n.key()]
	l.Entries[n.key()] = n.entry(now, e.Tries, r)
}

// begin records that the notifier is about to send a message.
func (l *Ledger) begin(b *Batch, now time.Time) {
	for i := range b.Notices {
		n := &b.Notices[i]
		e := l.Entries[n.key()]
		l.Entries[n.key()] = n.entry(now, e.Tries+1, ResultUnknown)
	}
	key := b.To.Key()
	l.Mails[key] = append(l.Mails[key], now.Unix())
}

// revert undoes begin after the message couldn't be sent.
func (l *Ledger) revert(b *Batch) {
	for i := range b.Notices {
		key := b.Notices[i].key()
		if e := l.Entries[key]; e.Tries <= 1 {
			delete(l.Entries, key)
		} else {
			e.Tries--
			l.Entries[key] = e
		}
	}
	key := b.To.Key()
	if m := l.Mails[key]; len(m) > 0 {
		l.Mails[key] = m[:len(m)-1]
	}
}

// prune removes old entries. If too many entries remain, it also removes the oldest entries of the receivers with the most entries. It then moves
// Since or Of past the removed events, so that no notice is sent again. full reports whether the record had too many entries. A wrong clock may have
// left times in the future. prune sets these times to now, because earlier events would otherwise get no notices.
func (l *Ledger) prune(now time.Time) (full bool) {
	l.Since = min(max(l.Since, now.Add(-rememberFor).Unix()), now.Unix())
	for _, times := range []map[string]int64{l.Of, l.Configured} {
		for key, at := range times {
			times[key] = min(at, now.Unix())
		}
	}
	for key, e := range l.Entries {
		if e.Event < l.Since && e.Until < now.Unix() {
			delete(l.Entries, key)
		}
	}
	for to, since := range l.Of {
		if since <= l.Since {
			delete(l.Of, to)
		}
	}
	if full = len(l.Entries) > mostEntries; full {
		l.shorten(mostEntries * 9 / 10)
	}
	hour := now.Add(-time.Hour).Unix()
	for to, times := range l.Mails {
		if times = slices.DeleteFunc(times, func(t int64) bool { return t <= hour || t > now.Add(time.Hour).Unix() }); len(times) == 0 {
			delete(l.Mails, to)
		} else {
			l.Mails[to] = times
		}
	}
	return full
}

// shorten removes the oldest entries of the receivers with the most entries until at most n entries remain. So a flood of notices to one receiver
// doesn't affect other receivers.
func (l *Ledger) shorten(n int) {
	by := map[string][]string{}
	for key, e := range l.Entries {
		by[e.To] = append(by[e.To], key)
	}
	share := share(slices.Collect(maps.Values(by)), n)
	for to, keys := range by {
		if len(keys) <= share {
			continue
		}
		slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(l.Entries[a].Event, l.Entries[b].Event) })
		since := l.Entries[keys[len(keys)-max(share, 1)]].Event + 1
		l.Of[to] = max(l.Of[to], since)
		for _, key := range keys {
			if l.Entries[key].Event < since {
				delete(l.Entries, key)
			}
		}
	}
}

// share returns the maximum length of a list such that all lists together have at most n elements.
func share(lists [][]string, n int) int {
	slices.SortFunc(lists, func(a, b []string) int { return len(a) - len(b) })
	for i, list := range lists {
		if part := n / (len(lists) - i); len(list) > part {
			return part
		}
		n -= len(list)
	}
	return n
}

// Batch is one message to one receiver. It contains a single notice or a digest of several notices.
type Batch struct {
	To      Receiver
	Notices []Notice
}

// pressingEvery is the minimum time between urgent messages that exceed the limit of messages per hour. pressingFor is how long before the time By
// such a notice must be sent.
const (
	pressingEvery = time.Minute
	pressingFor   = 5 * time.Minute
)

// pressing returns the notices that would be too late if they were sent at the given time.
func pressing(list []Notice, at time.Time) (out []Notice) {
	for _, n := range list {
		if !n.By.IsZero() && n.By.Before(at.Add(pressingFor)) {
			out = append(out, n)
		}
	}
	return out
}

// plan combines the due notices into messages, at most perHour for each receiver and hour. The last of these messages contains all remaining notices.
// Urgent notices don't wait for the next hour. wait is the time until a receiver may get the next message, or 0 if no receiver waits.
func (l *Ledger) plan(due []Notice, perHour int, now time.Time) (out []Batch, wait time.Duration) {
	by := map[string][]Notice{}
	for _, n := range due {
		by[n.To.Key()] = append(by[n.To.Key()], n)
	}
	hour := now.Add(-time.Hour).Unix()
	for key, list := range by {
		slices.SortStableFunc(list, func(a, b Notice) int {
			if a.Urgent != b.Urgent {
				if a.Urgent {
					return -1
				}
				return 1
			}
			if c := a.At.Compare(b.At); c != 0 {
				return c
			}
			return strings.Compare(a.ID, b.ID)
		})
		left, first, last := perHour, int64(0), int64(0)
		for _, t := range l.Mails[key] {
			if t > hour {
				left--
				last = max(last, t)
				if first == 0 || t < first {
					first = t
				}
			}
		}
		if left <= 0 {
			until := time.Unix(first, 0).Add(time.Hour).Sub(now) + time.Second
			if late := pressing(list, now.Add(until)); len(late) > 0 {
				if until = min(until, time.Unix(last, 0).Add(pressingEvery).Sub(now)); until <= 0 {
					out, until = append(out, Batch{To: late[0].To, Notices: late}), pressingEvery
				}
			}
			if wait == 0 || until < wait {
				wait = until
			}
			continue
		}
		for len(list) > 0 {
			size := 1
			if left == 1 {
				size = len(list)
			}
			out = append(out, Batch{To: list[0].To, Notices: list[:size]})
			list = list[size:]
			left--
		}
	}
	slices.SortFunc(out, func(a, b Batch) int {
		if a.Notices[0].Urgent != b.Notices[0].Urgent {
			if a.Notices[0].Urgent {
				return -1
			}
			return 1
		}
		return strings.Compare(a.To.Key()+a.Notices[0].ID, b.To.Key()+b.Notices[0].ID)
	})
	return out, wait
}
