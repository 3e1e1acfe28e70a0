package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/scheduler/vc"
	"github.com/openpai/paictl/pkg/services/state"
)

// Options configures a Follower. The comments on the fields name the defaults for zero values.
type Options struct {
	// Services reads the platform's services. It calls known as soon as the configuration is loaded. services.Reader
	// returns such a function.
	Services func(ctx context.Context, known func(name string, l *layout.Layout)) ([]state.Status, error)
	// Web sends a request to Prometheus or Alertmanager. If Web is nil, requests are sent through the API server. If
	// the cluster doesn't have the service, the error is a *web.NoneError.
	Web func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error)
	// Scheduler is the client of the scheduler. If it is nil, requests are sent through the API server.
	Scheduler *vc.Scheduler
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Every is the minimum time between two models. 0 means 100 ms.
	Every time.Duration
	// Metrics is how often Prometheus and Alertmanager are queried. 0 means 15 s.
	Metrics time.Duration
	// Patience is how long Once waits for the responses of all sources. 0 means 10 s.
	Patience time.Duration
}

// Follower keeps a model of a cluster up to date.
type Follower struct {
	cluster  *kube.Cluster
	client   kubernetes.Interface // uses protobuf
	metadata metadata.Interface   // uses protobuf
	jobs     *job.Client
	web      *web.Client
	o        Options

	current atomic.Pointer[Cluster]
	changed chan struct{}
	wake    chan struct{} // signals that a part is dirty

	kinds      []*kind
	ofServices []servicesWatch
	askers     []*asker
	running    sync.WaitGroup

	mu         sync.Mutex
	b          *tables
	lostAt     time.Time // when it last failed to respond
	lost       error     // why the API server doesn't respond; nil while it responds
	heard      time.Time // when it last responded
	release    string    // the release of Kubernetes
	name       string    // the name of the configuration
	namespaces sets.Set[string]
	sources    map[string]Source
	touched    map[string]time.Time // when a change of each source was last seen
}

const (
	// every is the default of Options.Every.
	every = 100 * time.Millisecond
	// onceEvery is the maximum time between two models for Once. Every follower uses it until all sources have
	// responded, because readers wait for the last response.
	onceEvery = 10 * time.Millisecond
)

// New returns a follower of a cluster. It sends no requests.
func New(cluster *kube.Cluster, o Options) (*Follower, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Every == 0 {
		o.Every = every
	}
	if o.Metrics == 0 {
		o.Metrics = metricsEvery
	}
	if o.Patience == 0 {
		o.Patience = patience
	}
	config := kube.Protobuf(cluster.Config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open the cluster of context %s: %w", cluster.Context, err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("open the cluster of context %s: %w", cluster.Context, err)
	}
	jobs, err := job.New(cluster)
	if err != nil {
		return nil, err
	}
	w := web.New(cluster)
	if o.Web == nil {
		o.Web = w.Get
	}
	f := &Follower{cluster: cluster, client: client, metadata: objects, jobs: jobs, web: w, o: o,
		changed: make(chan struct{}, 1), wake: make(chan struct{}, 1), b: newTables(), namespaces: sets.New(kube.SystemNamespace),
		sources: map[string]Source{}, touched: map[string]time.Time{}}
	f.kinds = f.allKinds()
	f.askers = f.allAskers()
	f.publish()
	return f, nil
}

func (f *Follower) now() time.Time { return f.o.Now() }

// Current returns the newest model. The model is never nil and never changes.
func (f *Follower) Current() *Cluster { return f.current.Load() }

// Changed returns a channel that receives a value when a newer model exists. Several new models may cause only one
// value.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Run follows the cluster until ctx ends. It must be called only once.
func (f *Follower) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer f.web.Close()
	defer f.running.Wait()
	defer cancel()
	for _, k := range f.kinds {
		f.running.Go(func() { k.store.Run(ctx) })
	}
	for _, a := range f.askers {
		f.running.Go(func() { f.ask(ctx, a) })
	}
	f.running.Go(func() { f.probe(ctx) })
	// A source may become stale without an event, so all sources are checked every second.
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.wake:
			f.publish()
			pause := f.o.Every
			if f.Current().Loading() {
				pause = min(pause, onceEvery)
			}
			f.sleep(ctx, pause)
		case <-tick.C:
			f.publish()
		}
	}
}

