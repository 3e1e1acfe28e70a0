package extender

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/plural"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// victims answers the verb preempt, which kube-scheduler uses where something that it counts itself is
// short. It deletes the victims of one node; those of other nodes are deleted here.
func (e *Extender) victims(ctx context.Context, args *preemptArgs) (*preemptResult, error) {
	if args.Pod == nil || args.Pod.Metadata.UID == "" {
		return nil, badRequest("the field Pod is empty")
	}
	if err := e.lead(ctx, 0); err != nil {
		return nil, err
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	if err := e.discover(ctx, args.Pod); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.state
	if s == nil {
		return nil, errNotLeading
	}
	p := s.pods[args.Pod.Metadata.UID]
	switch {
	case p == nil:
		return nil, badRequest("the pod %s is gone", args.Pod.key())
	case p.state != api.Waiting && p.state != api.Preempting:
		return nil, badRequest("the pod %s needs no victims: its state is %s", p.key, p.state)
	case p.request == nil:
		return nil, badRequest("%s", p.reason)
	}
	var nodes cell.Nodes
	if p.request.OnlySuggested {
		nodes = nodeSet(args.NodeNameToMetaVictims)
	}
	d := s.core.Schedule(cell.PodID(p.uid), p.request, cell.Preempting, nodes)
	s.apply(d.Changes)
	if reason := tooLong(p, &d); reason != "" {
		s.apply(s.core.DeleteUnallocated(cell.PodID(p.uid), p.request))
		d = cell.Decision{Result: cell.Refuse, Reason: reason}
	}
	e.count.decisions.WithLabelValues(string(d.Result)).Inc()
	switch d.Result {
	case cell.Refuse:
		return nil, badRequest("%s", d.Reason)
	case cell.Wait:
		s.wait(p, d.Reason)
	case cell.Preempt:
		node, pods := oneNode(d.Victims)
		s.preempt(p, &d, node)
		return &preemptResult{map[string]metaVictims{node: {Pods: pods}}}, nil
	}
	return &preemptResult{}, nil
}

// oneNode returns the node with the most victims, the first by name, and these.
func oneNode(victims []cell.Victim) (string, []metaPod) {
	of := map[string][]metaPod{}
	best := victims[0].Node
	for _, v := range victims {
		of[v.Node] = append(of[v.Node], metaPod{string(v.Pod)})
	}
	for node, pods := range of {
		if len(pods) > len(of[best]) || len(pods) == len(of[best]) && node < best {
			best = node
		}
	}
	return best, of[best]
}

// preempt begins or continues to empty the cells that a pod's gang has reserved. Victims on except are
// left to kube-scheduler. It returns what kube-scheduler is told about each node.
func (s *state) preempt(p *pod, d *cell.Decision, except string) map[string]string {
	p.state = api.Preempting
	gangs := victimGangs(d.Victims)
	p.reason = fmt.Sprintf("%s of %s must go first", plural.Of(len(d.Victims), "pod"), strings.Join(gangs, ", "))
	s.tell(p, corev1.EventTypeNormal, api.ReasonPreempting, p.reason)
	failed := map[string]string{}
	for _, v := range d.Victims {
		failed[v.Node] = p.reason
		s.evict(p, v, v.Node != except)
	}
	return failed
}

// evict tells a victim, and deletes it unless kube-scheduler does.
func (s *state) evict(p *pod, v cell.Victim, ours bool) {
	victim := s.pods[types.UID(v.Pod)]
	if victim == nil {
		return // the core says more than we know; it is told of deletions first
	}
	if victim.evicted.IsZero() {
		s.count.preempt(s.gangs[gangKey{v.VC, v.Gang}])
		s.log.Info("preempting", "pod", victim.key, "vc", v.VC, "gang", v.Gang, "for", p.key)
		s.tell(victim, corev1.EventTypeNormal, api.ReasonPreempted,
			fmt.Sprintf("makes room for the gang %s of virtual cluster %s", p.request.Gang, p.request.VirtualCluster))
		victim.evicted = s.now()
	}
	if ours {
		s.todo(task{evict, victim.uid})
	}
}

// victimGangs names the gangs, in order.
func victimGangs(victims []cell.Victim) []string {
	var out []string
	for _, v := range victims {
		if name := v.VC + "/" + v.Gang; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	const most = 5
	if len(out) > most {
		out = append(out[:most:most], plural.Of(len(out)-most, "more gang"))
	}
	return out
}
