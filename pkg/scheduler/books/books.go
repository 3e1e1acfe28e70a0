package books

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Options say where the books find what belongs to them.
type Options struct {
	// Namespace has the ConfigMap.
	Namespace string
	// ConfigMap and ConfigKey name the configuration, HiveD's YAML.
	ConfigMap, ConfigKey string
	// Election is that of kube-scheduler; nil where there is only one.
	Election *Election
	// AccessFile has the password that opens /metrics, TokenFile the token that opens the read-only API.
	// Empty: everybody may read them.
	AccessFile, TokenFile string
	// Port is where another replica serves the read-only API.
	Port string
}

// Books are what the scheduler knows of pods, gangs and cells. Run makes them follow the cluster and decide while this
// replica leads, API is their handler for people. The methods of place.go are for the plugin.
type Books struct {
	client kubernetes.Interface
	opts   Options
	log    *slog.Logger
	now    func() time.Time
	events record.EventRecorder
	work   *work
	count  *counters
	queue  Queue
	// grace is gangGrace.
	grace time.Duration
	// served are the schedulers that this program is; nil: all.
	served []string

	pods, nodes, config cache.SharedIndexInformer

	// validating has one for each configuration that is looked at.
	validating chan struct{}
	// binds has one for each binding that is under way.
	binds chan struct{}
	// changed has one while something may let a gang start.
	changed chan struct{}

	// places is read by kube-scheduler while it holds its own lock: it has a lock of its own, which is never held for long.
	places places

	// mu guards all below. It is taken before the lock of places, and never while kube-scheduler is called: that calls
	// Place with its own lock held.
	mu     sync.Mutex
	state  *state // nil while another replica leads
	active *configuration
	// problem is why the latest configuration was refused, "" if active is the latest.
	problem string
}

// Queue is kube-scheduler's.
type Queue interface {
	// Activate makes it look at pods again.
	Activate(pods []*corev1.Pod)
	// Reject takes pods back that wait for the others of their gang.
	Reject(pods []types.UID, reason string)
}

// New returns books that know nothing yet. shared is kube-scheduler's: whoever made it starts it. now is the clock.
func New(client kubernetes.Interface, shared informers.SharedInformerFactory, queue Queue, opts Options, log *slog.Logger, events record.EventRecorder, now func() time.Time) *Books {
	b := &Books{client: client, queue: queue, grace: gangGrace, opts: opts, log: log, now: now, events: events, count: newCounters(),
		validating: make(chan struct{}, validations), binds: make(chan struct{}, bindsAtOnce), changed: make(chan struct{}, 1)}
	b.work = newWork(b)
	b.watch(shared)
	return b
}

// Serve says which schedulers this program is, before Run. Pods that name others and aren't bound are not its business: nothing
// would bind them.
func (b *Books) Serve(names []string) { b.served = names }

const (
	// electionPoll is how often a replica looks whether it leads.
	electionPoll = 100 * time.Millisecond
	// lookAnyway is how often gangs are looked at without a change: some wait for a time.
	lookAnyway = time.Second
)

// Run follows the cluster, and decides while this replica leads, until ctx ends.
func (b *Books) Run(ctx context.Context) error {
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

// sleep waits for a change, while this replica leads, or for lookAnyway.
func (b *Books) sleep(ctx context.Context) {
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

// turn makes sure that the books are there and decides once. It returns how long to leave the lock to others.
func (b *Books) turn(ctx context.Context) time.Duration {
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

// Lead rebuilds the books if this replica has come to lead.
func (b *Books) Lead(ctx context.Context) error {
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
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.newState(b.active, pods)
	if err != nil {
		return err
	}
	s.listed = version
	b.state = s
	b.catchUp(s)
	b.log.InfoContext(ctx, "leading", "pods", len(s.pods), "took", b.now().Sub(start).String())
	return nil
}

// catchUp takes note of what the informer told while pods were listed: it had no books to tell, and doesn't tell it again. Pods that
// went meanwhile are left to sweep.
func (b *Books) catchUp(s *state) {
	for _, obj := range b.pods.GetStore().List() {
		if p, ok := obj.(*corev1.Pod); ok && Wants(p) {
			s.observe(p)
		}
	}
}

// listPods asks for all pods as they are now; the informer may be behind. version is the resource version of the answer.
func (b *Books) listPods(ctx context.Context) (out []*corev1.Pod, version string, err error) {
	options := metav1.ListOptions{Limit: 1000}
	for {
		page, err := b.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, "", fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			if Wants(&page.Items[i]) {
				out = append(out, page.Items[i].DeepCopy())
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, page.ResourceVersion, nil
		}
	}
}

func (b *Books) newState(config *configuration, pods []*corev1.Pod) (*state, error) {
	core, err := cell.New(config.cells)
	if err != nil {
		return nil, fmt.Errorf("build the cells: %w", err)
	}
	b.places.clear()
	s := &state{
		core: core, types: config.cells.Types, pods: map[types.UID]*pod{}, gangs: map[gangKey]*gang{}, postponed: map[gangKey]postponed{}, left: map[gangKey]place{}, nodes: map[string]*node{},
		served: b.served, generation: config.generation, places: &b.places, grace: b.grace, log: b.log, events: b.events, todo: b.work.add, now: b.now, count: b.count,
		epoch: 1,
	}
	b.syncNodes(s)
	s.replay(pods)
	return s, nil
}

// syncNodes tells the core about every node of its configuration.
func (b *Books) syncNodes(s *state) {
	for _, name := range s.core.Nodes() {
		s.reconcileNode(name, b.nodeObject(name))
	}
}

// recovered ends what a bug broke. What is known may be wrong then, so that it is rebuilt before the next decision.
func (b *Books) recovered() {
	r := recover()
	if r == nil {
		return
	}
	b.log.Error("a decision ended in a bug; rebuilding the books", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	b.count.bugs.Inc()
	b.state = nil
	b.places.clear()
}

// locked calls f with the books, if this replica leads, and survives a bug in it.
func (b *Books) locked(f func(*state)) (leading bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.recovered()
	if b.state == nil {
		return false
	}
	f(b.state)
	return true
}

// signal says that something may have let a gang start.
func (b *Books) signal() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}
