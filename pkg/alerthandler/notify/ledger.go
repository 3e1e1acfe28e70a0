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
	// tellWithin is how long a notice is tried.
	tellWithin = 24 * time.Hour
	// rememberFor is how long the record has a notice; longer than tellWithin, so that none is sent again.
	rememberFor = 2 * tellWithin
	// mostEntries bounds the record: 5000 entries have less than 600 KiB, and an object of the cluster may have 1 MiB.
	mostEntries = 5000
	// mostTries bounds how often a message is sent again whose arrival is unknown.
	mostTries = 8
)

// Result is the result of a notice.
type Result string

// Results. All but the first are final.
const (
	// ResultUnknown means that it was sent, perhaps; it is sent again.
	ResultUnknown Result = ""
	ResultSent    Result = "sent"
	// ResultSkipped means that the person has no address.
	ResultSkipped Result = "skipped"
	// ResultLost means that it couldn't be sent within a day, or that its arrival stayed unknown.
	ResultLost Result = "lost"
)

// Entry is the record of one notice to one receiver.
type Entry struct {
	// To is the key of the receiver.
	To string `json:"t"`
	// Event is the time of the event, and Sent is the time of the last message about it, in seconds since 1970.
	Event int64 `json:"e"`
	Sent  int64 `json:"s,omitempty"`
	// Tries counts messages whose arrival is unknown.
	Tries  int    `json:"n,omitempty"`
	Result Result `json:"r,omitempty"`
	// Until is how long the entry is kept, if it is kept longer than other entries.
	Until int64 `json:"u,omitempty"`
}

// entry returns the entry of a notice that is sent now.
func (n *Notice) entry(now time.Time, tries int, r Result) Entry {
	e := Entry{To: n.To.Key(), Event: n.At.Unix(), Sent: now.Unix(), Tries: tries, Result: r}
	if !n.Keep.IsZero() {
		e.Until = n.Keep.Unix()
	}
	return e
}

// Ledger is the record of sent notices.
type Ledger struct {
	// Since is the time of the first events with notices: earlier events aren't in the record. Of holds later times for receivers with too many
	// entries.
	Since   int64            `json:"since"`
	Of      map[string]int64 `json:"of,omitempty"`
	Entries map[string]Entry `json:"entries"`
	// Mails are the times of the messages of the last hour, by receiver.
	Mails map[string][]int64 `json:"mails,omitempty"`
	// Configured holds when each receiver of the configuration was added; a receiver gets no notices about earlier events. Configured is nil in the
	// record of an older release.
	Configured map[string]int64 `json:"configured"`
}

// NewLedger returns a record that begins now: earlier events have no notices.
func NewLedger(now time.Time) *Ledger {
	return &Ledger{Since: now.Unix(), Of: map[string]int64{}, Entries: map[string]Entry{}, Mails: map[string][]int64{}}
}

// ParseLedger reads a record in the form of Marshal.
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

// Marshal writes the record.
func (l *Ledger) Marshal() ([]byte, error) { return json.Marshal(l) }

// key returns the name of the entry of a notice.
func (n *Notice) key() string { return entryKey(n.ID, n.To) }

func entryKey(id string, to Receiver) string {
	sum := sha256.Sum256([]byte(id + "\n" + to.Key()))
	return hex.EncodeToString(sum[:8])
}

// due returns the notices that are still to be sent.
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

// forgets reports whether the record no longer has notices of that time to that receiver, or whether the receiver was added later.
func (l *Ledger) forgets(n *Notice) bool {
	key := n.To.Key()
	return n.At.Unix() < max(l.Since, l.Of[key], l.Configured[key])
}

// configure records the receivers of the configuration, and reports whether some were added or removed. The receivers at the beginning of a record
// get all its events.
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

// finish records the end of a notice.
func (l *Ledger) finish(n *Notice, r Result, now time.Time) {
	e := l.Entries[n.key()]
	l.Entries[n.key()] = n.entry(now, e.Tries, r)
}

// begin records that a message is about to be sent.
func (l *Ledger) begin(b *Batch, now time.Time) {
	for i := range b.Notices {
		n := &b.Notices[i]
		e := l.Entries[n.key()]
		l.Entries[n.key()] = n.entry(now, e.Tries+1, ResultUnknown)
	}
	key := b.To.Key()
	l.Mails[key] = append(l.Mails[key], now.Unix())
}

// revert records that a message wasn't sent after all.
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

// prune removes old entries. If there are too many, it also removes the oldest entries of the receivers with the most entries. Since or Of is then
// later than the events of removed entries, so that none is sent again. It reports whether there were too many. Times after now, which a wrong clock
// has left, become now: otherwise no event would have a notice until then.
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

// shorten removes the oldest entries of the receivers with the most, until all have n: a flood to one of them costs the others nothing.
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

// share returns how much each list may have, so that all together have n at most.
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

// Batch is one message: a notice, or a digest of several to the same receiver.
type Batch struct {
	To      Receiver
	Notices []Notice
}

// pressingEvery is the shortest time between messages with pressing notices beyond the limit, and pressingFor how long before its time a
// notice has to be sent at the latest.
const (
	pressingEvery = time.Minute
	pressingFor   = 5 * time.Minute
)

// pressing returns the notices that would be too late at a time.
func pressing(list []Notice, at time.Time) (out []Notice) {
	for _, n := range list {
		if !n.By.IsZero() && n.By.Before(at.Add(pressingFor)) {
			out = append(out, n)
		}
	}
	return out
}

// plan makes messages of the notices that are due, at most perHour for each receiver and hour: the last one has everything that waits. Notices
// that would be too late don't wait for the next hour. wait is the time until a receiver may get more; 0 if none waits.
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
