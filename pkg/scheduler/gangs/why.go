package gangs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// find returns the gang in a path: VC/GROUP, or GROUP if only one virtual cluster has a gang with this name. The name of a gang
// may contain slashes.
func (s *state) find(path, vc string) (*gang, error) {
	if vc != "" {
		if g := s.gangs[gangKey{vc, path}]; g != nil {
			return g, nil
		}
		return nil, notFound("virtual cluster %s has no group %s", vc, path)
	}
	var found []*gang
	for key, g := range s.gangs {
		if key.name == path {
			found = append(found, g)
		}
	}
	if first, rest, ok := strings.Cut(path, "/"); ok {
		if g := s.gangs[gangKey{first, rest}]; g != nil && !slices.Contains(found, g) {
			found = append(found, g)
		}
	}
	switch len(found) {
	case 0:
		return nil, notFound("there is no group %s", path)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, g := range found {
		names = append(names, g.vc)
	}
	slices.Sort(names)
	return nil, badRequest("several virtual clusters have a group %s: %s; name one with ?vc=", path, strings.Join(names, ", "))
}

func (s *state) why(g *gang) api.Why {
	p := g.first()
	out := api.Why{VC: g.vc, Group: g.name, State: p.state, Priority: p.request.Priority, Since: g.since(), Asks: s.asks(g), Pods: g.list()}
	if status, ok := s.core.Gang(g.vc, g.name); ok {
		out.Running = &status
	}
	order := s.order()
	out.QueueLength = len(order)
	for i, other := range order {
		if other.VC == g.vc {
			out.PositionInVC++
		}
		if other.VC == g.vc && other.Name == g.name {
			out.Position = i + 1
			break
		}
	}
	switch p.state {
	case api.Waiting, api.Preempting:
		out.Explanation, out.Alternative = s.explain(g)
		out.Sentence = s.waitingSentence(g, &out)
	case api.Ignored:
		out.PositionInVC, out.Sentence = 0, p.reason
	default:
		out.PositionInVC, out.Sentence = 0, runningSentence(out.Running)
	}
	return out
}

// explain returns why a gang has no place with its preferred request and with its alternative. It omits a request that package
// cell would reject.
func (s *state) explain(g *gang) (explanation, alternative *cell.Explanation) {
	p := g.first()
	limited := s.keptFromSome(s.nodesFor(g, g.ready(p.class)))
	var all []*cell.Explanation
	for _, r := range s.requests(p) {
		e := s.core.Why(r)
		if limited {
			e.Sentence, e.Smaller = e.WithoutSmaller(e.Sentence), nil
		}
		if len(all) == 0 || !refused(&e) {
			all = append(all, &e)
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	if refused(all[0]) {
		return all[1], nil
	}
	return all[0], all[1]
}

// keptFromSome reports whether nodes excludes a healthy node.
func (s *state) keptFromSome(nodes cell.Nodes) bool {
	return nodes != nil && slices.ContainsFunc(s.core.Nodes(), func(name string) bool {
		n := s.nodes[name]
		return n != nil && n.healthy && !nodes.Has(name)
	})
}

// reasonOf joins the explanations of a request and of its alternative, which may be nil.
func reasonOf(e, or *cell.Explanation) string {
	if or == nil {
		return e.Sentence
	}
	return fmt.Sprintf("%s Instead of CPU cells it may take %s: %s", e.Sentence, plural.Of(or.GPUs, "GPU"), or.Sentence)
}

func (s *state) waitingSentence(g *gang, w *api.Why) string {
	text := reasonOf(w.Explanation, w.Alternative)
	ready := w.Explanation.Code == cell.Ready || w.Alternative != nil && w.Alternative.Code == cell.Ready
	switch {
	case w.State == api.Preempting:
		text = g.first().reason
	case ready && g.first().reason != "":
		text = g.first().reason
	case g.held, s.paused(g.pods) != nil:
		text = g.first().reason
	case s.now().Before(g.calm) || slices.ContainsFunc(g.pods, func(p *pod) bool { return p.trial != "" || p.could != "" }):
		text = g.first().reason // the core doesn't know kube-scheduler's reasons
	}
	if w.Explanation.Code == cell.BadNodes {
		text += s.badNodes()
	}
	if text = s.holding(g, text); w.QueueLength > 1 {
		text = fmt.Sprintf("%s; number %d of %s", strings.TrimSuffix(text, "."), w.Position, plural.Of(w.QueueLength, "waiting gang"))
	}
	return text
}

// badNodes describes the first few nodes that aren't fully usable, with the reasons.
func (s *state) badNodes() string {
	const most = 3
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[name]
		why := n.reason
		if n.healthy {
			why = strings.Join(n.report.Why, ", ")
			if why == "" && len(n.report.Missing)+len(n.report.Unhealthy) > 0 {
				why = n.report.Difference()
			}
		}
		if why != "" {
			bad = append(bad, name+": "+why)
		}
	}
	if len(bad) == 0 {
		return ""
	}
	text := " " + strings.Join(bad[:min(most, len(bad))], "; ")
	if len(bad) > most {
		text += fmt.Sprintf("; and %s", plural.Of(len(bad)-most, "more node"))
	}
	return text + "."
}

func runningSentence(status *cell.GangStatus) string {
	if status == nil {
		return "it has no placement"
	}
	has := plural.Of(status.GPUs, "GPU")
	if status.CPUCells > 0 {
		has = plural.Of(status.CPUCells, "CPU cell")
	}
	text := fmt.Sprintf("it has %s on %s", has, plural.Of(len(status.PhysicalPlacement), "node"))
	if status.Downgraded {
		text += ", without its guarantee"
		if status.Preemptor != "" {
			text += ", since " + status.Preemptor + " needs it"
		}
	}
	if status.State == beingPreempted {
		text += ", and is being preempted"
	}
	return text
}

func (g *gang) list() []api.Pod {
	var out []api.Pod
	for _, p := range g.pods {
		out = append(out, api.Pod{Name: p.key, UID: string(p.uid), State: p.state, Node: p.node, Indices: p.indices, Reason: p.reason})
	}
	return out
}
