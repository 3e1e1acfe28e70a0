package cell

// Holding back. Where opportunistic gangs fill the last idle node, every guaranteed gang that
// arrives has to end some of them, and they start again only to be ended again. So a chain remembers
// how much was preempted lately, and lets opportunistic gangs break idle nodes only while about that
// much stays whole. What lies idle beside other gangs is free for all: no guaranteed gang of another
// virtual cluster could have it. Work is done later and not twice.
//
// The memory fades with each guaranteed gang that starts without preempting and with each
// opportunistic one that is held back, so that nothing waits for ever. It is not kept over a restart.

const (
	// holdFrom is the number of leaves from which a chain holds back; in a small one a gang is too
	// large a part of it.
	holdFrom = 256
	// holdMost is the largest part of a chain that is held back, in thousandths.
	holdMost = 60
	// Weights of the memory, in thousandths of it.
	fadeByStart   = 1
	fadeByAttempt = 2
	milli         = 1000
)

// large says that keeping opportunistic gangs out of the way costs less than it saves: in a small
// chain every idle piece is wanted.
func (ch *chain) large() bool { return len(ch.cells[0]) >= holdFrom }

// holdsBack keeps an opportunistic gang out of idle nodes that guaranteed ones need soon.
func (s *Scheduler) holdsBack(ch *chain, spots []spot) bool {
	if !s.wanted(ch, spots) {
		return false
	}
	ch.fade(fadeByAttempt)
	return true
}

// wanted says that an opportunistic gang in these spots would break idle nodes that are held back.
func (s *Scheduler) wanted(ch *chain, spots []spot) bool {
	if ch.pressure == 0 {
		return false
	}
	s.stamp++
	broken := 0
	for i := range spots {
		if n := ch.cells[ch.node][spots[i].node]; n.wasClean && n.seen != s.stamp {
			n.seen = s.stamp
			broken++
		}
	}
	return broken > 0 && (ch.clean-broken)*ch.leaves[ch.node] < ch.pressure/milli
}

func (ch *chain) fade(part int) { ch.pressure -= min(ch.pressure, ch.pressure*part/milli+1) }

// preempted remembers that a guaranteed gang has started at the cost of n opportunistic leaves.
func (ch *chain) preempted(n int) {
	if !ch.large() {
		return
	}
	leaves := len(ch.cells[0])
	if n == 0 {
		ch.fade(fadeByStart)
		return
	}
	ch.pressure = min(ch.pressure+n*milli, leaves*holdMost)
}
