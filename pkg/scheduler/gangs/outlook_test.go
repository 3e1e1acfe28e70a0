package gangs

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// expect requests the outlook of pods of some kinds, and checks that the request changes nothing.
func (c *cluster) expect(count int, p *corev1.Pod, more ...*corev1.Pod) []api.NewGang {
	c.t.Helper()
	q := api.OutlookQuery{}
	for _, p := range append([]*corev1.Pod{p}, more...) {
		q.Pods = append(q.Pods, api.NewPods{Count: count, Pod: *p})
	}
	before := c.fingerprint()
	code, text := c.ask(http.MethodPost, api.PathOutlook, q)
	require.Equal(c.t, http.StatusOK, code, text)
	require.Equal(c.t, before, c.fingerprint())
	var out api.Outlook
	require.NoError(c.t, json.Unmarshal([]byte(text), &out))
	return out.Gangs
}

// fingerprint describes the state that decisions depend on, and the requests to the API server.
func (c *cluster) fingerprint() string {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	s := c.b.state
	data, err := json.Marshal([]any{s.core.Gangs(), s.core.Physical(), s.core.Virtual(), s.core.Stats()})
	require.NoError(c.t, err)
	text := fmt.Sprintln(string(data), s.epoch, s.evicting, len(s.unfinished), s.left, len(s.postponed), s.round, s.goesOn, s.whole, s.seconds, s.reserving, c.b.places.of, len(c.client.Actions()))
	for _, uid := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[uid]
		text += fmt.Sprintln(uid, p.state, p.reason, p.node, p.indices, p.trial, p.could, p.evicted, p.pause)
	}
	for _, g := range s.order() {
		text += fmt.Sprintln(g.VC, g.Name, g.Since, s.gangs[gangKey{g.VC, g.Name}].searched)
	}
	return text
}

func TestAJobThatIsNotSubmittedKnowsItsOutlook(t *testing.T) {
	c := newCluster(t, twoTeams)
	got := c.expect(2, newPod("a", spec("A", 5, "g:2:2")))[0]
	assert.Equal(t, api.NewGang{VC: "A", Count: 1, Starting: 1, Pods: 2, Result: api.Starts, Nodes: got.Nodes, Largest: &cell.Smaller{Pods: 2, GPUsPerPod: 2}}, got)
	assert.Subset(t, []string{"a0", "a1", "b0", "b1"}, got.Nodes)
	assert.Len(t, got.Nodes, 2)
	assert.Equal(t, 4, c.expect(1, newPod("a", spec("A", 5, "g:1:1")))[0].Largest.Pods, "of this shape more would start")

	got = c.expect(1, newPod("a", spec("A", 5, "g:3:2")))[0]
	assert.Equal(t, api.Never, got.Result)
	assert.Contains(t, got.Reason, "The gang can never start: it requests 6 GPUs")
	assert.Equal(t, api.Never, c.expect(1, newPod("a", spec("C", 5, "g:1:1")))[0].Result, "there is no virtual cluster C")

	running := c.run(newPod("runs", spec("B", 5, "runs:1:1")))
	waiting := c.create(newPod("waits", spec("B", 5, "waits:1:2")))
	c.waits(waiting)
	c.clock.add(time.Hour)
	got = c.expect(1, newPod("b", spec("B", 5, "g:1:2")))[0]
	assert.Equal(t, [3]any{api.Waits, 2, 2}, [3]any{got.Result, got.PositionInVC, got.QueueInVC})
	assert.Equal(t, "Virtual cluster B has 1 of 2 GPUs free for jobs of priority 5, but the gang requests 2.", got.Reason)
	assert.Equal(t, &cell.Smaller{Pods: 1, GPUsPerPod: 1}, got.Largest)
	assert.Equal(t, 1, c.expect(1, newPod("b", spec("B", 6, "g:1:2")))[0].PositionInVC)
	got = c.expect(1, newPod("b", spec("B", 5, "runs:1:1")))[0]
	assert.Equal(t, api.Starts, got.Result, "another gang of that name runs, which the submission finds out")

	got = c.expect(1, newPod("b", spec("B", 6, "g:1:2")))[0]
	assert.Equal(t, [2]any{api.Preempts, 1}, [2]any{got.Result, got.Victims})
	c.delete(running)
}

