package controller

import (
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube/watch"
)

// eventsEvery is how often the collected events are written to the archive. Each time, they are written in one transaction.
const eventsEvery = 2 * time.Second

// eventSink collects the events of jobs until they are archived. After that it doesn't keep them.
type eventSink struct {
	mu      sync.Mutex
	pending map[string]map[string]api.Event // by Framework and UID
	writing map[string]map[string]api.Event // the pending events that were taken last
}

func newEventSink() *eventSink { return &eventSink{pending: map[string]map[string]api.Event{}} }

// Events returns the events of a job that aren't in the archive yet. Only the leading replica has such events.
func (c *Controller) Events(framework string) []api.Event {
	c.events.mu.Lock()
	defer c.events.mu.Unlock()
	found := map[string]api.Event{}
	maps.Copy(found, c.events.writing[framework])
	maps.Copy(found, c.events.pending[framework])
	return slices.Collect(maps.Values(found))
}

// runEvents archives the Kubernetes events of jobs, because the API server removes them after an hour.
func (r *reconciler) runEvents(ctx context.Context) error {
	watcher, ok := r.api.(client.WithWatch)
	if !ok {
		return nil
	}
	sink := r.events
	store := sink.follow(sourceOf(watcher, r.o.Namespace, &corev1.EventList{}, client.ListOptions{}), slog.New(logr.ToSlogHandler(r.o.Log)))
	go store.Run(ctx)
	ticker := time.NewTicker(eventsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			r.flushEvents(last, sink)
			cancel()
			return nil
		case <-ticker.C:
			r.flushEvents(ctx, sink)
		}
	}
}

// follow watches events and collects those that are new or changed, but doesn't keep them in the store. It ignores the removal of an event,
// because by then the event's job may have been removed from the archive.
func (s *eventSink) follow(from watch.Source, log *slog.Logger) (store *watch.Store[*taken]) {
	store = watch.New(watch.Options[*corev1.Event, *taken]{
		Name: "events", Source: from, Log: log,
		Keep: func(e *corev1.Event) (*taken, error) {
			if framework := frameworkOf(e); framework != "" {
				return &taken{framework, toEvent(e)}, nil
			}
			return nil, watch.ErrSkip
		},
		Changed: func(changes []watch.Change[*taken], _ string) {
			keys := make([]string, 0, len(changes))
			for i := range changes {
				if is := changes[i].Is; is != nil {
					s.put(is.Value)
					keys = append(keys, changes[i].Key)
				}
			}
			store.Forget(keys...)
		},
	})
	return store
}

// taken is an event with the Framework of its job.
type taken struct {
	framework string
	event     api.Event
}

func (r *reconciler) flushEvents(ctx context.Context, sink *eventSink) {
	defer sink.written()
	for framework, events := range sink.take() {
		list := make([]api.Event, 0, len(events))
		for _, e := range events {
			list = append(list, e)
		}
		if err := r.archive(ctx, func(ctx context.Context) error { return r.o.Store.SaveEvents(ctx, framework, list) }); err != nil {
			r.o.Log.Error(err, "archive events", "framework", framework)
			sink.giveBack(framework, events)
		}
	}
}

// podOfJob matches the name of a task's pod: FRAMEWORK-ROLE-INDEX.
var podOfJob = regexp.MustCompile(`^([a-z0-9]{1,63})-[a-z0-9]{1,63}-\d+$`)

// frameworkOf returns the name of the Framework to whose job an event belongs, or "".
func frameworkOf(e *corev1.Event) string {
	switch e.InvolvedObject.Kind {
	case "Framework":
		return e.InvolvedObject.Name
	case "Pod":
		if m := podOfJob.FindStringSubmatch(e.InvolvedObject.Name); m != nil {
			return m[1]
		}
	}
	return ""
}

func (s *eventSink) put(e *taken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[e.framework] == nil {
		s.pending[e.framework] = map[string]api.Event{}
	}
	s.pending[e.framework][e.event.UID] = e.event
}

func (s *eventSink) take() map[string]map[string]api.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.pending
	s.pending, s.writing = map[string]map[string]api.Event{}, out
	return out
}

// written drops the events that take returned last, because they are in the archive now.
func (s *eventSink) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = nil
}

func (s *eventSink) giveBack(framework string, events map[string]api.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := maps.Clone(events)
	maps.Copy(again, s.pending[framework])
	s.pending[framework] = again
}

// toEvent converts a Kubernetes event. It supports both forms of events: older events have a count, and newer events have a series.
func toEvent(e *corev1.Event) api.Event {
	out := api.Event{
		UID: string(e.UID), Type: e.Type, Reason: e.Reason, Message: e.Message,
		Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Count: max(1, e.Count), Source: e.Source.Component,
	}
	if out.Source == "" {
		out.Source = e.ReportingController
	}
	switch {
	case e.Series != nil:
		out.Count, out.Time = e.Series.Count, e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		out.Time = e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		out.Time = e.EventTime.Time
	default:
		out.Time = e.CreationTimestamp.Time
	}
	return out
}
