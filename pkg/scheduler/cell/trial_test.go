package cell

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tryGangs tries new gangs in one trial. It returns each gang's request, whether the gang would start, and its nodes.
func tryGangs(t *testing.T, w *world, random *rand.Rand) (tried []triedGang) {
	t.Helper()
	trial := w.s.Trial()
	defer trial.End()
	for i := range 1 + random.IntN(4) {
		bytes := make([]byte, 64)
		for k := range bytes {
			bytes[k] = byte(random.UintN(256))
		}
		c := newChoices(bytes)
		g := triedGang{r: w.anyRequest(c, fmt.Sprintf("new%d", i))}
		if g.r.OnlySuggested {
			g.nodes = w.someNodes(c, g.r)
		}
		e := trial.Why(g.r, g.nodes)
		if n := trial.Largest(g.r, g.nodes, func() bool { return false }); n > 0 {
			larger := *g.r
			larger.Root.Pods = []PodSet{{Count: n, CellType: g.r.Root.Pods[0].CellType, Cells: g.r.Root.Pods[0].Cells}}
			require.Equal(t, Ready, trial.Why(&larger, g.nodes).Code, "%d pods of %v", n, g.r)
		}
		kept := len(trial.gangs)
		g.on, g.starts = trial.Start(g.r, g.nodes)
		g.kept = len(trial.gangs) > kept
		require.Equal(t, e.Code == Ready, g.starts, "%s: %s", e.Code, e.Sentence)
		if g.starts {
			require.Equal(t, e.Nodes, g.on)
		}
		tried = append(tried, g)
	}
	return tried
}

type triedGang struct {
	r            *Request
	nodes        Nodes
	on           []string
	starts, kept bool
}

// trialWalk works like play, but calls between before each step.
func trialWalk(data []byte, trace *strings.Builder, between func(*world)) (w *world, err error) {
	defer catch(&err)
	c := newChoices(data[:headerBytes])
	w = newWorld(c, makeCluster(c))
	w.trace, w.every = trace, 50
	for at := headerBytes; at+recordBytes <= len(data); at += recordBytes {
		between(w)
		w.do(data[at : at+recordBytes])
	}
	return w, nil
}

func TestATrialChangesNoLaterDecision(t *testing.T) {
	for seed := range uint64(envNumber("PAICTL_CELL_TWINS", 20)) {
		data := randomWalk(seed, 120)
		random := rand.New(rand.NewPCG(seed, 2))
		var traces [2]strings.Builder
		var dumps [2]string
		for i := range traces {
			w, err := trialWalk(data, &traces[i], func(w *world) {
				if i == 0 {
					w.s.settle()
					return
				}
				before := w.s.dump()
				pressures := fmt.Sprint(w.pressures())
				tryGangs(t, w, random)
				require.Equal(t, before, w.s.dump())
				require.Equal(t, pressures, fmt.Sprint(w.pressures()))
				require.NoError(t, w.s.Check())
			})
			require.NoError(t, err, "seed %d", seed)
			dumps[i] = w.s.dump() + fmt.Sprint(w.s.Gangs(), w.s.Stats())
		}
		require.Equal(t, traces[0].String(), traces[1].String(), "seed %d", seed)
		require.Equal(t, dumps[0], dumps[1])
	}
}

func (w *world) pressures() (out []pressure) {
	for _, ch := range w.s.chains {
		out = append(out, ch.pressure)
	}
	return out
}

func TestGangsThatATrialStartsReallyStart(t *testing.T) {
	started, refused := 0, 0
	for seed := range uint64(envNumber("PAICTL_CELL_TWINS", 20) * 10) {
		w, err := trialWalk(randomWalk(seed, 40), nil, func(*world) {})
		require.NoError(t, err)
		for _, g := range tryGangs(t, w, rand.New(rand.NewPCG(seed, 3))) {
			r := *g.r
			r.OnlySuggested = g.nodes != nil
			pod := func(i int) PodID { return PodID(fmt.Sprintf("%s-%d", r.Gang, i)) }
			d := w.s.Schedule(pod(0), &r, Filtering, g.nodes)
			require.Equal(t, g.starts, d.Result == Bind, "seed %d: %v %s %s", seed, g.r, d.Result, d.Reason)
			if !g.starts {
				refused++
				continue
			}
			started++
			at := map[string]bool{}
			for _, p := range d.Placement.Pods {
				at[p.Node] = true
			}
			require.Len(t, g.on, len(at))
			for _, name := range g.on {
				require.True(t, at[name], "it is on %v and not on %s", at, name)
			}
			for i := range d.Placement.Pods {
				_, err := w.s.Allocate(pod(i), &r, d.Placement, i)
				require.NoError(t, err)
			}
			if !g.kept {
				break // the later gangs were tried without this gang
			}
		}
	}
	require.Greater(t, started, 20)
	require.Greater(t, refused, 20)
}
