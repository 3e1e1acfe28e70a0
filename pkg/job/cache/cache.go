// Package cache watches live jobs, keeps them in memory, and lists them together with finished jobs.
// In: watches of Frameworks and pods; the history of jobs. Out: pages of lists, without requests to the API server.
package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
)

// Cache keeps the live jobs of a cluster in memory.
type Cache struct {
	jobs       *job.Client
	index      *listing.Index
	frameworks *watch.Store[*listing.Brief]
	pods       *watch.Store[pod]
	mu         sync.Mutex
	changed    chan struct{} // closed and made again at each change
	log        *slog.Logger

	// Fields for notifying watches.
	moved   chan struct{} // closed and made again when the index has changes for them
	touched chan struct{} // one is waiting if the index may have changed
	asked   chan struct{} // one is waiting if the queue is to be read at once
	readers atomic.Int64
}

// New makes an empty Cache.
func New(jobs *job.Client, log *slog.Logger) *Cache {
	l := &Cache{jobs: jobs, index: listing.NewIndex().Watched(rememberGone), changed: make(chan struct{}), moved: make(chan struct{}),
		touched: make(chan struct{}, 1), asked: make(chan struct{}, 1), log: log}
	l.frameworks = l.watchFrameworks(l.framework)
	l.pods = watch.New(watch.Options[*corev1.Pod, pod]{
		Name: "pods of jobs", Source: watch.From(jobs.Client.CoreV1().Pods(jobs.Namespace), metav1.ListOptions{LabelSelector: v1.LabelFramework}), Log: log,
		Keep: func(p *corev1.Pod) (pod, error) { return pod{p.Labels[v1.LabelFramework], listing.NewStart(p)}, nil },
		Changed: func(changes []watch.Change[pod], list string) {
			follow(l, changes, listing.Versions{Pods: listing.ReadVersion(list)}, l.pod)
		},
	})
	return l
}

// watchFrameworks returns a store of all Frameworks, in a short form, that calls one with each change.
func (l *Cache) watchFrameworks(one func(*watch.Change[*listing.Brief])) *watch.Store[*listing.Brief] {
	return watch.New(watch.Options[*v1.Framework, *listing.Brief]{
		Name: "jobs", Source: l.jobs.Frameworks.Source(), Log: l.log,
		Keep: func(f *v1.Framework) (*listing.Brief, error) { return listing.NewBrief(f), nil },
		Changed: func(changes []watch.Change[*listing.Brief], list string) {
			follow(l, changes, listing.Versions{Frameworks: listing.ReadVersion(list)}, one)
		},
	})
}

// pod holds the fields of a pod that the index needs.
type pod struct {
	framework string
	start     listing.Start
}

// follow passes changes to one, in the order of the API server. If the changes come from a complete list, the argument list contains the version
// of that list.
func follow[T any](l *Cache, changes []watch.Change[T], list listing.Versions, one func(*watch.Change[T])) {
	if list != (listing.Versions{}) {
		l.index.Begin(list)
		defer l.index.Listed(list)
	}
	for i := range changes {
		one(&changes[i])
	}
	ring(l.touched)
}

func (l *Cache) framework(c *watch.Change[*listing.Brief]) {
	switch {
	case c.Is != nil:
		l.index.Put(c.Is.Value)
	case c.Last != nil:
		l.index.Remove(c.Last.Value, true)
	case c.Was != nil:
		l.index.Remove(c.Was.Value, false)
	}
	l.tell()
}

func (l *Cache) pod(c *watch.Change[pod]) {
	switch {
	case c.Is != nil:
		l.index.Pod(c.Is.Value.framework, c.Is.UID, c.Is.Value.start, listing.ReadVersion(c.Is.Version))
	case c.Last != nil:
		l.index.DeletePod(c.Last.Value.framework, c.Last.UID, listing.ReadVersion(c.Last.Version))
	case c.Was != nil:
		l.index.DeletePod(c.Was.Value.framework, c.Was.UID, 0)
	}
}

// Run watches Frameworks and pods until the context ends.
func (l *Cache) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { l.frameworks.Run(ctx) })
	parts.Go(func() { l.pods.Run(ctx) })
	parts.Go(func() { l.pump(ctx) })
	parts.Go(func() { l.queue(ctx) })
	parts.Wait()
	return nil
}

