package gangs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	"github.com/openpai/paictl/pkg/scheduler/queue"
)

// Options are the settings of a Store.
type Options struct {
	// Namespace is the namespace of the ConfigMap.
	Namespace string
	// ConfigMap is the name of the ConfigMap. ConfigKey is the key of the configuration in HiveD's YAML.
	ConfigMap, ConfigKey string
	// Claims means that the cluster supports claims. kube-scheduler also watches claims then.
	Claims bool
	// Election is kube-scheduler's leader election. It is nil for a single replica.
	Election *Election
	// AccessFile contains the password for /metrics. TokenFile contains the token for the read-only API. If a path is empty,
	// reading requires no credentials.
	AccessFile, TokenFile string
	// Port is the port of the read-only API on other replicas.
	Port string
	// ReservationAfter is how long a guaranteed gang waits before free cells are held for it. 0 means queue.ReservationAfter. A
	// negative value means that cells are never held.
	ReservationAfter time.Duration
}

// Store holds the scheduler's state of pods, gangs and cells. Run watches the cluster, and makes decisions while this replica
// is the leader. API returns the handler for users. The methods in place.go are for the plugin.
type Store struct {
	client kubernetes.Interface
	opts   Options
	log    *slog.Logger
	now    func() time.Time
	events record.EventRecorder
	work   *work
	count  *counters
	queue  Queue
	// grace is gangGrace, except in tests.
	grace time.Duration
	// share is turnShare, except in tests.
	share time.Duration
	// served are the names of the schedulers that this program runs. nil means all schedulers.
	served []string

	pods, nodes, config cache.SharedIndexInformer
	// claims is nil if the cluster doesn't support claims.
	claims cache.SharedIndexInformer

	// validating has an element per running validation of a configuration. trying has an element per running outlook.
	validating, trying chan struct{}
	// binding limits the concurrent bindings.
	binding turns
	// changed contains an element if a change may let a gang start.
	changed chan struct{}

	// places has a separate lock, which is held only briefly. kube-scheduler reads places while it holds its own lock.
	places places

	// mu guards all fields below. It is locked before the lock of places. It is never held during a call of kube-scheduler,
	// because kube-scheduler calls Place with its own lock held.
	mu     sync.Mutex
	state  *state // nil while another replica leads
	said   []saying
	active *configuration
	// problem explains why the latest configuration was rejected. It is "" if active is the latest configuration.
	problem string
}

// Queue is kube-scheduler's scheduling queue.
type Queue interface {
	// Activate makes kube-scheduler process pods again.
	Activate(pods []*corev1.Pod)
	// Reject rejects pods that wait for other pods of their gang.
	Reject(pods []types.UID, reason string)
}

// New returns a Store without state. shared and kube belong to kube-scheduler. The creator of shared must start it. now is the
// clock.
func New(client kubernetes.Interface, shared informers.SharedInformerFactory, kube Queue, opts Options, log *slog.Logger, events record.EventRecorder, now func() time.Time) *Store {
	opts.ReservationAfter = cmp.Or(opts.ReservationAfter, queue.ReservationAfter)
	b := &Store{client: client, queue: kube, grace: gangGrace, share: turnShare, opts: opts, log: log, now: now, events: events, count: newCounters(),
		validating: make(chan struct{}, validations), trying: make(chan struct{}, trials), changed: make(chan struct{}, 1)}
	b.work = newWork(b)
	b.watch(shared)
	return b
}

// Serve sets the names of the schedulers that this program runs. It must be called before Run. Unbound pods of other schedulers
// are ignored, because this program can't bind them.
func (b *Store) Serve(names []string) { b.served = names }

const (
	// electionPoll is how often a replica checks whether it is the leader.
	electionPoll = 100 * time.Millisecond
	// lookAnyway is how often gangs are tried without a change, because some gangs wait only for a time.
	lookAnyway = time.Second
)

// Run watches the cluster until ctx ends, and makes decisions while this replica is the leader.
func (b *Store) Run(ctx context.Context) error {
	go b.config.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), b.pods.HasSynced, b.nodes.HasSynced, b.config.HasSynced) {
		return errors.New("stopped before pods, nodes and the configuration were read")
	}
	b.work.run(ctx)
	for {
		pause := electionPoll
		if b.opts.Election.Leads(0) {
			pause = b.turn(ctx)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		b.sleep(ctx)
	}
}

// sleep waits for a change, for at most lookAnyway. It returns at once if this replica isn't the leader.
func (b *Store) sleep(ctx context.Context) {
	b.mu.Lock()
	leading := b.state != nil
	b.mu.Unlock()
	if !leading {
		return
	}
	timer := time.NewTimer(lookAnyway)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-b.changed:
	}
}

// turn rebuilds the state if necessary, and makes decisions once. It returns how long the caller must keep the lock released.
func (b *Store) turn(ctx context.Context) time.Duration {
	if err := b.Lead(ctx); err != nil {
		if ctx.Err() == nil {
			b.log.WarnContext(ctx, "can't lead", "err", err)
		}
		return time.Second
	}
	start := time.Now()
	b.Decide()
	return min(100*time.Millisecond, 2*time.Millisecond+3*time.Since(start))
}

