package app

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
	"github.com/openpai/paictl/pkg/status"
)

// StatusSource reads the state of the whole cluster.
type StatusSource interface {
	Read(ctx context.Context) (*status.Cluster, error)
	// Follow calls give with the current state, and then with each newer state. Two calls are at least pause apart, and
	// more if give takes long.
	Follow(ctx context.Context, pause time.Duration, give func(*status.Cluster) error) error
}

// Status returns the state of the cluster that the caller may read. parts selects parts of the state.
func (d *Actions) Status(ctx context.Context, parts []string) (*status.Cluster, error) {
	if err := d.readsStatus(parts); err != nil {
		return nil, err
	}
	c, err := d.app.Status.Read(ctx)
	if err != nil {
		return nil, err
	}
	return d.statusView(&d.caller.Subject).cut(c).Only(parts), nil
}

func (d *Actions) readsStatus(parts []string) error {
	if err := rules.Class("status.read", &d.caller.Subject); err != nil {
		return err
	}
	if d.app.Status == nil {
		return &wire.Error{Status: http.StatusNotImplemented, Code: codeNotImplemented, Message: "this server doesn't read the state of the cluster", Remedy: "use a kubeconfig: paictl status --kubeconfig FILE"}
	}
	if err := status.CheckParts(parts); err != nil {
		return wire.Bad(`"parts": ` + err.Error())
	}
	return nil
}

// statusView determines which part of the cluster's state a caller may read.
type statusView struct {
	visible rules.Visibility
	grants  rules.Grants
	cutter  *status.Cutter // nil: the caller sees all
}

func (d *Actions) statusView(s *rules.Subject) *statusView {
	v := &statusView{visible: rules.Visible(s), grants: s.Grants}
	if rules.Class("kube.read", s) != nil {
		v.cutter = &status.Cutter{View: status.View{VC: v.grants.MayUse, Names: func(user, name string) string { return d.nameFor(v.visible, user, name) }}}
	}
	return v
}

func (v *statusView) cut(c *status.Cluster) *status.Cluster {
	if v.cutter == nil {
		return c
	}
	return v.cutter.Cut(c)
}

// StatusWatcher receives the state of a cluster. If a method returns an error, the watch ends.
type StatusWatcher interface {
	// Snapshot receives the whole state, which replaces all earlier states.
	Snapshot(c *status.Cluster) error
	Changed(d *status.Delta) error
	// Heartbeat is called periodically, even if the state doesn't change.
	Heartbeat() error
}

// statusPause is the minimum time between two changes of a watch.
const statusPause = 250 * time.Millisecond

// WatchStatus sends the state of the cluster, as Status returns it, and then the changes. It returns when the context ends, or when the caller may no
// longer read the state.
func (d *Actions) WatchStatus(ctx context.Context, parts []string, to StatusWatcher) error {
	if err := d.readsStatus(parts); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	models, sent, failed := make(chan *status.Cluster), make(chan struct{}), make(chan error, 1)
	view := d.statusView(&d.caller.Subject)
	go func() {
		failed <- d.app.Status.Follow(ctx, statusPause, func(c *status.Cluster) error {
			select {
			case models <- c:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			select {
			case <-sent:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	changed, unregister := d.app.People.Changed()
	defer unregister()
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	var latest, shown *status.Cluster
	for {
		select {
		case err := <-failed:
			return err
		case latest = <-models:
		case sent <- struct{}{}: // Follow measures how long a change takes
			continue
		case <-changed:
		case <-tick.C:
			if err := to.Heartbeat(); err != nil {
				return err
			}
		}
		subject, err := d.statusReader()
		if err != nil {
			return err
		}
		if err := rules.Class("status.read", subject); err != nil {
			return err
		}
		if now := d.statusView(subject); !view.equals(now) {
			view, shown = now, nil
		}
		if latest == nil {
			continue
		}
		is := view.cut(latest).Only(parts)
		switch {
		case shown == nil, shown.Name != is.Name, shown.Kubernetes != is.Kubernetes: // a Delta has neither of them
			err = to.Snapshot(is)
		case is.At.Equal(shown.At):
		default:
			if delta := status.NewDelta(shown, is); delta != nil {
				err = to.Changed(delta)
			}
		}
		if err != nil {
			return err
		}
		shown = is
	}
}

// statusReader returns the caller with their current grants. An operator isn't a person, so an operator's grants can't change.
func (d *Actions) statusReader() (*rules.Subject, error) {
	if d.caller.Operator {
		return &d.caller.Subject, nil
	}
	return d.now()
}

// equals reports whether two views show the same state.
func (v *statusView) equals(o *statusView) bool {
	return (v.cutter == nil) == (o.cutter == nil) && reflect.DeepEqual(v.visible, o.visible) && reflect.DeepEqual(v.grants, o.grants)
}