// sleep waits for a duration, or until ctx ends.
func (f *Follower) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// stir requests a new model.
func (f *Follower) stir() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// publish builds a new model and notifies readers if anything has changed.
func (f *Follower) publish() {
	f.mu.Lock()
	now := f.now()
	sources, news := f.nowSources(now)
	was := f.current.Load()
	if was != nil && !news && !f.b.dirty() {
		f.mu.Unlock()
		return
	}
	f.b.refresh()
	c := &Cluster{Name: f.name, Server: f.cluster.Server, Kubernetes: f.release, At: now.UTC(), Sources: sources,
		Machines: f.b.machineList, VirtualClusters: f.b.ownerList, Services: f.b.services, Jobs: f.b.jobList, Events: f.b.eventList, Alerts: f.b.alerts}
	if c.Name == "" {
		c.Name = f.cluster.Context
	}
	// Empty lists must be [] in JSON, not null.
	c.Machines, c.VirtualClusters, c.Services, c.Jobs, c.Alerts = list(c.Machines), list(c.VirtualClusters), list(c.Services), list(c.Jobs), list(c.Alerts)
	f.mu.Unlock()
	Complete(c)
	f.current.Store(c)
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// change applies a change to the rows of a kind and records the time.
func (f *Follower) change(k *kind, apply func()) {
	f.mu.Lock()
	apply()
	f.touched[k.source] = f.now()
	f.mu.Unlock()
	f.stir()
}

// set applies a change that comes from neither a watch nor a response. For example, a source doesn't exist.
func (f *Follower) set(apply func()) {
	f.mu.Lock()
	apply()
	f.mu.Unlock()
	f.stir()
}

// patience is the default of Options.Patience.
const patience = 10 * time.Second

// Once returns a model when each source has responded or is unavailable, or after Options.Patience. The error explains
// why requests to Kubernetes fail. The returned model contains the same explanation.
func (f *Follower) Once(ctx context.Context) (*Cluster, error) {
	f.o.Every = min(f.o.Every, onceEvery)
	run, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = f.Run(run) // it only returns when run ends
	}()
	defer func() {
		stop()
		<-done
	}()
	late := time.NewTimer(f.o.Patience)
	defer late.Stop()
	for {
		c := f.Current()
		if !c.Loading() {
			return c, f.unreachable(c)
		}
		select {
		case <-ctx.Done():
			return c, context.Cause(ctx)
		case <-late.C:
			return unanswered(c, f.o.Patience), f.unreachable(c)
		case <-f.Changed():
		}
	}
}

// unanswered returns a copy of a model in which all loading sources have failed. after is the elapsed time. If only one
// part of a source is missing, the message of the source names that part.
func unanswered(c *Cluster, after time.Duration) *Cluster {
	late := *c
	late.Sources = slices.Clone(c.Sources)
	for i := range late.Sources {
		if s := &late.Sources[i]; s.State == StateLoading {
			s.State, s.Message = StateFailed, cmp.Or(s.Message, fmt.Sprintf("it has not answered in %s", after))
		}
	}
	Complete(&late)
	return &late
}

// Source returns the source with a name, or nil if the model doesn't contain the source.
func (c *Cluster) Source(name string) *Source {
	for i := range c.Sources {
		if c.Sources[i].Name == name {
			return &c.Sources[i]
		}
	}
	return nil
}

// Knows reports whether the model contains data from a source, even if the data is old.
func (c *Cluster) Knows(name string) bool {
	s := c.Source(name)
	return s != nil && (s.State == StateCurrent || s.State == StateStale)
}

// Loading reports whether any source hasn't responded yet but may still respond.
func (c *Cluster) Loading() bool {
	for i := range c.Sources {
		if c.Sources[i].State == StateLoading {
			return true
		}
	}
	return false
}

// unreachable returns the reason why the model contains no data of the cluster, or nil if it contains data.
func (f *Follower) unreachable(c *Cluster) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heard.IsZero() && f.lost != nil {
		return f.cluster.Explain(f.lost)
	}
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.Name == SourceAPI && s.State == StateLoading && f.heard.IsZero() {
			return f.cluster.Explain(fmt.Errorf("%s has not answered in %s", f.cluster.Server, f.o.Patience))
		}
		if s.Name == SourceAPI && s.State == StateFailed && !s.Refused {
			return hint.Wrap(errors.New(s.Message), s.Hint)
		}
	}
	return nil
}
