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

// state is the state of the leader. Its methods are called with the lock of Store.
type state struct {
	core  *cell.Scheduler
	types []cell.Type // the types of the configuration
	pods  map[types.UID]*pod
	gangs map[gangKey]*gang
	// claims are the places recorded in claims: claims that existed when the state was built, and claims written since.
	claims map[types.UID]claim.Place
	// postponed are gangs that lose their guarantee when another gang has passed its trial.
	postponed map[gangKey]postponed
	evicting  eviction
	// unfinished has the remaining parts of the check of a gang.
	unfinished []remainder
	left       map[gangKey]place // in the queue, of gangs that lost their pods while they waited
	nodes      map[string]*node
	// coming has, by node, the pods that Beside checks: all that are to run there, and some that were.
	coming map[string][]*pod
	places *places
	// listed is the resource version of the list for this state: older pods belong to an earlier term.
	listed string
	// pruned is when expired places were last forgotten, swept when the state was last compared with the informer,
	// claimsChecked when it was last compared with the claims, refreshed when all gangs were last searched for without a
	// change.
	pruned, swept, claimsChecked, refreshed time.Time
	// epoch grows with every change that may let a gang start that couldn't before.
	epoch      uint64
	generation int64
	// admitted are nodes that pods with some constraints may run on, for one state of all nodes.
	admitted map[string]nodeSet
	// round is the epoch when the last round of a turn began: each round tries every gang of the turn once. goesOn
	// means that the round continues in the next pass.
	round  map[turn]uint64
	goesOn map[turn]bool
	// whole has the turns of guaranteed gangs that were completed since the last turn of opportunistic gangs.
	whole map[turn]bool
	// seconds is the number of passes in which opportunistic gangs have waited for complete turns of guaranteed gangs.
	seconds int
	// reserves is how long a guaranteed gang waits until free cells are held for it; if it is negative, cells are never
	// held. reserving are the gangs that cells are held for.
	reserves  time.Duration
	reserving map[gangKey]bool
	// reservation returns the gang whose reservation kept a gang from starting in the last pass; nil if there is no such gang, or before
	// the first pass.
	reservation func(*queue.Gang) *queue.Gang
	// grace is how long a gang waits for pods that don't exist yet.
	grace time.Duration
	// served are the schedulers whose pods these are; nil: all.
	served []string

	log   *slog.Logger
	say   func(object runtime.Object, kind, reason, text string) // an event
	todo  func(task)
	now   func() time.Time
	count *counters
}

// pod is a pod that requests cells. Its state is api.Waiting or another state of that package.
type pod struct {
	uid     types.UID
	key     string // namespace/name
	object  *corev1.Pod
	request *cell.Request // nil if it can't be read
	// preferred is its request from its annotation; request is the preferred request or its alternative.
	preferred *cell.Request
	// class is equal for pods of one gang, and differs for pods whose gangs only share a name.
	class string
	// limits name the constraints on the nodes where it may run.
	limits string
	gang   *gang
	state  string
	// reason is the latest reason that it received.
	reason string
	// node and slot are its place if it is Binding or Bound.
	node    string
	indices []int32
	slot    int
	bound   annotation.Bound
	// retold means that BindInfoKey, or the details, have changed since, too.
	retold bool
	// details are the details on its claim, without its node and GPUs, if it expects one.
	details []byte
	// assumed is when it got its place. permitted means that kube-scheduler can bind the pod there; sent, that the binding
	// was sent, and its outcome isn't known; claimed, that its claim is written.
	assumed                  time.Time
	permitted, claimed, sent bool
	// wrote means that its claim was written at least once since it got its place.
	wrote bool
	// claimError explains why its claim couldn't be written.
	claimError string
	// unbound is how often it, or its gang, had a place and wasn't bound. It doesn't get another place before pause.
	unbound int
	pause   time.Time
	// trial is the node for which kube-scheduler checks, since assumed, whether the pod could run if other pods were
	// evicted; could is the node for which kube-scheduler found that it could.
	trial, could string
	// told and toldAt describe the last event; evicted is when it was chosen as a victim, preemptor the pod whose node is short
	// of other resources than cells, or "" if it is evicted for cells.
	told      string
	toldAt    time.Time
	evicted   time.Time
	preemptor types.UID
	by        *gang // the gang for which it is evicted
	// seen is its claim when it was last correct; doubted means that it was wrong at the last check.
	seen    *resourceapi.ResourceClaim
	doubted bool
	// lost means that its claim is gone, or empty, and not written again yet. doubt explains why the pod may have other GPUs than its
	// claim.
	lost  bool
	doubt string
	// missing means that the informer has received all events up to the version of the pod that the state has, and doesn't have the pod.
	missing bool
}

// gangKey names a gang; its name is unique in its virtual cluster.
type gangKey struct{ vc, name string }

// gang holds the existing pods of a gang.
type gang struct {
	gangKey
	pods       []*pod    // in order of arrival
	downgraded time.Time // zero if it has its guarantee
	preempted  bool      // one of its pods was evicted
	queued     time.Time // before it lost all of its pods; zero if it didn't
	arrived    time.Time // when its last pod was created, by our clock
	// searched is the epoch of the last search that found no place for it, and attempt is the result of that search.
	// searched is 0 if there was no search.
	searched uint64
	attempt  queue.Attempt
	// claims is how many of its pods expect their GPUs in a claim.
	claims int
	// gathered is closed when the claims of all its pods that are to be bound are written; nil while no pod waits for these claims.
	gathered chan struct{}
	// unpermitted is the index of a pod that kube-scheduler can't bind yet, or the index at which the search for such a pod begins;
	// unwritten is the same for a pod whose claim isn't written.
	unpermitted, unwritten int
	// moved is when the claim of one of its pods was last written for the first time, or a pod was last bound.
	moved time.Time
	// refused are nodes that couldn't run one of its pods, with the time when the refusal ends.
	refused map[string]time.Time
	// refusal names the last such node, and the reason.
	refusal string
	// refusals is how often that happened since one of its pods was last bound. Until calm, the gang evicts no other gangs for cells.
	refusals int
	calm     time.Time
	// held means that it wasn't tried, since free cells are held for another gang.
	held bool
}

