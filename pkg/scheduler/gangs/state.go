package gangs

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

// state is the state of the leader. Callers of its methods hold the lock of Store.
type state struct {
	core  *cell.Scheduler
	types []cell.Type // the cell types of the configuration
	pods  map[types.UID]*pod
	gangs map[gangKey]*gang
	// claims are the places on claims, by the UID of the pod. They come from claims that existed when the state was built, and
	// from claims that were written later.
	claims map[types.UID]claim.Place
	// postponed are the gangs that lose their guarantee if another gang passes its trial.
	postponed  map[gangKey]postponed
	evicting   eviction
	unfinished []remainder
	left       map[gangKey]place // the positions in the queue of gangs that lost their pods while they waited
	nodes      map[string]*node
	// coming holds the pods for Beside, by node. It contains all pods that will run on the node, and some outdated pods.
	coming map[string][]*pod
	places *places
	// listed is the resource version of the list from which this state was built. Older pods belong to the term of an earlier
	// leader.
	listed string
	// pruned is when expired queue positions were last dropped. swept is when the state was last compared with the informer's
	// pods. claimsChecked is when the state was last compared with the claims. refreshed is when places were last searched for
	// all gangs without a change.
	pruned, swept, claimsChecked, refreshed time.Time
	// epoch increases with every change that may let more gangs start.
	epoch      uint64
	generation int64
	// admitted caches the nodes that pods with certain constraints may run on. It is valid until any node changes.
	admitted map[string]nodeSet
	// round is the epoch when the last round of a turn began. Each round tries every gang of the turn once. goesOn means that
	// the round continues in the next pass.
	round  map[turn]uint64
	goesOn map[turn]bool
	// whole contains the turns of guaranteed gangs that were completely tried since the last turn of opportunistic gangs.
	whole map[turn]bool
	// seconds is the number of passes in which opportunistic gangs have waited for guaranteed gangs.
	seconds int
	// reserves is how long a guaranteed gang waits until free cells are held for it. If it is negative, cells are never held.
	// reserving contains the gangs for which cells are held.
	reserves  time.Duration
	reserving map[gangKey]bool
	// reservation returns the gang whose reservation prevented a gang from starting in the last pass, or nil. The function is
	// nil before the first pass.
	reservation func(*queue.Gang) *queue.Gang
	// grace is how long a gang waits for missing pods.
	grace time.Duration
	// served are the names of the schedulers whose pods the state contains. nil means all schedulers.
	served []string

	log   *slog.Logger
	say   func(object runtime.Object, kind, reason, text string) // records an event
	todo  func(task)
	now   func() time.Time
	count *counters
}

// pod is a pod that requests cells. Its state is one of the states in package api, such as api.Waiting.
type pod struct {
	uid     types.UID
	key     string // namespace/name
	object  *corev1.Pod
	request *cell.Request // nil if the request can't be read
	// preferred is the request in the pod's annotation. request is either the preferred request or its alternative.
	preferred *cell.Request
	// class is equal for pods of the same gang. It differs for pods of different gangs with the same name.
	class string
	// limits identifies the constraints on the nodes that may run the pod.
	limits string
	gang   *gang
	state  string
	// reason is the latest reason for the pod's state.
	reason string
	// node and slot are the pod's place if its state is Binding or Bound.
	node    string
	indices []int32
	slot    int
	bound   annotation.Bound
	// retold means that BindInfoKey or the details on the claim have also changed.
	retold bool
	// details are the details of the place on the pod's claim, without node and GPUs.
	details []byte
	// assumed is when the pod got its place. permitted means that kube-scheduler can bind the pod there. claimed means that the
	// pod's claim is written. sent means that the binding was sent and its result is unknown.
	assumed                  time.Time
	permitted, claimed, sent bool
	// wrote means that the pod's claim was written at least once since the pod got its place.
	wrote bool
	// claimError explains why the pod's claim couldn't be written.
	claimError string
	// unbound is how often the pod or its gang had a place and wasn't bound. The pod gets no other place before pause.
	unbound int
	pause   time.Time
	// trial is the node for which kube-scheduler checks whether the pod could run after evictions. The check began at assumed.
	// could is the node for which kube-scheduler found that the pod could run.
	trial, could string
	// told and toldAt are the text and the time of the last event. evicted is when the pod was chosen as a victim. preemptor is
	// the pod that needs resources other than cells on the node. It is "" if the pod is evicted for its cells.
	told      string
	toldAt    time.Time
	evicted   time.Time
	preemptor types.UID
	by        *gang // the gang for which the pod is evicted
	// seen is the pod's claim when it was last correct. doubted means that the claim was wrong in the last check.
	seen    *resourceapi.ResourceClaim
	doubted bool
	// lost means that the pod's claim is gone or empty, and isn't written again yet. doubt explains why the pod may have other
	// GPUs than its claim.
	lost  bool
	doubt string
	// missing means that the informer doesn't contain the pod, although it has received all events up to the known version of
	// the pod.
	missing bool
}

// gangKey identifies a gang by its virtual cluster and its name.
type gangKey struct{ vc, name string }

