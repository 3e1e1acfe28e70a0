package extender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Options say where the extender finds what belongs to it.
type Options struct {
	// Namespace has the ConfigMap and the Lease.
	Namespace string
	// ConfigMap and ConfigKey name the configuration, HiveD's YAML.
	ConfigMap, ConfigKey string
	// Lease is that of the kube-scheduler beside this program; "" means that there is only one.
	Lease string
	// Identity is the host name of both programs, with which the Lease's holder begins.
	Identity string
	// AccessFile has the password that opens /metrics, TokenFile the token that opens the read-only API.
	// Empty: everybody may read them.
	AccessFile, TokenFile string
	// Port is where another replica serves the read-only API.
	Port string
}

// Extender answers kube-scheduler. Run makes it work, Verbs and API are its two handlers.
type Extender struct {
	client kubernetes.Interface
	opts   Options
	log    *slog.Logger
	now    func() time.Time
	events record.EventRecorder
	lease  *lease // nil without an election
	work   *work
	count  *counters

	pods, nodes, config cache.SharedIndexInformer

	// validating has one for each configuration that is looked at.
	validating chan struct{}

	// turn is held while one pod is decided about; it is not held while others only look.
	turn sync.Mutex
	// activation is held while the state is being rebuilt.
	activation sync.Mutex

	mu     sync.Mutex
	state  *state // nil while another replica leads
	term   string // the term for which state holds
	active *configuration
	// problem is why the latest configuration was refused, "" if active is the latest.
	problem string
}

// New returns an extender that doesn't know anything yet. now is the clock.
func New(client kubernetes.Interface, opts Options, log *slog.Logger, events record.EventRecorder, now func() time.Time) *Extender {
	e := &Extender{client: client, opts: opts, log: log, now: now, events: events, count: newCounters(), validating: make(chan struct{}, validations)}
	if opts.Lease != "" {
		e.lease = &lease{client: client, namespace: opts.Namespace, name: opts.Lease, identity: opts.Identity, now: now}
	}
	e.work = newWork(e)
	e.watch()
	return e
}

// lead makes sure that this replica leads, and will for as long as margin. It must be called, and mu
// taken, before state is used to decide anything.
func (e *Extender) lead(ctx context.Context, margin time.Duration) error {
	term, err := e.leads(ctx, margin)
	if err != nil {
		return err
	}
	e.mu.Lock()
	active := e.state != nil && e.term == term
	e.mu.Unlock()
	if active {
		return nil
	}
	return e.activate(ctx, term)
}

// leads returns the term for which the kube-scheduler beside us leads.
func (e *Extender) leads(ctx context.Context, margin time.Duration) (string, error) {
	if e.lease == nil {
		return "alone", nil
	}
	if term := e.lease.term(margin); term != "" {
		return term, nil
	}
	if err := e.lease.read(ctx); err != nil {
		return "", errors.Join(errNotLeading, err)
	}
	if term := e.lease.term(margin); term != "" {
		return term, nil
	}
	if leader := e.lease.leader(); leader != "" {
		return "", fmt.Errorf("%w: %s does", errNotLeading, leader)
	}
	return "", errNotLeading
}

// activate rebuilds the state for a new term.
func (e *Extender) activate(ctx context.Context, term string) error {
	e.activation.Lock()
	defer e.activation.Unlock()
	e.mu.Lock()
	done, config := e.state != nil && e.term == term, e.active
	e.mu.Unlock()
	switch {
	case done:
		return nil
	case !e.synced():
		return fmt.Errorf("%w: it hasn't read the cluster yet", errNotLeading)
	case config == nil:
		return fmt.Errorf("%w: there is no valid configuration", errNotLeading)
	}
	if err := e.settle(ctx); err != nil {
		return err
	}
	start := e.now()
	pods, err := e.listPods(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s, err := e.newState(e.active, pods)
	if err != nil {
		return err
	}
	e.state, e.term = s, term
	e.log.InfoContext(ctx, "leading", "pods", len(s.pods), "took", e.now().Sub(start).String())
	return nil
}

func (e *Extender) settle(ctx context.Context) error {
	if e.lease == nil {
		return nil
	}
	wait := e.lease.settle()
	if wait == 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listPods asks for all pods as they are now; the informer may be behind.
func (e *Extender) listPods(ctx context.Context) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	options := metav1.ListOptions{Limit: 1000}
	for {
		page, err := e.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range page.Items {
			if wantsGPUs(&page.Items[i]) {
				out = append(out, page.Items[i].DeepCopy())
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

func (e *Extender) newState(config *configuration, pods []*corev1.Pod) (*state, error) {
	core, err := cell.New(config.cells)
	if err != nil {
		return nil, fmt.Errorf("build the cells: %w", err)
	}
	s := &state{
		core: core, types: config.cells.Types, pods: map[types.UID]*pod{}, named: map[string]*pod{}, gangs: map[gangKey]*gang{}, left: map[gangKey]place{}, nodes: map[string]*node{},
		generation: config.generation, log: e.log, events: e.events, todo: e.work.add, now: e.now, count: e.count,
		looked: e.now(),
	}
	e.syncNodes(s)
	s.replay(pods)
	return s, nil
}

// syncNodes tells the core about every node of its configuration.
func (e *Extender) syncNodes(s *state) {
	for _, name := range s.core.Nodes() {
		s.reconcileNode(name, e.nodeObject(name))
	}
}

// resign forgets everything when another replica leads.
func (e *Extender) resign() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != nil {
		e.log.Info("another replica leads")
	}
	e.state, e.term = nil, ""
}

// follow reads the Lease until ctx ends, so that the state is there when kube-scheduler asks.
func (e *Extender) follow(ctx context.Context) {
	tick := time.NewTicker(leasePoll)
	defer tick.Stop()
	for {
		if e.lease != nil {
			if err := e.lease.read(ctx); err != nil {
				e.log.WarnContext(ctx, "reading the lease", "err", err)
			}
		}
		switch err := e.lead(ctx, 0); {
		case e.lease != nil && e.lease.term(0) == "":
			e.resign()
		case err != nil && ctx.Err() == nil:
			e.log.WarnContext(ctx, "can't lead", "err", err)
		}
		e.wake()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
