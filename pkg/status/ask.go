package status

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// Intervals between requests for data that can't be watched, and delays from a watched change to the next request.
const (
	schedulerEvery = 10 * time.Second
	schedulerSoon  = time.Second
	servicesEvery  = 30 * time.Second
	servicesSoon   = 2 * time.Second
	servicesRarely = 5 * time.Minute // while all changes of services are watched
	metricsEvery   = 15 * time.Second
	answerLimit    = 20 * time.Second
)

// asker polls a source that can't be watched.
type asker struct {
	source string
	every  time.Duration
	soon   time.Duration // the delay after a kick, so that many kicks result in one request
	remedy string
	// do sends the request and returns a function that stores the response. The caller must hold the lock when it calls
	// this function.
	do     func(context.Context) (take func(), err error)
	kicked chan struct{}

	// The follower's lock guards the fields below.
	asked, heard time.Time // the last request, the last response
	fresh        bool      // the last response is still valid
	err          error     // of the last request
}

func (a *asker) kick() {
	select {
	case a.kicked <- struct{}{}:
	default:
	}
}

func (f *Follower) asker(source string) *asker {
	return f.askers[slices.IndexFunc(f.askers, func(a *asker) bool { return a.source == source })]
}

func (f *Follower) allAskers() []*asker {
	out := []*asker{
		{source: SourceScheduler, every: schedulerEvery, soon: schedulerSoon, do: f.askScheduler, remedy: "look at: paictl service status -n scheduler"},
		{source: SourceServices, every: servicesEvery, soon: servicesSoon, do: f.askServices},
		{source: SourcePrometheus, every: f.o.Metrics, do: f.askPrometheus, remedy: "look at: paictl service status -n " + servicePrometheus},
		{source: SourceAlerts, every: f.o.Metrics, do: f.askAlerts, remedy: "look at: paictl service status -n " + serviceAlerts},
	}
	for _, a := range out {
		a.kicked = make(chan struct{}, 1)
	}
	return out
}

func (f *Follower) ask(ctx context.Context, a *asker) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, answerLimit)
		take, err := a.do(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if isSilence(err) && !errors.Is(err, context.DeadlineExceeded) {
			f.silent(err)
		}
		f.mu.Lock()
		a.asked = f.now()
		if f.lost == nil || !isSilence(err) {
			a.err = err // an error from before the API server stopped responding is still valid
		}
		if err == nil {
			a.heard, a.fresh = a.asked, true
			f.touched[a.source] = a.asked
			take()
		}
		f.mu.Unlock()
		f.stir()
		if !f.idle(ctx, a) {
			return
		}
	}
}

// idle waits until the next request is due. It returns false if ctx ended.
func (f *Follower) idle(ctx context.Context, a *asker) bool {
	t := time.NewTimer(f.pause(a))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-a.kicked:
		f.sleep(ctx, a.soon)
		select {
		case <-a.kicked: // kicks during the delay cause no further request
		default:
		}
	}
	return ctx.Err() == nil
}

func (f *Follower) askScheduler(ctx context.Context) (func(), error) {
	// Each request needs a new client. A client reads its token only once, but a reinstalled scheduler has a new token.
	scheduler := f.o.Scheduler
	if scheduler == nil {
		scheduler = vc.NewScheduler(f.cluster.Client)
	}
	var queue *schedulerapi.Queue
	var owners *schedulerapi.VirtualClusters
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { queue, err = scheduler.Queue(ctx, schedulerapi.QueueQuery{}); return err })
	g.Go(func() (err error) { owners, err = scheduler.VirtualClusters(ctx); return err })
	if err := g.Wait(); err != nil {
		if errors.Is(err, vc.ErrNotInstalled) {
			f.set(func() {
				if f.b.owners != nil {
					f.b.setQueue(nil, nil)
				}
			})
		}
		return nil, err
	}
	return func() { f.b.setQueue(queue, owners) }, nil
}

func (f *Follower) askServices(ctx context.Context) (func(), error) {
	all, err := f.o.Services(ctx, f.known)
	if errors.Is(err, store.ErrNone) {
		f.set(func() {
			f.b.dirtyOther = f.b.dirtyOther || f.name != "" || f.b.services != nil
			f.name, f.b.services = "", nil
			f.b.setLayout(nil)
		})
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	rows, namespaces := make([]Service, len(all)), sets.New(kube.SystemNamespace)
	for i := range all {
		rows[i] = Service{all[i]}
		if all[i].Namespace != "" { // without a namespace, only the service's name is known
			namespaces.Insert(all[i].Namespace)
		}
	}
	return func() { f.b.services, f.namespaces, f.b.dirtyOther = rows, namespaces, true }, nil
}

// known stores the name and the machines of a loaded configuration.
func (f *Follower) known(name string, l *layout.Layout) {
	machines := newLayout(l)
	f.set(func() {
		f.name = name
		f.b.setLayout(machines)
		f.b.dirtyOther = true
	})
}