// Filled reports whether all jobs have been read at least once.
func (l *Cache) Filled() bool { return l.frameworks.Synced() && l.pods.Synced() }

func (l *Cache) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// next returns a channel that is closed at the next change.
func (l *Cache) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Row returns the row for a live job. The second result is false if the job isn't live.
func (l *Cache) Row(framework string) (listing.Row, bool) { return l.index.Row(framework) }

// Await waits until changed returns true for the row of a live job, or the context ends. So a list that is read afterwards shows the change.
func (l *Cache) Await(ctx context.Context, framework string, changed func(listing.Row) bool) {
	for {
		next := l.next()
		if r, ok := l.index.Row(framework); ok && changed(r) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
	}
}

// Where returns the virtual cluster of a live job. known is false if the job isn't live.
func (l *Cache) Where(user, name string) (vc string, known bool) {
	r, ok := l.index.Row(v1.ObjectName(user, name))
	return r.VirtualCluster, ok && r.User == user && r.Name == name
}

// Unfinished returns how many unfinished jobs a user has, and how many tasks these jobs have.
func (l *Cache) Unfinished(user string) (jobs, tasks int) { return l.index.Unfinished(user) }

// errEmpty is returned for lists that are requested before all jobs have been read.
var errEmpty = fmt.Errorf("%w: the jobs have not been read yet", listing.ErrUnavailable)

// List returns a page of jobs, starting with the newest job, with the jobs' places in the queue.
func (l *Cache) List(ctx context.Context, f listing.Filter) (*listing.Page, error) {
	if !l.Filled() {
		return nil, errEmpty
	}
	return l.jobs.Listed(ctx, f, pages{l})
}

// pages returns pages of jobs without their places in the queue.
type pages struct{ *Cache }

// List implements job.Lister.
func (l pages) List(ctx context.Context, f listing.Filter) (*listing.Page, error) {
	rows, err := l.index.Rows(f, f.Limit+1)
	if err != nil {
		return nil, err
	}
	page, missing, err := listing.Merge(ctx, f, listing.Live{Rows: rows, Exists: l.index.Has, Named: l.index.Named, Deleted: l.gone}, l.jobs.History)
	if err != nil {
		return nil, err
	}
	if missing != nil {
		if ctx.Err() != nil {
			return nil, missing
		}
		page.Note = l.without(ctx, missing)
	}
	return page, nil
}

// errHistory is the error that users see if the history isn't available.
var errHistory = errors.New("the history of jobs doesn't answer now")

// without returns a note for a list that doesn't include the finished jobs. The cause is only logged, because it contains addresses inside the
// cluster.
func (l *Cache) without(ctx context.Context, cause error) string {
	l.log.WarnContext(ctx, "a list is without the history of jobs", "error", cause.Error())
	return listing.Without(errHistory)
}

// gone reports whether a job's Framework doesn't exist, according to the index.
func (l *Cache) gone(_ context.Context, j *api.Job) (bool, error) {
	r, ok := l.index.Row(j.Framework)
	return !ok || r.UID != j.UID, nil
}

// Ordered returns a page of jobs in any order, with the jobs' places in the queue.
func (l *Cache) Ordered(ctx context.Context, f listing.Filter) (*listing.OrderedPage, error) {
	if !l.Filled() {
		return nil, errEmpty
	}
	page, missing := listing.Ordered(ctx, f, l.index.Sorted(f), l.index.Has, l.jobs.History)
	if missing != nil {
		if ctx.Err() != nil {
			return nil, missing
		}
		page.Note = l.without(ctx, missing)
	}
	if !f.Earlier {
		// The history doesn't know which names belong to live jobs. An earlier job with such a name is removed from the page only here, and still
		// counts in offsets and the total, so that no job appears on two pages.
		page.Items = slices.DeleteFunc(page.Items, func(r listing.Row) bool { return !r.Live && l.index.Named(r.Framework) })
	}
	return page, l.jobs.Place(ctx, f.VirtualCluster, page.Items)
}
