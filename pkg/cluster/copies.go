package cluster

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/peer"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	// ownCopies is how many copies of a file paictl sends itself while machines can get it from each other.
	ownCopies = 3
	// sendsAtOnce is less than the machines that may receive files at a time: the rest is for machines that are about to take part.
	sendsAtOnce = 4
	// servesAtOnce is how many files a machine sends at a time, and getsAtOnce how many it gets.
	servesAtOnce, getsAtOnce = 2, 2
	// enoughFailures is how many others a machine tries in vain before it gets its files from paictl, and how many machines that
	// reach no one it takes until none is to try.
	enoughFailures = 3
)

// copies decides who gives which file to whom. It moves none itself.
type copies struct {
	// pick returns a number below n.
	pick func(n int) int

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, whenever a waiting machine may find something
	files    map[string]*spread
	machines map[string]*sharer
	sending  int       // what counts against sendsAtOnce
	sendings []*sharer // all that get something from paictl, those released included
	// passed says that at least one file went from machine to machine. Until then cut are those that reached no other, and closed those
	// that weren't reached.
	passed      bool
	cut, closed map[string]bool
	off         bool
	// proven is when a machine last had taken something as fast as it must.
	proven time.Time
}

// spread is how far a file, by its SHA-256, has come.
type spread struct {
	holders           []*sharer
	sent              int // copies by paictl, those on the way included
	sending, fetching int // on the way, by paictl and from others
}

// sharer is a machine that takes part.
type sharer struct {
	name  string
	ready peer.Ready
	gone  bool
	alone bool // gets everything from paictl
	busy  int  // files that it sends now
	gave  int  // files that others have from it
	// left are those from which it wants nothing more. wrongFor are those who got wrong content from it, vainFor those who got nothing.
	left, wrongFor, vainFor map[string]bool
	mixed                   map[string]bool // files that were, with what was there from before
	slow                    bool            // took too slowly what paictl sent
	getting                 *sending        // what comes from paictl; nil for nothing
}

// sending is a file that paictl sends to a machine.
type sending struct {
	sum      string
	slow     bool      // when it was looked at last
	fast     time.Time // when it was last seen to be fast enough
	released bool      // so slow that it no longer counts
}

// transfer is one file on its way.
type transfer struct {
	file ssh.Missing
	from *sharer // nil: from paictl
}

func newCopies(pick func(n int) int) *copies {
	return &copies{pick: pick, changed: make(chan struct{}), files: map[string]*spread{}, machines: map[string]*sharer{}, cut: map[string]bool{}, closed: map[string]bool{}}
}

// wake lets all waiting machines look again. The caller holds mu.
func (c *copies) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *copies) file(sum string) *spread {
	s := c.files[sum]
	if s == nil {
		s = &spread{}
		c.files[sum] = s
	}
	return s
}

// join takes a machine in that serves.
func (c *copies) join(name string, ready peer.Ready) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines[name] = &sharer{name: name, ready: ready, left: map[string]bool{}, wrongFor: map[string]bool{}, vainFor: map[string]bool{}, mixed: map[string]bool{}}
}

// leave says that a machine serves no longer.
func (c *copies) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.machines[name]; m != nil {
		c.drop(m)
	}
}

func (c *copies) drop(m *sharer) {
	if m.gone {
		return
	}
	m.gone = true
	for _, s := range c.files {
		s.holders = slices.DeleteFunc(s.holders, func(h *sharer) bool { return h == m })
	}
	c.wake()
}

// alone reports whether a machine gets its files from paictl like a machine without others.
func (c *copies) alone(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aloneLocked(name)
}

func (c *copies) aloneLocked(name string) bool {
	m := c.machines[name]
	return c.off || m == nil || m.alone
}

