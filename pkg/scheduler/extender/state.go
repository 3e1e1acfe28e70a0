package extender

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// state is what the leader knows. Its methods are called with the lock of Extender.
type state struct {
	core  *cell.Scheduler
	types []cell.Type // of the configuration
	pods  map[types.UID]*pod
	named map[string]*pod // by namespace/name
	gangs map[gangKey]*gang
	left  map[gangKey]place // in the queue, of gangs that lost their pods while they waited
	nodes map[string]*node
	// pruned is when places that were not claimed again were forgotten last.
	pruned time.Time
	// freed is when cells became free last, woken until when that was looked at, looked when.
	freed, woken, looked time.Time
	generation           int64

	log    *slog.Logger
	events record.EventRecorder
	todo   func(task)
	now    func() time.Time
	count  *counters
}

// pod is a pod that asks for GPUs. state is one of api.Waiting and so on.
type pod struct {
	uid     types.UID
	key     string // namespace/name
	object  *corev1.Pod
	request *cell.Request // nil if it can't be read
	gang    *gang
	state   string
	// reason is what it was told last, asked when kube-scheduler asked last, touched when it was made to.
	reason         string
	asked, touched time.Time
	// place and slot are its place if it is Binding or Bound.
	node     string
	indices  []int32
	slot     int
	bound    annotation.Bound
	attempts int
	// told and toldAt are of the last event; evicted is when it was chosen as a victim.
	told    string
	toldAt  time.Time
	evicted time.Time
}

// gangKey names a gang; its name is unique in its virtual cluster.
type gangKey struct{ vc, name string }

// gang is the pods of a gang that are there.
type gang struct {
	gangKey
	pods       []*pod    // in order of arrival
	downgraded time.Time // zero if it has its guarantee
	preempted  bool      // one of its pods was evicted
	queued     time.Time // before it lost all of its pods; zero if it didn't
}

// place is the place in the queue of a gang that has no pods. One of another shape is another job, which only
// has the same name.
type place struct {
	since, lost time.Time
	shape       []cell.PodSet
}

// placeKept is how long a gang without pods keeps its place. A job controller makes a pod again that something
// deleted within seconds, or minutes where it waits between two attempts.
const placeKept = 10 * time.Minute

// waiting are the pods without a place.
func (g *gang) waiting() int {
	n := 0
	for _, p := range g.pods {
		if p.state == api.Waiting || p.state == api.Preempting {
			n++
		}
	}
	return n
}

