package cell

import "math/bits"

// bitset is a set of small integers. Its methods never grow the slice.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) has(i int32) bool { return b[i>>6]&(1<<(uint(i)&63)) != 0 }
func (b bitset) set(i int32)      { b[i>>6] |= 1 << (uint(i) & 63) }
func (b bitset) clear(i int32)    { b[i>>6] &^= 1 << (uint(i) & 63) }

// span returns a mask for word w with the bits of the integers in [lo, hi).
func span(w, lo, hi int) uint64 {
	mask := ^uint64(0)
	if first := w << 6; lo > first {
		mask <<= uint(lo - first)
	}
	if last := (w + 1) << 6; hi < last {
		mask &= ^uint64(0) >> uint(last-hi)
	}
	return mask
}

// count returns the number of members in [lo, hi).
func (b bitset) count(lo, hi int) int {
	if lo >= hi {
		return 0
	}
	if w := lo >> 6; w == (hi-1)>>6 {
		return bits.OnesCount64(b[w] & span(w, lo, hi))
	}
	n := 0
	for w := lo >> 6; w <= (hi-1)>>6; w++ {
		n += bits.OnesCount64(b[w] & span(w, lo, hi))
	}
	return n
}

// first returns the smallest member in [lo, hi), or -1.
func (b bitset) first(lo, hi int) int32 {
	if lo >= hi {
		return -1
	}
	for w := lo >> 6; w <= (hi-1)>>6; w++ {
		if x := b[w] & span(w, lo, hi); x != 0 {
			return int32(w<<6 + bits.TrailingZeros64(x))
		}
	}
	return -1
}

// members appends the members in [lo, hi) to out.
func (b bitset) members(lo, hi int, out []int32) []int32 {
	for i := b.first(lo, hi); i >= 0; i = b.first(int(i)+1, hi) {
		out = append(out, i)
	}
	return out
}

// clearRange removes the members in [lo, hi).
func (b bitset) clearRange(lo, hi int) {
	if lo >= hi {
		return
	}
	for w := lo >> 6; w <= (hi-1)>>6; w++ {
		b[w] &^= span(w, lo, hi)
	}
}

// setRange adds all integers in [lo, hi).
func (b bitset) setRange(lo, hi int) {
	if lo >= hi {
		return
	}
	for w := lo >> 6; w <= (hi-1)>>6; w++ {
		b[w] |= span(w, lo, hi)
	}
}