func TestOfAloneTasksTheOutlookCountsThoseThatStart(t *testing.T) {
	c := newCluster(t, twoTeams)
	alone := newPod("a", "virtualCluster: A\npriority: 5\nleafCellType: G\nleafCellNumber: 1\n")
	got := c.expect(6, alone)[0]
	assert.Equal(t, [6]any{6, 4, api.Waits, 1, 2, 1}, [6]any{got.Count, got.Starting, got.Result, got.PositionInVC, got.QueueInVC, got.Pods})
	assert.Len(t, got.Nodes, 2)
	assert.Equal(t, api.Starts, c.expect(4, alone)[0].Result)
	both := c.expect(1, newPod("a", spec("A", 5, "g:1:2")), newPod("b", spec("A", 5, "h:2:2")))
	assert.Equal(t, [2]string{api.Starts, api.Waits}, [2]string{both[0].Result, both[1].Result}, "the first one has the cells that the second one needs")
}

func TestAnOutlookHasTheConstraintsOfThePods(t *testing.T) {
	c := newCluster(t, fourNodes)
	p := avoiding(newPod("a", spec("A", 5, "g:2:2")), "a0", "a1", "b0")
	got := c.expect(1, p)[0]
	assert.Equal(t, api.Waits, got.Result)
	assert.Contains(t, got.Reason, "only on nodes that Kubernetes doesn't suggest")
	assert.Equal(t, &cell.Smaller{Pods: 1, GPUsPerPod: 2}, got.Largest)
}

func TestAnOutlookKnowsThatFreeCellsAreHeld(t *testing.T) {
	c := newCluster(t, twoTeams)
	c.run(newPod("runs", spec("B", 5, "runs:1:1")))
	c.create(newPod("old", spec("B", 5, "ann~old:1:2")))
	c.clock.add(25 * time.Hour)
	c.b.Decide()
	got := c.expect(1, newPod("b", spec("B", 5, "g:1:1")))[0]
	assert.Equal(t, [3]any{api.Waits, "free cells of virtual cluster B are reserved for ann~old, which has waited for more than 24h", 2}, [3]any{got.Result, got.Reason, got.PositionInVC})
	short := newPod("b", spec("B", 5, "g:1:1"))
	young := c.create(newPod("young", spec("B", 5, "young:1:1")))
	assert.Equal(t, got.Reason, c.waits(young), "the same words")
	assert.Equal(t, api.Waits, c.expect(1, short)[0].Result)
}

func TestQuestionsAboutOutlooksAreBounded(t *testing.T) {
	c := newCluster(t, twoTeams)
	good, err := json.Marshal(api.OutlookQuery{Pods: []api.NewPods{{Count: 1_000_000, Pod: *newPod("a", "virtualCluster: A\nleafCellNumber: 1\n")}}})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		body, want string
		code       int
	}{
		"many tasks":      {string(good), `"count":1000000,"starting":4`, 200},
		"no pods":         {`{}`, "0 kinds of pods; write 1 to 1000", 400},
		"no JSON":         {`{`, "the question can't be read", 400},
		"too long":        {`{"pods":"` + strings.Repeat("x", maxOutlook) + `"}`, "the question can't be read", 400},
		"without request": {`{"pods":[{"count":1}]}`, "pods[0]: annotation", 400},
		"no count":        {strings.Replace(string(good), "1000000", "0", 1), "pods[0]: count is 0; write 1 or more", 400},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := c.ask(http.MethodPost, api.PathOutlook, tt.body)
			assert.Equal(t, tt.code, code)
			assert.Contains(t, text, tt.want)
		})
	}
	end, err := takeTurn(t.Context(), c.b.trying, time.Minute)
	require.NoError(t, err)
	_, err = takeTurn(t.Context(), c.b.trying, time.Millisecond)
	require.ErrorIs(t, err, errBusy)
	end()
}