// next says what a machine gets next of the files that it wants, and from whom. Where it has to wait, wait is closed when it may look again.
// Files that few have come first, so that all are soon on many machines.
func (c *copies) next(name string, wants []ssh.Missing) (t transfer, ok bool, wait <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aloneLocked(name) {
		return transfer{}, false, nil
	}
	m := c.machines[name]
	if t, ok := c.fromOthers(m, wants); ok {
		t.from.busy++
		c.file(t.file.SHA256).fetching++
		return t, true, nil
	}
	// One to each, so that one that takes bytes slowly doesn't hold up the others.
	if m.getting != nil {
		return transfer{}, false, c.changed
	}
	if trial := c.stuck() && !m.slow; c.sending < sendsAtOnce || c.sending == sendsAtOnce && trial {
		if f, ok := c.fromHere(m, wants, trial); ok {
			s := c.file(f.SHA256)
			s.sent++
			s.sending++
			c.sending++
			m.getting = &sending{sum: f.SHA256}
			c.sendings = append(c.sendings, m)
			return transfer{file: f}, true, nil
		}
	}
	return transfer{}, false, c.changed
}

// stuck reports whether all places are taken by machines that take too slowly what is sent. Then one more sending shows whether that is for these machines or
// for the way out of here, which all share.
func (c *copies) stuck() bool {
	return c.sending >= sendsAtOnce && !slices.ContainsFunc(c.sendings, func(m *sharer) bool { return !m.getting.released && !m.getting.slow })
}

// slowOnes is how many of a file's copies are on their way to machines that take them too slowly, those released left out.
func (c *copies) slowOnes(sum string) (n int) {
	for _, m := range c.sendings {
		if g := m.getting; g.sum == sum && g.slow && !g.released {
			n++
		}
	}
	return n
}

// fromOthers finds a file that another machine has and can send now.
func (c *copies) fromOthers(m *sharer, wants []ssh.Missing) (t transfer, ok bool) {
	fewest := 0
	for _, f := range wants {
		s := c.file(f.SHA256)
		if ok && (len(s.holders) > fewest || len(s.holders) == fewest && f.Size <= t.file.Size) {
			continue
		}
		if h := c.holder(m, s); h != nil {
			t, ok, fewest = transfer{f, h}, true, len(s.holders)
		}
	}
	return t, ok
}

// holder returns one that sends nothing now, else one that can send more, nil for none.
func (c *copies) holder(m *sharer, s *spread) *sharer {
	if len(s.holders) == 0 {
		return nil
	}
	var second *sharer
	first := c.pick(len(s.holders))
	for i := range s.holders {
		h := s.holders[(first+i)%len(s.holders)]
		switch {
		case m.left[h.name] || h == m:
		case h.busy == 0:
			return h
		case h.busy < servesAtOnce && second == nil:
			second = h
		}
	}
	return second
}

// fromHere finds a file that paictl is to send: the one with the fewest copies. Beyond its own copies, and to a slow machine, paictl sends only what it gets
// from no one else. For a trial, copies that come too slowly don't count as long as no machine has the file.
func (c *copies) fromHere(m *sharer, wants []ssh.Missing, trial bool) (best ssh.Missing, ok bool) {
	fewest := 0
	for _, f := range wants {
		s := c.file(f.SHA256)
		hopeless := s.sending == 0 && s.fetching == 0 && !slices.ContainsFunc(s.holders, func(h *sharer) bool { return !m.left[h.name] && h != m })
		copies := s.sent
		if trial && len(s.holders) == 0 {
			copies -= c.slowOnes(f.SHA256)
		}
		if (copies >= ownCopies || m.slow) && !hopeless {
			continue
		}
		if !ok || cmp.Or(cmp.Compare(s.sent, fewest), cmp.Compare(best.Size, f.Size)) < 0 {
			best, ok, fewest = f, true, s.sent
		}
	}
	return best, ok
}

// sent says how paictl's own sending has ended; shared, that the machine now serves the file.
func (c *copies) sent(name string, t transfer, ok, shared bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, released := c.file(t.file.SHA256), false
	if m := c.machines[name]; m != nil {
		released = m.getting.released
		m.getting = nil
		c.sendings = slices.DeleteFunc(c.sendings, func(o *sharer) bool { return o == m })
	}
	switch {
	case !released:
		c.sending--
		s.sending--
		if !ok {
			s.sent--
		}
	case ok:
		s.sent++
	}
	if ok && shared {
		c.hold(name, s)
	}
	c.wake()
}

