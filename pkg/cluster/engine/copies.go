package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/peer"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	// ownCopies is the number of copies of a file that paictl itself sends while machines can get the file from other machines.
	ownCopies = 3
	// sendsAtOnce limits the files that paictl sends to sharing machines at the same time. It is below the total limit of concurrent uploads, so that
	// slots remain for machines that don't share yet.
	sendsAtOnce = 4
	// servesAtOnce limits the files that a machine sends at the same time. getsAtOnce limits the files that a machine receives at the same time.
	servesAtOnce, getsAtOnce = 2, 2
	// enoughFailures is the number of senders whose transfers to a machine must fail before paictl sends this machine all files. It is also the number
	// of machines that must fail to reach any other machine before all transfers between machines are disabled.
	enoughFailures = 3
)

// copies decides which machine sends which file to which machine. It doesn't transfer files itself.
type copies struct {
	// pick returns a random number below n. Tests replace it with another function.
	pick func(n int) int

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever a waiting machine may find a file
	files    map[string]*spread
	machines map[string]*sharer
	sending  int       // the transfers that count towards sendsAtOnce
	sendings []*sharer // the machines to which paictl is sending a file, including released ones
	// passed is true after the first transfer between machines. Before that, cut lists machines that couldn't reach another machine, and closed lists
	// machines that couldn't be reached.
	passed      bool
	cut, closed map[string]bool
	off         bool
	// proven is the last time at which a machine received data fast enough.
	proven time.Time
}

// spread counts the copies of one file. The key of a file is its SHA-256.
type spread struct {
	holders           []*sharer
	sent              int // copies sent by paictl, including unfinished ones
	sending, fetching int // in transfer, from paictl and from other machines
}

// sharer is a machine that receives files and serves them to other machines.
type sharer struct {
	name  string
	ready peer.Ready
	gone  bool
	alone bool // paictl sends it all its files
	busy  int  // files that it is sending now
	gave  int  // files that other machines received from it
	// left holds machines from which this machine no longer fetches files. wrongFor holds machines that received wrong content from this machine.
	// vainFor holds machines that couldn't fetch a file from this machine.
	left, wrongFor, vainFor map[string]bool
	mixed                   map[string]bool // files that arrived mixed with older content
	slow                    bool            // received data from paictl too slowly
	getting                 *sending        // the file that paictl is sending to it, or nil
}

type sending struct {
	sum      string
	slow     bool      // whether it was slow at the last check
	fast     time.Time // when it was last fast enough
	released bool      // so slow that it no longer counts
}

type transfer struct {
	file ssh.Missing
	from *sharer // the sending machine; nil means paictl
}

func newCopies(pick func(n int) int) *copies {
	return &copies{pick: pick, changed: make(chan struct{}), files: map[string]*spread{}, machines: map[string]*sharer{}, cut: map[string]bool{}, closed: map[string]bool{}}
}

// wake wakes all waiting machines. The caller must hold mu.
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

func (c *copies) join(name string, ready peer.Ready) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines[name] = &sharer{name: name, ready: ready, left: map[string]bool{}, wrongFor: map[string]bool{}, vainFor: map[string]bool{}, mixed: map[string]bool{}}
}

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

// alone reports whether a machine gets all files from paictl.
func (c *copies) alone(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aloneLocked(name)
}

func (c *copies) aloneLocked(name string) bool {
	m := c.machines[name]
	return c.off || m == nil || m.alone
}

// next returns the next file for a machine and the file's sender. If the machine has to wait, next returns a channel. The channel is closed when the
// machine may call next again. Rare files come first, so that each file is soon on many machines.
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
	// paictl sends a machine only one file at a time, so that a slow machine occupies only one slot.
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

// stuck reports whether slow machines occupy all of paictl's slots. One additional transfer then shows whether the machines or paictl's own uplink is
// slow.
func (c *copies) stuck() bool {
	return c.sending >= sendsAtOnce && !slices.ContainsFunc(c.sendings, func(m *sharer) bool { return !m.getting.released && !m.getting.slow })
}

// slowOnes returns the number of copies of a file that paictl is sending to slow machines. It doesn't count transfers whose slots were freed.
func (c *copies) slowOnes(sum string) (n int) {
	for _, m := range c.sendings {
		if g := m.getting; g.sum == sum && g.slow && !g.released {
			n++
		}
	}
	return n
}

// fromOthers returns a file that another machine can send to m now, and that machine.
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

// holder returns a machine that can send the file to m, or nil. It prefers an idle machine.
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

// fromHere returns the file with the fewest copies that paictl should send to m. If m is slow, or paictl has already sent ownCopies copies of a file,
// other machines should send the file instead. In a trial, copies to slow machines don't count until a machine has the whole file.
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

// sent records the end of a transfer from paictl. The argument shared means that the machine now serves the file.
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

// look records how fast a machine receives the file that paictl is sending. If the transfer is too slow, look frees its slot for another machine, and
// returns true. The slow transfer continues. look frees a slot only if another transfer was fast enough during the last recent period. Otherwise
// paictl's own uplink may be the cause, and more transfers would make it slower. For the same reason, look frees at most sendsAtOnce slots at a time.
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
		c.wake() // this may have been the last transfer that wasn't slow
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

type verdict int

const (
	goOn    verdict = iota
	dropped         // the sending machine sends no more files
	apart           // the machine reaches too few others: paictl sends it the remaining files
	offAll          // no machine reaches another: paictl sends the remaining files to all
)

// fetched records the end of a transfer between machines. The argument failure is "" if the file arrived. The result is the consequence for later
// transfers.
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
		// After the first such failure, the receiver deletes its old content. A second failure of this kind has another cause.
		if m.mixed[t.file.SHA256] {
			m.alone = true
			return apart
		}
		m.mixed[t.file.SHA256] = true
		return goOn
	case failure == peer.Disk || t.from.gone || m == nil:
		return goOn // the sending machine didn't cause the failure
	}
	m.left[t.from.name] = true
	if failure == peer.Wrong {
		t.from.wrongFor[name] = true
	} else {
		t.from.vainFor[name] = true
	}
	if failure == peer.Unreachable && !c.passed {
		c.cut[name], c.closed[t.from.name] = true, true
		if len(c.cut) >= enoughFailures && len(c.closed) > 1 { // a single sender may have its own firewall
			c.off = true
			return offAll
		}
	}
	// A single machine may report a failure falsely. A machine that never sent a file can be excluded without harm.
	if len(t.from.wrongFor) > 1 || len(t.from.vainFor) >= enoughFailures && t.from.gave == 0 {
		c.drop(t.from)
		if failure != peer.Wrong && !c.passed {
			return goOn // a firewall between all machines may still be the cause
		}
		return dropped
	}
	if len(m.left) >= enoughFailures {
		m.alone = true
		return apart
	}
	return goOn
}

// setAlone makes paictl send all files to a machine, because a local fault prevents the machine from fetching files.
func (c *copies) setAlone(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.machines[name]; m != nil {
		m.alone = true
		c.wake()
	}
}
