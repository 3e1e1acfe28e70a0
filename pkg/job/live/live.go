// Package live has the jobs that live in memory, by watch, and lists them together with those that ended.
// In: Frameworks and pods of a cluster by watch; the history of jobs. Out: pages of lists, without requests to the API server.
package live

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/job/listing/feed"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Live follows the jobs of a cluster.
type Live struct {
	jobs             *job.Client
	index            *listing.Index
	frameworks, pods *follower
	mu               sync.Mutex
	changed          chan struct{} // closed and made again at each change
	log              *slog.Logger

	// How watches are notified.
	moved   chan struct{} // closed and made again when the index has changes for them
	touched chan struct{} // one is waiting if the index may have changed
	asked   chan struct{} // one is waiting if the queue is to be read at once
	readers atomic.Int64
}

// New makes an empty Live.
func New(jobs *job.Client, log *slog.Logger) *Live {
	l := &Live{jobs: jobs, index: listing.NewIndex().Watched(rememberGone), changed: make(chan struct{}), moved: make(chan struct{}),
		touched: make(chan struct{}, 1), asked: make(chan struct{}, 1), log: log}
	follow := &feed.Feed{Index: l.index, Brief: briefOf, Pod: podOf, Changed: func(*listing.Brief, bool) { l.tell(); ring(l.touched) }, PodChanged: func() { ring(l.touched) }}
	l.frameworks = newFollower(l.index, follow.Frameworks(), &v1.Framework{}, &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return jobs.Frameworks.Page(ctx, o)
		},
		WatchFuncWithContext: jobs.Frameworks.WatchAll,
	}, func(version uint64) listing.Seen { return listing.Seen{Frameworks: version} })
	pods, ours := jobs.Client.CoreV1().Pods(jobs.Namespace), func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = v1.LabelFramework
		return o
	}
	l.pods = newFollower(l.index, follow.Pods(), &corev1.Pod{}, &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return pods.List(ctx, ours(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, ours(o))
		},
	}, func(version uint64) listing.Seen { return listing.Seen{Pods: version} })
	return l
}

// Run follows until the context ends.
func (l *Live) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { l.frameworks.run(ctx) })
	parts.Go(func() { l.pods.run(ctx) })
	parts.Go(func() { l.pump(ctx) })
	parts.Go(func() { l.queue(ctx) })
	parts.Wait()
	return nil
}

// Filled reports whether all jobs have been read once.
func (l *Live) Filled() bool { return l.frameworks.filled.Load() && l.pods.filled.Load() }

func (l *Live) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
}

// next is closed at the next change.
func (l *Live) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Row returns a job that lives, as it is in lists.
func (l *Live) Row(framework string) (listing.Row, bool) { return l.index.Row(framework) }

// Await waits until a job is in lists as a change has left it, or the context ends.
func (l *Live) Await(ctx context.Context, framework string, changed func(listing.Row) bool) {
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

// Where returns the virtual cluster of a job that lives.
func (l *Live) Where(user, name string) (vc string, known bool) {
	r, ok := l.index.Row(v1.ObjectName(user, name))
	return r.VirtualCluster, ok && r.User == user && r.Name == name
}

// Unfinished counts the jobs of a user that haven't finished, and their tasks.
func (l *Live) Unfinished(user string) (jobs, tasks int) { return l.index.Unfinished(user) }

// errEmpty is of lists that are asked for before all jobs have been read.
var errEmpty = fmt.Errorf("%w: the jobs have not been read yet", listing.ErrUnavailable)

// List lists jobs, newest first, with their places in the queue.
func (l *Live) List(ctx context.Context, f listing.Filter) (*listing.Page, error) {
	if !l.Filled() {
		return nil, errEmpty
	}
	return l.jobs.Listed(ctx, f, pages{l})
}

// pages are lists without the queue.
type pages struct{ *Live }

// List implements job.Lister.
func (l pages) List(ctx context.Context, f listing.Filter) (*listing.Page, error) {
	rows, err := l.index.Rows(f, f.Limit+1)
	if err != nil {
		return nil, err
	}
	page, missing, err := listing.Merge(ctx, f, listing.Live{Rows: rows, There: l.index.Has, Named: l.index.Named, Gone: l.gone}, l.jobs.History)
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

// errHistory is the text for users if the history doesn't answer.
var errHistory = errors.New("the history of jobs doesn't answer now")

// without is the note of a list without the finished jobs. Its cause, which names addresses inside the cluster, goes only to the log.
func (l *Live) without(ctx context.Context, cause error) string {
	l.log.WarnContext(ctx, "a list is without the history of jobs", "error", cause.Error())
	return listing.Without(errHistory)
}

// gone reports whether a Framework doesn't exist, by the latest state of the index.
func (l *Live) gone(_ context.Context, j *api.Job) (bool, error) {
	r, ok := l.index.Row(j.Framework)
	return !ok || r.UID != j.UID, nil
}

// Ordered lists jobs in any order, with their places in the queue.
func (l *Live) Ordered(ctx context.Context, f listing.Filter) (*listing.OrderedPage, error) {
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
		// The history doesn't know which names live. Earlier jobs of such a name keep their places and count in the total, so that no page
		// repeats a row of another one.
		page.Items = slices.DeleteFunc(page.Items, func(r listing.Row) bool { return !r.Live && l.index.Named(r.Framework) })
	}
	return page, l.jobs.Place(ctx, f.VirtualCluster, page.Items)
}