// gang holds the existing pods of a gang.
type gang struct {
	gangKey
	pods       []*pod    // in order of arrival
	downgraded time.Time // when the gang lost its guarantee; zero if it has the guarantee
	preempted  bool      // whether one of the gang's pods was evicted
	queued     time.Time // the time since which the gang waited before it lost all of its pods; zero if it didn't lose them
	arrived    time.Time // when the gang's last pod was created, by our clock
	// searched is the epoch of the last unsuccessful search for the gang, or 0. attempt is the result of that search.
	searched uint64
	attempt  queue.Attempt
	// claims is the number of the gang's pods that expect their GPUs in a claim.
	claims int
	// gathered is closed when the claims of all pods in the current binding are written. It is nil while no pod waits for these
	// claims.
	gathered chan struct{}
	// unpermitted is the index of a pod that kube-scheduler can't bind yet, or the index at which the search for such a pod
	// starts. unwritten is the same for a pod whose claim isn't written.
	unpermitted, unwritten int
	// moved is when a claim of the gang was last written for the first time, or when a pod of the gang was last bound.
	moved time.Time
	// refused contains the nodes that couldn't run one of the gang's pods, and the time until which the gang avoids each node.
	refused map[string]time.Time
	// refusal describes the last refused node and the reason.
	refusal string
	// refusals is the number of refused nodes since one of the gang's pods was last bound. Until calm, the gang doesn't evict
	// other gangs for their cells.
	refusals int
	calm     time.Time
	// held means that the gang wasn't tried because free cells are held for another gang.
	held bool
}

// place is the queue position of a gang without pods. A gang with a different shape belongs to a different job with the same
// name.
type place struct {
	since, lost time.Time
	shape       []cell.PodSet
}

// placeKept is how long a gang without pods keeps its queue position. A job controller recreates a deleted pod within seconds,
// or within minutes if it waits between two attempts.
const placeKept = 10 * time.Minute

// waiting returns the number of pods without a place.
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

// first returns the pod that represents the gang in requests to package cell. It is the first pod without a place. If all pods
// have a place, it is the first pod.
func (g *gang) first() *pod {
	for _, p := range g.pods {
		if p.state == api.Waiting || p.state == api.Preempting {
			return p
		}
	}
	return g.pods[0]
}

// ours reports whether this scheduler binds a pod, or the pod is already bound.
func (s *state) ours(obj *corev1.Pod) bool {
	return s.served == nil || obj.Spec.NodeName != "" || slices.Contains(s.served, obj.Spec.SchedulerName)
}

// add adds a pod in the state Waiting.
func (s *state) add(obj *corev1.Pod) *pod {
	p := &pod{uid: obj.UID, key: podKey(obj), object: obj, state: api.Waiting}
	s.pods[p.uid] = p
	s.parse(p)
	return p
}

// parse reads the pod's request, and adds the pod to its gang.
func (s *state) parse(p *pod) {
	if err := p.read(); err != nil {
		p.reason = err.Error()
		if p.object.Spec.NodeName == "" {
			s.tell(p, corev1.EventTypeWarning, api.ReasonRefused, p.reason)
		}
		return
	}
	request := p.request
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
	at, _ := slices.BinarySearchFunc(p.gang.pods, p, func(a, b *pod) int {
		return cmp.Or(a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time), cmp.Compare(a.key, b.key), -1) // after equal pods
	})
	p.gang.pods = slices.Insert(p.gang.pods, at, p)
	p.gang.arrived, p.gang.searched = s.now(), 0
	if Claims(p.object) {
		p.gang.claims++
	}
}

func (p *pod) read() error {
	request, err := annotation.ParseRequest(p.object.Annotations[annotation.SpecKey], p.key)
	if err != nil {
		return err
	}
	for r := request; r != nil; r = r.Alternative {
		r.User, r.UserGroup = p.object.Labels[api.UserLabel], p.object.Labels[api.UserGroupLabel]
	}
	p.preferred = request
	p.request, p.reason, p.class, p.limits = request, "", classOf(request), limitsOf(p.object).text()
	return nil
}

// remove removes a pod and releases its cells.
func (s *state) remove(p *pod) {
	s.keepPlace(p)
	s.release(p)
	s.leaveGang(p)
	delete(s.pods, p.uid)
	delete(s.claims, p.uid)
}

// keepPlace records the queue position of a gang that loses its last pod before it has run.
func (s *state) keepPlace(p *pod) {
	now := s.now()
	if now.Sub(s.pruned) > time.Minute { // many gangs may be evicted at once
		maps.DeleteFunc(s.left, func(_ gangKey, was place) bool { return now.Sub(was.lost) > placeKept })
		s.pruned = now
	}
	if g := p.gang; g != nil && len(g.pods) == 1 && g.waiting() == 1 {
		s.left[g.gangKey] = place{g.since(), now, p.preferred.Sets()}
	}
}

