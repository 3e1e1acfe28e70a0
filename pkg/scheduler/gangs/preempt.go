package gangs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	// evictAtOnce is how many pods are evicted before the lock is released for other requests.
	evictAtOnce = 2000
	// evictAgain is how long after its eviction an existing victim is evicted again. By then the victim should be gone, or its
	// task should have been retried.
	evictAgain = time.Minute
)

// eviction holds the victims of a gang that aren't evicted yet. It belongs to one reservation. If the gang loses or changes the
// reservation, the remaining pods aren't evicted.
type eviction struct {
	by    *gang
	order uint64 // the order of the reservation
	left  []cell.Victim
}

// preempt starts or continues the eviction of pods from a gang's reserved cells.
func (s *state) preempt(g *gang, ready []*pod) {
	s.applyPostponed(g)
	victims := s.core.VictimsOf(g.vc, g.name)
	var gangs few
	for i, v := range victims {
		if i == 0 || v.Gang != victims[i-1].Gang || v.VC != victims[i-1].VC {
			gangs.add(v.VC, v.Gang)
		}
	}
	reason := fmt.Sprintf("%s of %s must stop first", plural.Of(len(victims), "pod"), &gangs)
	for _, p := range ready {
		p.state, p.reason = api.Preempting, reason
		s.tell(p, corev1.EventTypeNormal, api.ReasonPreempting, reason)
	}
	status, _ := s.core.Brief(g.vc, g.name)
	s.evicting = eviction{g, status.Order, victims}
	s.evictPart()
}

// evictPart evicts the next victims, and reports whether any victims remain.
//
// Between two parts, the lock is released and the state may change. Decisions are excluded, because Decide continues only after
// the last part. Pods that have ended are skipped. If the pod that needs the cells was deleted, or the configuration changed,
// the reservation no longer exists. The remaining victims then continue to run. Evicted victims that haven't been deleted yet
// also continue to run (see mustGo). After the state is rebuilt, the next pass begins again with a trial.
func (s *state) evictPart() (more bool) {
	e := &s.evicting
	status, ok := s.core.Brief(e.by.vc, e.by.name)
	if !ok || status.State != preempting || status.Order != e.order || s.gangs[e.by.gangKey] != e.by {
		e.left = nil
	}
	n := min(evictAtOnce, len(e.left))
	for _, v := range e.left[:n] {
		victim := s.pods[types.UID(v.Pod)]
		if victim == nil || victim.by == e.by && s.now().Sub(victim.evicted) < evictAgain {
			continue
		}
		s.evict(victim, e.by.first(), "")
	}
	e.left = e.left[n:]
	return len(e.left) > 0
}

func (b *Store) evictRest() {
	for more := true; more; {
		more = false
		b.locked(func(s *state) { more = len(s.evicting.left) > 0 && s.evictPart() })
	}
}

// evict records that a victim must end for pod p, and schedules the victim's deletion.
func (s *state) evict(victim, p *pod, preemptor types.UID) {
	if victim.evicted.IsZero() {
		s.count.preempt(victim.gang)
		s.log.Info("preempting", "pod", victim.key, "vc", victim.request.VirtualCluster, "gang", victim.request.Gang, "for", p.key)
		s.tell(victim, corev1.EventTypeNormal, api.ReasonPreempted,
			fmt.Sprintf("makes room for the gang %s of virtual cluster %s", p.request.Gang, p.request.VirtualCluster))
		victim.evicted, victim.preemptor = s.now(), preemptor
	}
	victim.by = p.gang
	s.todo(task{evict, victim.uid})
}

// mayEnd reports whether gang g may evict the gang victim. The victim must run without a guarantee, or must have a lower
// priority in the same virtual cluster.
func (s *state) mayEnd(g, victim *gang) bool {
	priority := g.first().request.Priority
	status, ok := s.core.Brief(victim.vc, victim.name)
	if !ok || priority < cell.MinGuaranteed {
		return false
	}
	return status.Priority < cell.MinGuaranteed || status.Downgraded || victim.vc == g.vc && status.Priority < priority
}

// makeRoom evicts the gangs of the victims on the node of a pod's place.
func (s *state) makeRoom(p *pod, victims []types.UID) {
	var ended []*gang
	var gangs few
	for _, uid := range victims {
		v := s.pods[uid]
		if v == nil || v.gang == nil || !s.mayEnd(p.gang, v.gang) {
			continue
		}
		if !slices.Contains(ended, v.gang) {
			ended = append(ended, v.gang)
			gangs.add(v.gang.vc, v.gang.name)
		}
		for _, member := range v.gang.pods {
			if member.state == api.Bound {
				s.evict(member, p, p.uid)
			}
		}
	}
	if len(ended) == 0 {
		return
	}
	p.reason = fmt.Sprintf("%s is short of processors or memory: %s must stop first", p.node, &gangs)
	s.tell(p, corev1.EventTypeNormal, api.ReasonPreempting, p.reason)
	for _, member := range p.gang.pods {
		if member.state == api.Binding {
			member.assumed = s.now() // the time restarts while victims end, which may take their grace period
		}
	}
}

// few collects the names of the first few gangs, in order, and counts the other gangs.
type few struct {
	names []string
	more  int
}

func (f *few) add(vc, name string) {
	const most = 5
	text := vc + "/" + name
	at, _ := slices.BinarySearch(f.names, text)
	if f.names = slices.Insert(f.names, at, text); len(f.names) > most {
		f.names = f.names[:most]
		f.more++
	}
}

func (f *few) String() string {
	names := f.names
	if f.more > 0 {
		names = append(slices.Clip(names), plural.Of(f.more, "more gang"))
	}
	return strings.Join(names, ", ")
}