// place is the position in the queue of a gang that has no pods. A gang of another shape belongs to another job with
// the same name.
type place struct {
	since, lost time.Time
	shape       []cell.PodSet
}

// placeKept is how long a gang without pods keeps its position. A job controller creates a deleted pod again within
// seconds, or minutes if it waits between two attempts.
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

// first returns the pod that represents the gang in requests to the core: the first one without a place.
func (g *gang) first() *pod {
	for _, p := range g.pods {
		if p.state == api.Waiting || p.state == api.Preempting {
			return p
		}
	}
	return g.pods[0]
}

// ours reports whether this scheduler is to bind a pod, or whether the pod is bound.
func (s *state) ours(obj *corev1.Pod) bool {
	return s.served == nil || obj.Spec.NodeName != "" || slices.Contains(s.served, obj.Spec.SchedulerName)
}

// add adds a pod, as Waiting.
func (s *state) add(obj *corev1.Pod) *pod {
	p := &pod{uid: obj.UID, key: podKey(obj), object: obj, state: api.Waiting}
	s.pods[p.uid] = p
	s.parse(p)
	return p
}

// parse reads the pod's request, and puts it into its gang.
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
		return cmp.Or(a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time), cmp.Compare(a.key, b.key), -1) // behind its equals
	})
	p.gang.pods = slices.Insert(p.gang.pods, at, p)
	p.gang.arrived, p.gang.searched = s.now(), 0
	if Claims(p.object) {
		p.gang.claims++
	}
}

// read reads the request and the constraints of a pod.
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

// remove forgets a pod and releases its cells.
func (s *state) remove(p *pod) {
	s.keepPlace(p)
	s.release(p)
	s.leaveGang(p)
	delete(s.pods, p.uid)
	delete(s.claims, p.uid)
}

// keepPlace records the position in the queue of a gang that loses its last pod before it ran.
func (s *state) keepPlace(p *pod) {
	now := s.now()
	if now.Sub(s.pruned) > time.Minute { // many gangs may be evicted at a time
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

// release releases the resources that the core keeps for a pod.
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

// classOf returns a text of the properties that all pods of one gang share.
func classOf(r *cell.Request) string {
	text := fmt.Sprintf("%q %d %q %q %q %q %t %t %s", r.VirtualCluster, r.Priority, r.PinnedCell, r.LeafType, r.User, r.UserGroup,
		r.LazyPreemption, r.OnlySuggested, shapeOf(&r.Root))
	if r.Alternative != nil {
		text += " or " + classOf(r.Alternative)
	}
	return text
}

// shapeOf returns a text of the shape of a group, without its name.
func shapeOf(g *cell.Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "(%q%v", g.Within, g.Pods)
	for i := range g.Children {
		b.WriteString(shapeOf(&g.Children[i]))
	}
	b.WriteString(")")
	return b.String()
}

// apply reports to pods that their gang lost its guarantee, or has it again.
func (s *state) apply(downgrades []cell.Downgrade) {
	for i := range downgrades {
		d := &downgrades[i]
		key := gangKey{d.VC, d.Gang}
		if _, postponed := s.postponed[key]; postponed {
			delete(s.postponed, key)
			if d.Restored {
				continue // the loss of its guarantee was never reported
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

// retell updates a pod's annotations to a placement. Its PlacementKey has to match the places in BindInfoKey, which
// changes when a pod of the gang moves.
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

// postpone is like apply, for a gang that is on trial: other gangs get the event about their lost guarantee only when it could run.
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

// applyPostponed applies the downgrades that were postponed for a gang.
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

// postponed is a loss of the guarantee for a gang that is on trial.
type postponed struct {
	by   *gang
	what cell.Downgrade
}

// tell sends an event to a pod if the event is new.
func (s *state) tell(p *pod, kind, reason, text string) {
	now := s.now()
	told := reason + ": " + text
	if told == p.told || reason == api.ReasonWaiting && now.Sub(p.toldAt) < quiet && p.told != "" {
		return
	}
	p.told, p.toldAt = told, now
	s.say(p.object, kind, reason, text)
}

// quiet is how long a waiting pod gets no further event with a new reason: the numbers in it change all the time.
const quiet = 30 * time.Second

func podKey(obj *corev1.Pod) string { return obj.Namespace + "/" + obj.Name }

func completed(obj *corev1.Pod) bool {
	return obj.Status.Phase == corev1.PodSucceeded || obj.Status.Phase == corev1.PodFailed
}

// Wants reports whether a pod requests cells: one of its containers has a limit of EnableKey.
func Wants(obj *corev1.Pod) bool {
	has := func(list []corev1.Container) bool {
		return slices.ContainsFunc(list, func(c corev1.Container) bool {
			q, ok := c.Resources.Limits[annotation.EnableKey]
			return ok && q.Sign() > 0
		})
	}
	return has(obj.Spec.Containers) || has(obj.Spec.InitContainers)
}