func (s *state) leaveGang(p *pod) {
	g := p.gang
	if g == nil {
		return
	}
	g.pods = slices.DeleteFunc(g.pods, func(o *pod) bool { return o == p })
	if Claims(p.object) {
		g.claims--
	}
	g.gather()
	if len(g.pods) == 0 {
		delete(s.gangs, g.gangKey)
	}
	p.gang, p.request, p.preferred = nil, nil, nil
}

// release releases the allocated or reserved cells of a pod.
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
	p.use(false)
	s.epoch++
	s.places.remove(p.uid)
	if p.state == api.Ignored {
		s.unblock(p)
	}
	p.state, p.node, p.indices, p.bound, p.details = api.Waiting, "", nil, annotation.Bound{}, nil
	p.permitted, p.claimed, p.wrote, p.sent, p.retold, p.claimError = false, false, false, false, false, ""
	p.trial, p.could = "", ""
	if p.gang != nil {
		p.gang.gather()
	}
}

// classOf returns a text with the common properties of all pods in a gang.
func classOf(r *cell.Request) string {
	text := fmt.Sprintf("%q %d %q %q %q %q %t %t %s", r.VirtualCluster, r.Priority, r.PinnedCell, r.LeafType, r.User, r.UserGroup,
		r.LazyPreemption, r.OnlySuggested, shapeOf(&r.Root))
	if r.Alternative != nil {
		text += " or " + classOf(r.Alternative)
	}
	return text
}

// shapeOf describes the shape of a group without the group's name.
func shapeOf(g *cell.Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "(%q%v", g.Within, g.Pods)
	for i := range g.Children {
		b.WriteString(shapeOf(&g.Children[i]))
	}
	b.WriteString(")")
	return b.String()
}

// apply reports to pods that their gang lost or regained its guarantee.
func (s *state) apply(downgrades []cell.Downgrade) {
	for i := range downgrades {
		d := &downgrades[i]
		key := gangKey{d.VC, d.Gang}
		if _, postponed := s.postponed[key]; postponed {
			delete(s.postponed, key)
			if d.Restored {
				continue // the loss of the guarantee was never reported
			}
		}
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
			p.retell(d.Placement)
			if at, ok := s.claims[p.uid]; ok {
				at.Details = p.details
				s.claims[p.uid] = at
			}
			if p.state == api.Bound {
				s.todo(task{annotate, p.uid})
			}
			s.say(p.object, corev1.EventTypeNormal, reason, text)
		}
	}
}

// retell updates a pod's annotations, or the details on its claim, to a placement. PlacementKey must match the places in
// BindInfoKey, which changes when a pod of the gang moves.
func (p *pod) retell(at *cell.Placement) {
	if Claims(p.object) {
		p.details, p.retold = annotation.WriteOwn(at, p.slot), true
		return
	}
	p.bound.Placement = annotation.WritePlacement(at, p.slot)
	if at.Moves > 0 {
		own := cell.Decision{Result: cell.Bind, Node: p.node, Indices: p.indices, Chain: at.Chain, Placement: at, Slot: p.slot}
		p.bound.BindInfo, p.retold = annotation.Write(p.request, &own).BindInfo, true
	}
}

// postpone works like apply for a gang on trial. Other gangs get the event about their lost guarantee only after a successful
// trial.
func (s *state) postpone(g *gang, downgrades []cell.Downgrade) {
	for i := range downgrades {
		d := downgrades[i]
		if d.Restored {
			s.apply(downgrades[i : i+1])
			continue
		}
		s.postponed[gangKey{d.VC, d.Gang}] = postponed{g, d}
	}
}

// applyPostponed applies the downgrades that were postponed because of a gang's trial.
func (s *state) applyPostponed(g *gang) {
	var due []cell.Downgrade
	for key, p := range s.postponed {
		if p.by == g {
			due = append(due, p.what)
			delete(s.postponed, key)
		}
	}
	s.apply(due)
}

// postponed is the downgrade of a gang because of another gang on trial.
type postponed struct {
	by   *gang
	what cell.Downgrade
}

// tell records an event about a pod if the event is new.
func (s *state) tell(p *pod, kind, reason, text string) {
	now := s.now()
	told := reason + ": " + text
	if told == p.told || reason == api.ReasonWaiting && now.Sub(p.toldAt) < quiet && p.told != "" {
		return
	}
	p.told, p.toldAt = told, now
	s.say(p.object, kind, reason, text)
}

// quiet is how long a waiting pod gets no event with a new reason, because the numbers in reasons change constantly.
const quiet = 30 * time.Second

func podKey(obj *corev1.Pod) string { return obj.Namespace + "/" + obj.Name }

func completed(obj *corev1.Pod) bool {
	return obj.Status.Phase == corev1.PodSucceeded || obj.Status.Phase == corev1.PodFailed
}

// RequestsCells reports whether a pod requests cells. Such a pod has a container with a limit for EnableKey.
func RequestsCells(obj *corev1.Pod) bool {
	has := func(list []corev1.Container) bool {
		return slices.ContainsFunc(list, func(c corev1.Container) bool {
			q, ok := c.Resources.Limits[annotation.EnableKey]
			return ok && q.Sign() > 0
		})
	}
	return has(obj.Spec.Containers) || has(obj.Spec.InitContainers)
}
