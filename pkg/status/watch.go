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

// pageSize is how many objects are read at once, so that the decoded data stays small.
const pageSize = 500

// Waits before objects are listed again after a failure.
const (
	backoffFirst = 200 * time.Millisecond
	backoffMost  = 3 * time.Second
	// backoffRefused is for errors that a user or an administrator must correct first.
	backoffRefused = 15 * time.Second
)

// kind is one kind of object that is followed.
type kind struct {
	name   string // in the plural, for people
	source string
	one    runtime.Object
	// optional: this user may not have the permission, and then nothing is reported as missing.
	optional bool
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// convert makes a row of an object, and its key. A nil row is ignored.
	convert func(runtime.Object) (key string, row any)
	// set takes a row, or nil if it no longer exists; replace takes all existing rows. Both are called with the lock held.
	set     func(key string, row any)
	replace func(map[string]any)

	// The follower's lock guards the fields below.
	loaded bool      // all were listed once
	live   bool      // changes are being watched
	heard  time.Time // when it was last live
	err    error     // why it isn't live
	cancel context.CancelFunc
}

// errEnded ends a reflector: its connection has ended, and missed changes must be listed.
var errEnded = errors.New("the API server ended the watch early")

// follow lists and watches objects of a kind until ctx ends. The reflector keeps the order of versions, requests missed changes, and
// starts over if the API server no longer has them. Each of its lives begins with a list, so a new one after a broken connection shows
// the current state, even if the API server was restored from a backup and has earlier versions.
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

// listerWatcher sends the requests of a reflector during one life.
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

// failed returns why it ended, with the original error instead of the reflector's; nil if it didn't fail here.
func (l *listerWatcher) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// IsWatchListSemanticsUnSupported returns true, so that lists are read in pages: otherwise the reflector would keep whole objects until
// the last one has come.
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

// WatchWithContext opens a watch. If the last one ended before its time, it was interrupted: then this life ends.
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
		// Without wrapping: the reflector would continue after a refused connection from where it had stopped.
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

// Resync implements cache.ReflectorStore; it isn't used.
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