// Lead rebuilds the state if this replica has just become the leader.
func (b *Store) Lead(ctx context.Context) error {
	b.mu.Lock()
	done, config := b.state != nil, b.active
	b.mu.Unlock()
	switch {
	case done:
		return nil
	case !b.synced():
		return fmt.Errorf("%w: it hasn't read the cluster yet", errNotLeading)
	case config == nil:
		return fmt.Errorf("%w: there is no valid configuration", errNotLeading)
	}
	start := b.now()
	pods, version, err := b.listPods(ctx)
	if err != nil {
		return err
	}
	// List claims after the pods, because the claim of a bound pod was written before the pod's binding.
	claims, err := b.listClaims(ctx, pods)
	if err != nil {
		return err
	}
	resumed, err := b.rebuild(pods, version, claims)
	if err != nil {
		return err
	}
	b.queue.Activate(resumed)
	b.log.InfoContext(ctx, "leading", "pods", len(pods), "took", b.now().Sub(start).String())
	return nil
}

// rebuild builds the state. It returns the pods that kube-scheduler should bind because a former leader has bound other pods of
// their gangs.
func (b *Store) rebuild(pods []*corev1.Pod, version string, claims map[types.UID]claim.Place) (resumed []*corev1.Pod, err error) {
	b.mu.Lock()
	defer b.unlock()
	s, err := b.newState(b.active, pods, claims)
	if err != nil {
		return nil, err
	}
	s.listed = version
	b.state = s
	b.catchUp(s)
	for _, p := range s.pods {
		if p.state == api.Binding {
			resumed = append(resumed, p.object)
		}
	}
	return resumed, nil
}

// catchUp applies the informer's events that arrived while pods were listed. The state didn't exist then, and the informer
// doesn't repeat events. sweep finds the pods that were deleted in that time.
func (b *Store) catchUp(s *state) {
	for _, obj := range b.pods.GetStore().List() {
		if p, ok := obj.(*corev1.Pod); ok && RequestsCells(p) {
			s.observe(p)
		}
	}
}

// listPods lists all pods from the API server, because the informer may be behind. version is the resource version of the list.
func (b *Store) listPods(ctx context.Context) (out []*corev1.Pod, version string, err error) {
	options := metav1.ListOptions{Limit: 1000}
	for {
		page, err := b.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, "", fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			if RequestsCells(&page.Items[i]) {
				out = append(out, page.Items[i].DeepCopy())
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, page.ResourceVersion, nil
		}
	}
}

func (b *Store) newState(config *configuration, pods []*corev1.Pod, claims map[types.UID]claim.Place) (*state, error) {
	core, err := cell.New(config.cells)
	if err != nil {
		return nil, fmt.Errorf("build the cells: %w", err)
	}
	b.places.clear()
	s := &state{
		core: core, types: config.cells.Types, claims: claims, pods: map[types.UID]*pod{}, gangs: map[gangKey]*gang{}, round: map[turn]uint64{}, whole: map[turn]bool{}, postponed: map[gangKey]postponed{}, left: map[gangKey]place{}, nodes: map[string]*node{}, coming: map[string][]*pod{},
		reserves: b.opts.ReservationAfter, served: b.served, generation: config.generation, places: &b.places, grace: b.grace, log: b.log, say: b.say, todo: b.work.add, now: b.now, count: b.count,
		epoch: 1,
	}
	b.syncNodes(s)
	s.replay(pods)
	return s, nil
}

// syncNodes updates every configured node in package cell.
func (b *Store) syncNodes(s *state) {
	for _, name := range s.core.Nodes() {
		s.reconcileNode(name, b.nodeObject(name))
	}
}

// recovered cleans up after a panic in a decision. The state may be inconsistent, so it is rebuilt before the next decision.
func (b *Store) recovered() {
	r := recover()
	if r == nil {
		return
	}
	b.log.Error("a decision ended in a bug; rebuilding the state", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	b.count.bugs.Inc()
	if b.state != nil {
		for _, g := range b.state.gangs {
			g.ungather() // the next check of the waiting pods finds that they have no place
		}
	}
	b.state = nil
	b.places.clear()
}

// locked calls f with the state if this replica is the leader. It recovers if f panics.
func (b *Store) locked(f func(*state)) (leading bool) {
	b.mu.Lock()
	defer b.unlock()
	defer b.recovered()
	if b.state == nil {
		return false
	}
	f(b.state)
	return true
}

// saying is an event. Events are recorded after the lock is released, because one decision may cause an event for each pod of a
// cluster.
type saying struct {
	object             runtime.Object
	kind, reason, text string
}

func (b *Store) say(object runtime.Object, kind, reason, text string) {
	b.said = append(b.said, saying{object, kind, reason, text})
}

// unlock releases the lock, and records the events that were collected while the lock was held.
func (b *Store) unlock() {
	said := b.said
	b.said = nil
	b.mu.Unlock()
	for _, e := range said {
		b.events.Event(e.object, e.kind, e.reason, e.text)
	}
}

// partOf is how many pods or gangs are processed before the lock is released.
const partOf = 4096

// inParts calls f with the state and each element of all. It releases the lock between parts, so f must check whether the
// element still exists. It ends early if this replica is no longer the leader.
func inParts[T any](b *Store, all []T, f func(*state, T)) (leading bool) {
	leading = true
	for part := range slices.Chunk(all, partOf) {
		leading = leading && b.locked(func(s *state) {
			for _, x := range part {
				f(s, x)
			}
		})
	}
	return leading
}

// signal notifies Run of a change that may let a gang start.
func (b *Store) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}
