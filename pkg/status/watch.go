package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// pageSize is how many objects are read at once: what is decoded at a time stays small.
const pageSize = 500

// Waits before objects are listed again after a failure.
const (
	backoffFirst = 200 * time.Millisecond
	backoffMost  = 3 * time.Second
	// backoffRefused is for what a person or an administrator must change first.
	backoffRefused = 15 * time.Second
)

// kind is one kind of object that is followed.
type kind struct {
	name   string // in the plural, for people
	source string
	one    runtime.Object
	// optional: this user may lack the right to it, and nothing is said to be missing.
	optional bool
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// convert makes a row of an object, and its key. A nil row is of no interest.
	convert func(runtime.Object) (key string, row any)
	// set takes a row, nil where there is none any more; replace takes all rows that there are. Both are called with the lock held.
	set     func(key string, row any)
	replace func(map[string]any)

	// What follows is guarded by the follower's lock.
	loaded bool      // all were listed once
	live   bool      // changes are being heard
	heard  time.Time // when it was live last
	err    error     // why it isn't
	cancel context.CancelFunc
}

// errEnded ends a reflector: the connection that it had is no more, and what was missed meanwhile must be listed.
var errEnded = errors.New("the API server ended the watch early")

// follow lists and watches objects of a kind until ctx ends. The reflector keeps the order of versions, asks for missed changes, and starts over
// where the API server has forgotten them. Each of its lives begins with a list, so that one that begins after the connection broke shows what
// is there now, even where the API server came back from a backup and its versions count from before.
func (f *Follower) follow(ctx context.Context, k *kind) {
	wait := backoffFirst
	for ctx.Err() == nil {
		began := f.now()
		life, cancel := context.WithCancel(ctx)
		f.mu.Lock()
		k.cancel = cancel
		f.mu.Unlock()
		lw := &listerWatcher{f: f, kind: k}
		r := cache.NewReflectorWithOptions(lw, k.one, &rowStore{f, k}, cache.ReflectorOptions{Name: k.name})
		err := r.ListAndWatchWithContext(life)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if own := lw.failed(); own != nil {
			err = own
		}
		f.down(k, err)
		f.mu.Lock()
		starting := f.starting(err)
		f.mu.Unlock()
		switch {
		case f.now().Sub(began) > time.Minute:
			wait = backoffFirst // it worked for long
		case !starting && (isRefused(err) || apierrors.IsNotFound(err)):
			wait = backoffRefused
		default:
			wait = min(2*wait, backoffMost)
		}
		f.sleep(ctx, wait)
	}
}

// listerWatcher is what a reflector asks during one life.
type listerWatcher struct {
	f       *Follower
	kind    *kind
	began   time.Time // of the watch
	timeout time.Duration

	mu   sync.Mutex // a list that was given up may still be on its way
	last error
}

// fail notes why this life ends.
func (l *listerWatcher) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = err
	return err
}

// failed is why it ended, as it was said and not as the reflector put it; nil where it wasn't here.
func (l *listerWatcher) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// IsWatchListSemanticsUnSupported says that lists are read in pages: the reflector would keep whole objects until the last had come.
func (l *listerWatcher) IsWatchListSemanticsUnSupported() bool { return true }

// List is part of cache.ListerWatcher.
func (l *listerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch is part of cache.ListerWatcher.
func (l *listerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// ListWithContext reads all pages, and keeps rows alone.
func (l *listerWatcher) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	out := &items{}
	for o := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := l.kind.list(ctx, o)
		if err != nil {
			return nil, l.fail(err)
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		err = meta.EachListItem(page, func(one runtime.Object) error {
			if key, row := l.kind.convert(one); row != nil {
				out.Items = append(out.Items, &item{key: key, row: row})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		out.ResourceVersion = list.GetResourceVersion()
		if o.Continue = list.GetContinue(); o.Continue == "" {
			l.f.answered()
			return out, nil
		}
	}
}

// WatchWithContext opens a watch. One that ended before its time was cut off: then this life ends.
func (l *listerWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	now := l.f.now()
	if !l.began.IsZero() && now.Sub(l.began) < l.timeout*9/10 {
		return nil, l.fail(errEnded)
	}
	l.began = now
	if o.TimeoutSeconds != nil {
		l.timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	w, err := l.kind.watch(ctx, o)
	if err != nil {
		_ = l.fail(err)
		// In words of its own: the reflector would go on after a refused connection where it had stopped.
		return nil, fmt.Errorf("watch the %s: %v", l.kind.name, err) //nolint:errorlint // see above
	}
	l.f.up(l.kind)
	return w, nil
}

// rowStore turns the objects of a reflector into rows.
type rowStore struct {
	f *Follower
	k *kind
}

// Add implements cache.ReflectorStore.
func (s *rowStore) Add(one any) error { return s.Update(one) }

// Update implements cache.ReflectorStore.
func (s *rowStore) Update(one any) error {
	object, ok := one.(runtime.Object)
	if !ok {
		return nil
	}
	key, row := s.k.convert(object)
	s.f.change(s.k, func() { s.k.set(key, row) })
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *rowStore) Delete(one any) error {
	object, ok := one.(runtime.Object)
	if !ok {
		return nil
	}
	key, _ := s.k.convert(object)
	s.f.change(s.k, func() { s.k.set(key, nil) })
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *rowStore) Replace(all []any, _ string) error {
	rows := make(map[string]any, len(all))
	for _, one := range all {
		if i, ok := one.(*item); ok {
			rows[i.key] = i.row
		}
	}
	s.f.change(s.k, func() {
		s.k.loaded = true
		s.k.replace(rows)
	})
	return nil
}

// Resync implements cache.ReflectorStore; nothing asks for it.
func (s *rowStore) Resync() error { return nil }

// item is a row as a reflector carries it from its list to its store.
type item struct {
	key string
	row any
}

// GetObjectKind implements runtime.Object.
func (i *item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Rows are never changed.
func (i *item) DeepCopyObject() runtime.Object { return i }

// items are a list of them.
type items struct {
	metav1.ListMeta
	Items []runtime.Object
}

// GetObjectKind implements runtime.Object.
func (i *items) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (i *items) DeepCopyObject() runtime.Object { return i }

// isRefused reports whether the API server knows this user, or not, and doesn't let it.
func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// isSilence reports whether the API server didn't say anything at all.
func isSilence(err error) bool {
	var said apierrors.APIStatus
	var silent net.Error // also url.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &said):
		return false
	}
	return errors.As(err, &silent) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF)
}
