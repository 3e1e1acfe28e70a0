package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/peer"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	image = 300_000_000 // bytes
	mb    = 1_000_000
)

// line simulates transfers from paictl over one shared line, and transfers between machines within one step. Each step checks the pace of all
// transfers from paictl.
type line struct {
	t       *testing.T
	copies  *copies
	names   []string
	wants   map[string][]ssh.Missing
	sending map[string]*sendingOf
	now     time.Time
	// rate returns the total rate of n transfers, in bytes per second.
	rate func(step, n int) float64
	// part returns the fraction of its share of the line that a machine uses.
	part func(name string) float64

	steps, sent, released, most int
}

type sendingOf struct {
	t    transfer
	pace *pace
	got  float64
}

func newLine(t *testing.T, machines int, sizes ...int64) *line {
	l := &line{t: t, copies: sharing(machines), wants: map[string][]ssh.Missing{}, sending: map[string]*sendingOf{}, now: time.Unix(1e9, 0)}
	for i := range machines {
		name := fmt.Sprintf("w%d", i+1)
		l.names = append(l.names, name)
		for j, size := range sizes {
			l.wants[name] = append(l.wants[name], missing(fmt.Sprintf("file-%d", j), size))
		}
	}
	l.part = func(string) float64 { return 1 }
	return l
}

func (l *line) step() {
	patience := peer.Patience{}.WithDefaults()
	fetching := map[string]transfer{}
	for _, name := range l.names {
		for range getsAtOnce {
			tr, ok, _ := l.copies.next(name, l.wants[name])
			if !ok {
				break
			}
			l.wants[name] = slices.DeleteFunc(l.wants[name], func(f ssh.Missing) bool { return f.SHA256 == tr.file.SHA256 })
			if tr.from == nil {
				l.sent++
				l.sending[name] = &sendingOf{t: tr, pace: newPace(patience, l.now)}
			} else {
				fetching[name+" "+tr.file.SHA256] = tr
			}
		}
	}
	l.most = max(l.most, len(l.sending))
	passes := patience.Stall / 4
	l.now = l.now.Add(passes)
	share := l.rate(l.steps, len(l.sending)) * passes.Seconds() / float64(max(1, len(l.sending)))
	for _, name := range l.names {
		s := l.sending[name]
		if s == nil {
			continue
		}
		if more := share * l.part(name); more > 0 {
			s.got = min(s.got+more, float64(s.t.file.Size))
			s.pace.took(int64(s.got), s.t.file.Size, l.now)
		}
		if s.got == float64(s.t.file.Size) {
			if s.got >= enoughProof && s.got >= float64(patience.Rate)*l.now.Sub(s.pace.began).Seconds() {
				l.copies.prove(l.now)
			}
			l.copies.sent(name, s.t, true, true)
			delete(l.sending, name)
			continue
		}
		slow, fast := s.pace.look(l.now)
		if l.copies.look(name, s.t, slow, fast, l.now, s.pace.recent()) {
			l.released++
		}
	}
	for key, tr := range fetching {
		var name string
		_, err := fmt.Sscan(key, &name)
		require.NoError(l.t, err)
		l.copies.fetched(name, tr, "", true)
	}
	l.steps++
}

func (l *line) whole() (n int) {
	for _, name := range l.names {
		if len(l.wants[name]) == 0 && l.sending[name] == nil {
			n++
		}
	}
	return n
}

func (l *line) until(machines, steps int) {
	l.t.Helper()
	for l.whole() < machines {
		require.Less(l.t, l.steps, steps, "%d machines are whole", l.whole())
		l.step()
	}
}

func steady(rate float64) func(int, int) float64 { return func(int, int) float64 { return rate } }

func TestASlowLineThatAllShareGetsNoMoreToSend(t *testing.T) {
	for _, rate := range []float64{0.1 * mb, 0.25 * mb, 0.5 * mb, 0.9 * mb, 1.1 * mb, 2 * mb} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			l := newLine(t, 50, image)
			l.rate = steady(rate)
			l.copies.prove(l.now) // one early copy was fast
			l.until(50, int(8*image/rate/2.5))
			assert.LessOrEqual(t, l.most, sendsAtOnce+1)
			assert.LessOrEqual(t, l.sent, ownCopies+2)
			assert.Zero(t, l.released)
		})
	}
}

