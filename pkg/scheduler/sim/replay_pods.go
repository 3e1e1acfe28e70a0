package sim

import (
	"fmt"
	"slices"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// names is a set of node names.
type names map[string]bool

// Has implements cell.Nodes.
func (n names) Has(name string) bool { return n[name] }

func (s *scheduleStep) run(r *Stepper, line *Line) error {
	p, err := r.pod(s.Pod, s.Spec.text, line)
	if err != nil {
		return err
	}
	phase := cell.Filtering
	switch s.Phase {
	case "", "Filtering":
	case "Preempting":
		phase = cell.Preempting
	default:
		return fmt.Errorf("phase: there is no phase %q; write Filtering or Preempting", s.Phase)
	}
	var suggested cell.Nodes
	if s.SuggestedNodes != nil {
		set := names{}
		for _, n := range s.SuggestedNodes {
			set[n] = true
		}
		suggested = set
	}
	line.Place = &Place{LeafCellIsolation: []int32{}, Victims: []string{}}
	if !p.parse(line) {
		return nil
	}
	d := r.core.Schedule(cell.PodID(p.id), p.request, phase, suggested)
	line.Result, line.Reason = string(d.Result), d.Reason
	r.changed(d.Changes, line)
	p.bind = nil
	for _, v := range d.Victims {
		line.Victims = append(line.Victims, string(v.Pod))
	}
	if d.Result == cell.Bind {
		p.bind, p.notes = &d, annotation.Write(p.request, &d)
		line.Node, line.LeafCellIsolation, line.CellChain, line.PodBindInfo = d.Node, d.Indices, d.Chain, p.notes.BindInfo
	}
	return nil
}

// run accepts the last bind of a pod, or takes over a running pod.
func (s *addStep) run(r *Stepper, line *Line) error {
	p, err := r.pod(s.Pod, s.Spec.text, line)
	if err != nil {
		return err
	}
	if p.at >= 0 {
		line.refuse("pod %s is allocated already", p.id)
		return nil
	}
	if p.request == nil && !p.parse(line) {
		return nil
	}
	notes, bind := p.notes, p.bind
	if s.BindInfo.text != "" {
		notes = annotation.Bound{BindInfo: s.BindInfo.text, Isolation: s.Isolation}
	} else if bind == nil {
		line.refuse("pod %s has no podBindInfo, and no bind that it could accept; schedule it first, or write podBindInfo", p.id)
		return nil
	}
	at, slot := (*cell.Placement)(nil), 0
	if s.BindInfo.text == "" {
		at, slot = bind.Placement, bind.Slot
	} else if at, slot, err = annotation.ReadBound(p.request, notesOf(notes)); err != nil {
		line.refuse("%s", err)
		return nil
	}
	if have := at.Pods[slot].Node; s.Node != "" && s.Node != have {
		line.refuse("the pod is bound to %s, not to %s", have, s.Node)
		return nil
	}
	downgrades, err := r.core.Allocate(cell.PodID(p.id), p.request, at, slot)
	if err != nil {
		line.refuse("%s", err)
		return nil
	}
	r.accept(p, notes, slot)
	r.changed(downgrades, line)
	return nil
}

// accept stores a pod with its annotations, as an API server does.
func (r *Stepper) accept(p *replayPod, notes annotation.Bound, slot int) {
	p.notes, p.slot, p.bind, p.at = notes, slot, nil, len(r.accepted)
	r.accepted = append(r.accepted, p)
}

func (r *Stepper) forget(p *replayPod) {
	if p.at < 0 {
		return
	}
	r.accepted[p.at] = nil
	p.at = -1
	if r.gone++; r.gone*2 > len(r.accepted) {
		r.compact()
	}
}

func (r *Stepper) compact() {
	kept := r.accepted[:0]
	for _, p := range r.accepted {
		if p != nil {
			p.at = len(kept)
			kept = append(kept, p)
		}
	}
	clear(r.accepted[len(kept):])
	r.accepted, r.gone = kept, 0
}

func notesOf(b annotation.Bound) map[string]string {
	out := map[string]string{}
	for key, value := range map[string]string{annotation.IsolationKey: b.Isolation, annotation.BindInfoKey: b.BindInfo, annotation.PlacementKey: b.Placement} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}

func (s *deleteStep) run(r *Stepper, line *Line) error {
	p, err := r.pod(s.Pod, s.Spec.text, line)
	if err != nil {
		return err
	}
	if s.Op == "deleteAllocatedPod" {
		r.deleteAllocated(p, line)
	} else {
		r.deleteUnallocated(p, line)
	}
	return nil
}

func (r *Stepper) deleteAllocated(p *replayPod, line *Line) {
	downgrades, known := r.core.DeleteAllocated(cell.PodID(p.id))
	switch {
	case !known && p.at < 0:
		line.refuse("pod %s is not allocated; only pods accepted by addAllocatedPod can be deleted this way", p.id)
		return
	case !known:
		line.Reason = "the scheduler didn't know it"
	}
	r.forget(p)
	p.bind, p.request = nil, nil
	r.changed(downgrades, line)
}

func (r *Stepper) deleteUnallocated(p *replayPod, line *Line) {
	if p.at >= 0 {
		line.refuse("pod %s is allocated; delete it with deleteAllocatedPod", p.id)
		return
	}
	if p.request == nil && !p.parse(line) {
		return
	}
	downgrades := r.core.DeleteUnallocated(cell.PodID(p.id), p.request)
	p.bind, p.request = nil, nil
	r.changed(downgrades, line)
}

// changed reports gangs whose guarantee changed. It also updates the annotations of their pods for the next restart.
func (r *Stepper) changed(downgrades []cell.Downgrade, line *Line) {
	for _, d := range downgrades {
		c := ChangedGang{VC: d.VC, Group: d.Gang, Pods: []string{}, Reason: d.Reason}
		for _, id := range d.Pods {
			c.Pods = append(c.Pods, string(id))
			if p := r.pods[string(id)]; p != nil && d.Placement != nil {
				p.notes.Placement = annotation.WritePlacement(d.Placement, p.slot)
			}
		}
		if d.Restored {
			line.Restored = withGang(line.Restored, c)
		} else {
			line.Downgraded = withGang(line.Downgraded, c)
		}
	}
}

// withGang adds a gang to the list. If the list already contains the gang, withGang adds only the gang's pods, because a
// restart reports each pod separately.
func withGang(list []ChangedGang, c ChangedGang) []ChangedGang {
	for i := range list {
		if list[i].VC != c.VC || list[i].Group != c.Group {
			continue
		}
		for _, pod := range c.Pods {
			if !slices.Contains(list[i].Pods, pod) {
				list[i].Pods = append(list[i].Pods, pod)
			}
		}
		return list
	}
	return append(list, c)
}