// look says how a machine takes what paictl sends. It reports whether the sending was released, because it is too slow: it goes on, but other machines get its
// place. This takes another sending that is fast enough at the same time, within recent. Else the way out of here, which all share, may be what is slow, or be down
// for a while, and more copies would make it slower. For the same reason no more are released at a time than may be sent.
func (c *copies) look(name string, t transfer, slow, fast bool, now time.Time, recent time.Duration) (released bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machines[name]
	if m == nil || m.getting == nil || m.getting.sum != t.file.SHA256 || m.getting.released {
		return false
	}
	if fast {
		m.getting.fast = now
	}
	if m.getting.slow != slow {
		m.getting.slow = slow
		c.wake() // it may be the last that was not
	}
	late := 0
	other := now.Sub(c.proven) <= recent
	for _, o := range c.sendings {
		if o.getting.released {
			late++
		}
		other = other || o != m && now.Sub(o.getting.fast) <= recent
	}
	if !slow || !other || late >= sendsAtOnce {
		return false
	}
	m.getting.released, m.slow = true, true
	s := c.file(t.file.SHA256)
	c.sending--
	s.sending--
	s.sent--
	c.wake()
	return true
}

// prove says that a machine has taken something fast enough.
func (c *copies) prove(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proven = now
}

func (c *copies) hold(name string, s *spread) {
	if m := c.machines[name]; m != nil && !m.gone && !slices.Contains(s.holders, m) {
		s.holders = append(s.holders, m)
	}
}

// verdict is what follows from a file that did not come.
type verdict int

const (
	goOn    verdict = iota
	dropped         // no one gets anything more from that machine
	apart           // the machine reaches too few others: it gets the rest from paictl
	offAll          // no machine reaches another: all get the rest from paictl
)

// fetched says how a transfer between machines has ended; failure is "" where the file has come.
func (c *copies) fetched(name string, t transfer, failure peer.Failure, shared bool) verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.wake()
	s := c.file(t.file.SHA256)
	t.from.busy--
	s.fetching--
	m := c.machines[name]
	switch {
	case failure == "":
		t.from.gave++
		c.passed = true
		if shared {
			c.hold(name, s)
		}
		return goOn
	case failure == peer.Mixed && m != nil:
		// What was there from before is removed then, so it can't be mixed again.
		if m.mixed[t.file.SHA256] {
			m.alone = true
			return apart
		}
		m.mixed[t.file.SHA256] = true
		return goOn
	case failure == peer.Disk || t.from.gone || m == nil:
		return goOn // it says nothing of the other machine
	}
	m.left[t.from.name] = true
	if failure == peer.Wrong {
		t.from.wrongFor[name] = true
	} else {
		t.from.vainFor[name] = true
	}
	if failure == peer.Unreachable && !c.passed {
		c.cut[name], c.closed[t.from.name] = true, true
		if len(c.cut) >= enoughFailures && len(c.closed) > 1 { // a single one may be closed for itself
			c.off = true
			return offAll
		}
	}
	// One machine's word isn't enough: it may be the one that lies. But who never gave anything is no loss.
	if len(t.from.wrongFor) > 1 || len(t.from.vainFor) >= enoughFailures && t.from.gave == 0 {
		c.drop(t.from)
		if failure != peer.Wrong && !c.passed {
			return goOn // a firewall between all of them may yet turn out to be the reason
		}
		return dropped
	}
	if len(m.left) >= enoughFailures {
		m.alone = true
		return apart
	}
	return goOn
}

// setAlone takes a machine for one that can no longer take part, for a reason of its own.
func (c *copies) setAlone(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.machines[name]; m != nil {
		m.alone = true
		c.wake()
	}
}