// On a real line, the machines' shares differ and change over time.
func TestAnUnevenSlowLineGetsFewMoreToSend(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		l := newLine(t, 50, image, image/2, image/3, image/4, image/5)
		l.rate = steady(1.2 * mb)
		l.part = func(string) float64 { return 2 * chance.Float64() }
		l.copies.prove(l.now)
		l.until(50, 4000)
		assert.LessOrEqual(t, l.most, 2*sendsAtOnce+1, "seed %d", seed)
		assert.LessOrEqual(t, l.sent, 5*(ownCopies+3), "seed %d", seed)
	}
}

func TestALineThatIsDownForAWhileReleasesNone(t *testing.T) {
	l := newLine(t, 50, image, image)
	l.rate = func(step, _ int) float64 {
		if step%30 >= 10 { // 50 s of every 75 s, after the first 25 s
			return 0
		}
		return 10 * mb
	}
	l.until(50, 4000)
	assert.Zero(t, l.released)
	assert.LessOrEqual(t, l.most, sendsAtOnce+1)
}

// Some machines stall completely, or almost, after some bytes. These are the machines to which paictl sends first, or more machines if one of them is
// fast.
func TestMachinesThatTakeTooSlowlyHoldNoOthersUp(t *testing.T) {
	for _, c := range []struct{ from, to int }{{0, 1}, {0, 2}, {0, 3}, {0, sendsAtOnce}, {1, 6}, {1, 12}, {3, 40}} {
		for _, part := range []float64{0, 0.02} {
			t.Run(fmt.Sprint(c, part), func(t *testing.T) {
				l := newLine(t, 50, image, image/2)
				l.rate = func(_, n int) float64 { return float64(n) * 5 * mb }
				l.part = func(name string) float64 {
					if i := slices.Index(l.names, name); i >= c.from && i < c.to && l.sending[name].got > mb {
						return part
					}
					return 1
				}
				l.until(50-c.to+c.from, 100)
				assert.LessOrEqual(t, l.released, sendsAtOnce)
				if c.to == sendsAtOnce && part == 0 {
					assert.Equal(t, sendsAtOnce, l.released)
				}
				assert.LessOrEqual(t, l.most, 2*sendsAtOnce+1)
			})
		}
	}
}

func TestThePaceOfAMachine(t *testing.T) {
	const second = time.Second
	patience := peer.Patience{}.WithDefaults()
	type took struct {
		at  time.Duration
		got int64
	}
	every := func(rate int64, from, to int) (out []took) {
		for s := from; s <= to; s++ {
			out = append(out, took{time.Duration(s) * second, int64(s-from+1) * rate})
		}
		return out
	}
	for name, c := range map[string]struct {
		took       []took
		at         time.Duration
		slow, fast bool
	}{
		"it looks what it has":              {nil, 29 * second, false, false},
		"it looks for too long":             {nil, 31 * second, true, false},
		"fast":                              {every(300<<10, 0, 60), 60 * second, false, true},
		"fast, and not yet known as such":   {every(300<<10, 0, 8), 8 * second, false, false},
		"a rate that is too low":            {every(100<<10, 0, 80), 80 * second, true, false},
		"it is too low, and is borne":       {every(100<<10, 0, 40), 40 * second, false, false},
		"no byte for a while":               {every(300<<10, 0, 60), 69 * second, false, false},
		"no byte for too long":              {every(300<<10, 0, 60), 71 * second, true, false},
		"only buffers were filled at first": {[]took{{second, 8 << 20}}, 10 * second, false, false},
		"it was slow, and is fast now":      {append(every(10<<10, 0, 40), every(500<<10, 41, 60)...), 60 * second, false, true},
		"all is there, and is checked":      {[]took{{second, image}}, 25 * second, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Unix(1e9, 0)
			p := newPace(patience, began)
			var slow, fast bool
			for at := p.looks(); at <= c.at; at += p.looks() / 5 {
				for len(c.took) > 0 && c.took[0].at <= at {
					p.took(c.took[0].got, image, began.Add(c.took[0].at))
					c.took = c.took[1:]
				}
				slow, fast = p.look(began.Add(at))
			}
			assert.Equal(t, c.slow, slow, "slow")
			assert.Equal(t, c.fast, fast, "fast")
		})
	}
}
