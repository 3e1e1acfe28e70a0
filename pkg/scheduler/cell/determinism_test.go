package cell

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSameStepsGiveTheSameDecisions(t *testing.T) {
	for seed := range uint64(envNumber("PAICTL_CELL_TWINS", 20)) {
		data := randomWalk(seed, 200)
		var traces [2]strings.Builder
		var dumps [2]string
		for i := range traces {
			w, err := play(data, &traces[i], func(w *world) { w.every = 50 })
			require.NoError(t, err)
			dumps[i] = w.s.dump() + fmt.Sprint(w.s.Gangs(), w.s.Stats())
		}
		require.Equal(t, traces[0].String(), traces[1].String())
		require.Equal(t, dumps[0], dumps[1])
	}
}

// wildConfig returns a valid configuration, or a configuration with mistakes.
func wildConfig(c *choices) Config {
	conf := makeCluster(c)
	names := []string{"", "x", "/", "C0L0", "C0L1", "C0L2", "C1L2", "G0", "a b"}
	numbers := []int{0, -1, 1, 2, 1 << 12, 1 << 40, 1<<63 - 1, -1 << 62}
	for range pick(c, 0, 1, 1, 2, 5) {
		t := &conf.Types[c.n(len(conf.Types))]
		p := &conf.Physical[c.n(len(conf.Physical))]
		for len(p.Children) > 0 && c.in(60) {
			p = &p.Children[c.n(len(p.Children))]
		}
		v := &conf.VirtualClusters[c.n(len(conf.VirtualClusters))]
		switch c.n(16) {
		case 0:
			t.Name = pick(c, names...)
		case 1:
			t.Child = pick(c, names...)
		case 2:
			t.Children = pick(c, numbers...)
		case 3:
			t.Node = !t.Node
		case 4:
			conf.Types = append(conf.Types, *t)
		case 5:
			p.Type = pick(c, names...)
		case 6:
			p.Address = pick(c, "", "n0", "0", "-1", "+1", "99999999999", "a/b")
		case 7:
			p.Pinned = pick(c, "p0", "p1", "q")
		case 8:
			p.Children = append(p.Children, Physical{Address: pick(c, "0", "n1")})
		case 9:
			v.Name = pick(c, "A", "", "B", "x/y")
		case 10:
			v.Cells = append(v.Cells, Virtual{pick(c, names...) + pick(c, "", ".", ".C0L1", ".C0L0.G0"), pick(c, numbers...)})
		case 11:
			v.Pinned = append(v.Pinned, pick(c, "p0", "p1", "", "q"))
		case 12:
			v.Quota = Quota{PerUser: pick(c, numbers...), Groups: map[string]int{pick(c, names...): pick(c, numbers...)}}
		case 13:
			conf.VirtualClusters = append(conf.VirtualClusters, *v)
		case 14:
			conf.Physical = append(conf.Physical, *p)
		case 15:
			if len(v.Cells) > 0 {
				v.Cells[c.n(len(v.Cells))].Count = pick(c, numbers...)
			}
		}
	}
	return conf
}

// tryConfig checks that no configuration causes a panic, and that a valid configuration makes a consistent scheduler.
func tryConfig(t *testing.T, data []byte) (valid bool) {
	t.Helper()
	conf := wildConfig(newChoices(data))
	problems := conf.Validate()
	for _, p := range problems {
		assert.NotEmpty(t, p.Error())
	}
	s, err := New(conf)
	if len(problems) > 0 {
		require.Error(t, err, "New takes what Validate refuses: %v", problems)
		return false
	}
	require.NoError(t, err)
	require.NoError(t, s.Check())
	for _, n := range s.Nodes() {
		s.SetNode(n, true)
	}
	require.NoError(t, s.Check())
	return true
}

func TestNoConfigurationPanics(t *testing.T) {
	valid := 0
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		data := make([]byte, 48)
		for i := range data {
			data[i] = byte(r.UintN(256))
		}
		if tryConfig(t, data) {
			valid++
		}
	}
	assert.Greater(t, valid, 60)
	assert.Less(t, valid, 240)
}

func FuzzConfig(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomWalk(seed, 2))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 512 {
			tryConfig(t, data)
		}
	})
}
