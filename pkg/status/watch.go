package status

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/kube/watch"
)

// kind is a kind of object that the follower watches.
type kind struct {
	name   string // in the plural, for people
	source string
	// optional means that this user may not have the permission to read the kind. In that case no error is reported.
	optional bool
	// named means that the keys of the rows are names without the namespace.
	named bool
	reset func() // called when a list is complete, and when the connection is lost; may be nil
	after func() // called after all changes of an event or a list, with the lock held; may be nil
	store interface {
		Run(ctx context.Context)
		Restart()
		Clear()
		Forget(keys ...string)
	}

	// The follower's lock guards the fields below.
	loaded bool      // all were listed at least once
	live   bool      // changes are being watched
	heard  time.Time // when it was last live
	err    error     // why it isn't live
}

// follow connects a kind to its source. row converts an object to a row. Nil rows are ignored. set stores a row, or
// removes it if the row is nil. The caller of set holds the lock. After a broken connection, the objects are listed
// again, because the API server may have been restored from a backup.
func follow[O runtime.Object, R any](f *Follower, k *kind, from watch.Source, row func(O) *R, set func(key string, is *R)) *kind {
	k.store = watch.New(watch.Options[O, *R]{
		Name: k.name, Source: from, Namespaces: !k.named, Relist: true,
		Keep: func(o O) (*R, error) {
			if r := row(o); r != nil {
				return r, nil
			}
			return nil, watch.ErrSkip
		},
		Changed: func(changes []watch.Change[*R], list string) {
			if list != "" && k.reset != nil {
				k.reset()
			}
			f.change(k, func() {
				k.loaded = k.loaded || list != ""
				for _, c := range changes {
					if c.Is != nil {
						set(c.Key, c.Is.Value)
					} else {
						set(c.Key, nil)
					}
				}
				if k.after != nil {
					k.after()
				}
			})
		},
		Health: func(err error) {
			if err == nil {
				f.up(k)
				return
			}
			if k.reset != nil {
				k.reset()
			}
			f.down(k, err)
		},
	})
	return k
}

// isRefused reports whether the API server rejects the user's credentials or denies permission.
func isRefused(err error) bool { return watch.Refused(err) }

// isSilence reports whether the API server didn't respond at all.
func isSilence(err error) bool {
	var said apierrors.APIStatus
	var silent net.Error // also url.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &said):
		return false
	}
	return errors.As(err, &silent) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF)
}
