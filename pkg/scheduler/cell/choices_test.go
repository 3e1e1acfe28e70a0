package cell

// choices turns bytes into decisions, so that random walks, the fuzzer and replays use the same format. After the last byte of
// a record, choices continues with numbers that depend on the record.
type choices struct {
	record []byte
	at     int
	state  uint64
}

func newChoices(record []byte) *choices {
	c := &choices{record: record}
	for _, b := range record {
		c.state = c.state*0x100000001B3 + uint64(b) + 1
	}
	return c
}

// n returns a number from 0 to k-1.
func (c *choices) n(k int) int {
	if k < 2 {
		return 0
	}
	if c.at < len(c.record) && k <= 256 {
		c.at++
		return int(c.record[c.at-1]) % k
	}
	c.state += 0x9E3779B97F4A7C15
	x := c.state
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB
	return int((x ^ (x >> 31)) >> 1 % uint64(k))
}

// in returns true in the given percentage of cases. A zero byte means false.
func (c *choices) in(percent int) bool { return c.n(100) >= 100-percent }

func pick[T any](c *choices, list ...T) T { return list[c.n(len(list))] }