func (g *gang) since() time.Time {
	at := g.queued
	for _, p := range g.pods {
		if t := p.object.CreationTimestamp.Time; at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// first is the pod that stands for the gang in questions to the core: the first one without a place.
func (g *gang) first() *pod {
	for _, p := range g.pods {
		if p.state == api.Waiting || p.state == api.Preempting {
			return p
		}
	}
	return g.pods[0]
}

// asked returns the first pod that waits and that kube-scheduler has asked about; nil if there is none. One that it hasn't,
// such as a pod with a scheduling gate, says nothing about what the others could do.
func (g *gang) asked() *pod {
	for _, p := range g.pods {
		if (p.state == api.Waiting || p.state == api.Preempting) && !p.asked.IsZero() {
			return p
		}
	}
	return nil
}

// add makes a pod known, as Waiting.
func (s *state) add(obj *corev1.Pod) *pod {
	p := &pod{uid: obj.UID, key: podKey(obj), object: obj, state: api.Waiting}
	s.pods[p.uid], s.named[p.key] = p, p
	s.parse(p)
	return p
}

// parse reads the pod's request, and puts it into its gang.
func (s *state) parse(p *pod) {
	request, err := annotation.ParseRequest(p.object.Annotations[annotation.SpecKey], p.key)
	if err != nil {
		p.reason = err.Error()
		return
	}
	request.User = p.object.Labels[api.UserLabel]
	request.UserGroup = p.object.Labels[api.UserGroupLabel]
	p.request, p.reason = request, ""
	key := gangKey{request.VirtualCluster, request.Gang}
	p.gang = s.gangs[key]
	if p.gang == nil {
		p.gang = &gang{gangKey: key}
		if was := s.left[key]; s.now().Sub(was.lost) <= placeKept && slices.Equal(was.shape, request.Sets()) {
			p.gang.queued = was.since
		}
		delete(s.left, key)
		s.gangs[key] = p.gang
	}
	p.gang.pods = append(p.gang.pods, p)
	slices.SortStableFunc(p.gang.pods, func(a, b *pod) int {
		return cmp.Or(a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time), cmp.Compare(a.key, b.key))
	})
}

// remove forgets a pod and gives its cells back.
func (s *state) remove(p *pod) {
	s.keepPlace(p)
	s.release(p)
	s.leaveGang(p)
	delete(s.pods, p.uid)
	if s.named[p.key] == p {
		delete(s.named, p.key)
	}
}

// keepPlace notes the place in the queue of a gang that loses its last pod before it ran.
func (s *state) keepPlace(p *pod) {
	now := s.now()
	if now.Sub(s.pruned) > time.Minute { // many gangs may go at a time
		maps.DeleteFunc(s.left, func(_ gangKey, was place) bool { return now.Sub(was.lost) > placeKept })
		s.pruned = now
	}
	if g := p.gang; g != nil && len(g.pods) == 1 && g.waiting() == 1 {
		s.left[g.gangKey] = place{g.since(), now, p.request.Sets()}
	}
}

func (s *state) leaveGang(p *pod) {
	g := p.gang
	if g == nil {
		return
	}
	g.pods = slices.DeleteFunc(g.pods, func(o *pod) bool { return o == p })
	if len(g.pods) == 0 {
		delete(s.gangs, g.gangKey)
	}
	p.gang, p.request = nil, nil
}

// release gives back what the core keeps for a pod.
func (s *state) release(p *pod) {
	switch p.state {
	case api.Binding, api.Bound:
		downgrades, _ := s.core.DeleteAllocated(cell.PodID(p.uid))
		s.apply(downgrades)
	case api.Waiting, api.Preempting:
		if p.request != nil {
			s.apply(s.core.DeleteUnallocated(cell.PodID(p.uid), p.request))
		}
	}
	s.freed = s.now()
	p.state, p.node, p.indices, p.bound = api.Waiting, "", nil, annotation.Bound{}
}

// apply tells pods that their gang lost its guarantee, or has it again.
func (s *state) apply(downgrades []cell.Downgrade) {
	for i := range downgrades {
		d := &downgrades[i]
		reason, text := api.ReasonDowngraded, "the gang keeps running without its guarantee: "+d.Reason
		if d.Restored {
			reason, text = api.ReasonRestored, "the gang has its guarantee again"
		}
		if g := s.gangs[gangKey{d.VC, d.Gang}]; g != nil {
			g.downgraded = s.now()
			if d.Restored {
				g.downgraded = time.Time{}
			}
		}
		s.count.downgrade(d)
		s.log.Info("a gang's guarantee changed", "vc", d.VC, "gang", d.Gang, "restored", d.Restored, "reason", d.Reason)
		for _, uid := range d.Pods {
			p := s.pods[types.UID(uid)]
			if p == nil {
				continue
			}
			p.bound.Placement = annotation.WritePlacement(d.Placement, p.slot)
			if p.state == api.Bound {
				s.todo(task{annotate, p.uid})
			}
			s.events.Event(p.object, corev1.EventTypeNormal, reason, text)
		}
	}
}

// tell sends an event to a pod if it says something new.
func (s *state) tell(p *pod, kind, reason, text string) {
	now := s.now()
	told := reason + ": " + text
	if told == p.told || reason == api.ReasonWaiting && now.Sub(p.toldAt) < quiet && p.told != "" {
		return
	}
	p.told, p.toldAt = told, now
	s.events.Event(p.object, kind, reason, text)
}

// quiet is for how long a pod that waits isn't told another reason: numbers in it change all the time.
const quiet = 30 * time.Second

func podKey(obj *corev1.Pod) string { return obj.Namespace + "/" + obj.Name }

func completed(obj *corev1.Pod) bool {
	return obj.Status.Phase == corev1.PodSucceeded || obj.Status.Phase == corev1.PodFailed
}

// wantsGPUs reports whether a pod is ours: one of its containers has a limit of EnableKey.
func wantsGPUs(obj *corev1.Pod) bool {
	has := func(list []corev1.Container) bool {
		return slices.ContainsFunc(list, func(c corev1.Container) bool {
			q, ok := c.Resources.Limits[annotation.EnableKey]
			return ok && q.Sign() > 0
		})
	}
	return has(obj.Spec.Containers) || has(obj.Spec.InitContainers)
}
