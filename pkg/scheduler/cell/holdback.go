package cell

// Holding back. Where opportunistic gangs fill the last idle leaf, every guaranteed gang that
// arrives has to end some of them, and they start again only to be ended again. So a chain remembers
// how much was preempted lately, and starts opportunistic gangs only while about that much stays
// idle. Work is done later and not twice; utilisation stays the same.
//
// The memory fades with each guaranteed gang that starts without preempting and with each
// opportunistic one that is held back, so that nothing waits for ever. It is not kept over a restart.

const (
	// holdFrom is the number of leaves from which a chain holds back; in a small one a gang is too
	// large a part of it.
	holdFrom = 256
	// holdMost is the largest part of a chain that is held back, in thousandths.
	holdMost = 140
	// Weights of the memory, in thousandths of it.
	fadeByStart   = 1
	fadeByAttempt = 1
	milli         = 1000
)

// large says that keeping opportunistic gangs out of the way costs less than it saves: in a small
// chain every idle piece is wanted.
func (ch *chain) large() bool { return len(ch.cells[0]) >= holdFrom }

// holdsBack says that an opportunistic gang of n leaves would take what guaranteed ones need soon.
func (ch *chain) holdsBack(n int) bool {
	if ch.pressure == 0 || ch.view.free < n || ch.view.free-n >= ch.pressure/milli {
		return false
	}
	ch.fade(fadeByAttempt)
	return true
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