// TestAnOutlookComesTrue submits random gangs, and compares the outlook of each gang with the next decision.
func TestAnOutlookComesTrue(t *testing.T) {
	results := map[string]int{}
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 4))
		c := newCluster(t, []string{twoTeams, fourNodes}[seed%2])
		gangs := map[string][]*corev1.Pod{}
		for step := range 25 {
			c.clock.add(1000 * time.Second) // the creation times of pods are a bit later than the clock
			if names := slices.Sorted(maps.Keys(gangs)); len(names) > 0 && random.IntN(3) == 0 {
				name := names[random.IntN(len(names))]
				for _, p := range gangs[name] {
					c.delete(p)
				}
				delete(gangs, name)
			}
			c.bindAll(gangs)
			vc := "A"
			if seed%2 == 0 && random.IntN(2) == 0 {
				vc = "B"
			}
			name, pods := fmt.Sprintf("g%d", step), 1+random.IntN(3)
			text := spec(vc, []int{-1, 0, 0, 5}[random.IntN(4)], fmt.Sprintf("%s:%d:%d", name, pods, 1+random.IntN(2)))
			want := c.expect(pods, newPod("new", text))[0]
			for i := range pods {
				gangs[name] = append(gangs[name], c.create(newPod(fmt.Sprintf("%s-%d", name, i), text)))
			}
			c.b.Decide()
			require.Equal(t, want.Result, c.happened(gangs[name]), "seed %d, step %d: %s: %s", seed, step, text, want.Reason)
			results[want.Result]++
			switch want.Result {
			case api.Starts:
				on := map[string]bool{}
				for _, p := range gangs[name] {
					at, _ := c.b.Place(p.UID)
					on[at.Node] = true
				}
				require.Equal(t, want.Nodes, slices.Sorted(maps.Keys(on)))
			case api.Waits:
				var why api.Why
				c.get("/v1/why/"+vc+"/"+name, &why)
				require.Equal(t, want.PositionInVC, why.PositionInVC)
				require.Contains(t, why.Sentence, strings.TrimSuffix(want.Reason, "."))
			default:
				for _, p := range gangs[name] {
					c.delete(p)
				}
				delete(gangs, name)
			}
		}
	}
	for _, r := range []string{api.Starts, api.Waits, api.Preempts, api.Never} {
		assert.GreaterOrEqual(t, results[r], 2, r)
	}
}

// bindAll binds all pods that get a place, and removes gangs that would evict other gangs.
func (c *cluster) bindAll(gangs map[string][]*corev1.Pod) {
	for more := true; more; {
		more = false
		c.b.Decide()
		for _, name := range slices.Sorted(maps.Keys(gangs)) {
			for _, p := range gangs[name] {
				at, has := c.b.Place(p.UID)
				switch {
				case has && at.Trial:
					for _, p := range gangs[name] {
						c.delete(p)
					}
					delete(gangs, name)
					more = true
				case has:
					c.bind(p, at.Node)
					c.wait(p, api.Bound)
					more = true
					continue
				default:
					continue
				}
				break
			}
		}
	}
}

// happened converts a decision about a gang to the result of an outlook.
func (c *cluster) happened(pods []*corev1.Pod) string {
	places, trials := 0, 0
	for _, p := range pods {
		if at, has := c.b.Place(p.UID); has && at.Trial {
			trials++
		} else if has {
			places++
		}
	}
	switch {
	case places == len(pods):
		return api.Starts
	case trials > 0:
		return api.Preempts
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if strings.Contains(c.b.state.pods[pods[0].UID].reason, "can never start") {
		return api.Never
	}
	return api.Waits
}
