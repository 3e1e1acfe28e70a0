package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Events returns the events of a job and its pods, the latest last. It reads them from the job controller, which keeps all events. If the job
// controller doesn't respond, Events reads them from the cluster, which keeps only recent events, and note explains why earlier events are missing.
func (c *Client) Events(ctx context.Context, j *Job) (list []api.Event, note, err error) {
	list, err = c.collected(ctx, j)
	switch {
	case err == nil:
	case !j.Live:
		return nil, nil, c.Explain(err)
	default:
		note = fmt.Errorf("earlier events are not shown: %w", err)
		if list, err = c.eventsOf(ctx, j, podNames(j, manyNames)); err != nil {
			return nil, nil, c.Explain(fmt.Errorf("read the events of %s: %w", j.Title(), err))
		}
	}
	slices.SortStableFunc(list, func(a, b api.Event) int { return a.Time.Compare(b.Time) })
	return list, note, nil
}

// collected returns the events that the job controller keeps. It leaves out the events of an earlier job of the same name.
func (c *Client) collected(ctx context.Context, j *Job) ([]api.Event, error) {
	all, err := c.History.Events(ctx, j.Object)
	if !j.Live {
		return all, err
	}
	if apierrors.IsNotFound(err) {
		return nil, nil // the job exists, but has no events yet
	}
	return slices.DeleteFunc(all, func(e api.Event) bool { return e.Time.Before(j.framework.CreationTimestamp.Time) }), err
}

// manyNames is the number of pods from which on one request reads the events of all pods. For fewer pods, there is one request per pod.
const manyNames = 40

// podNames returns the names of the pods of a live job, which are the same in all attempts. It stops after most+1 names.
func podNames(j *Job, most int) []string {
	names := []string{}
	for i := range j.framework.Spec.TaskRoles {
		r := &j.framework.Spec.TaskRoles[i]
		for k := range r.TaskNumber {
			if len(names) > most {
				return names
			}
			names = append(names, v1.PodName(j.Object, r.Name, k))
		}
	}
	return names
}

// eventsOf reads the events of a job and its objects from the API server.
func (c *Client) eventsOf(ctx context.Context, j *Job, names []string) ([]api.Event, error) {
	selectors := []string{"involvedObject.name=" + j.Object}
	for _, name := range names {
		if name != j.Object {
			selectors = append(selectors, "involvedObject.name="+name)
		}
	}
	if len(selectors) > manyNames {
		selectors = []string{""}
	}
	lists := make([][]api.Event, len(selectors))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, selector := range selectors {
		g.Go(func() (err error) {
			lists[i], err = c.selected(ctx, j, selector)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(lists...), nil
}

// selected reads the events that match a field selector, page by page, and returns those of the job. It leaves out the events of an earlier job of
// the same name.
func (c *Client) selected(ctx context.Context, j *Job, selector string) ([]api.Event, error) {
	var out []api.Event
	for o := (metav1.ListOptions{FieldSelector: selector, Limit: pageSize}); ; {
		page, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			e, about := &page.Items[i], &page.Items[i].InvolvedObject
			known := about.Name == j.Object || strings.HasPrefix(about.Name, j.Object+"-")
			same := about.UID == j.framework.UID || !e.CreationTimestamp.Time.Before(j.framework.CreationTimestamp.Time)
			if known && same {
				out = append(out, NewEvent(e))
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return out, nil
		}
	}
}

// NewEvent converts a Kubernetes event to the archive's form.
func NewEvent(e *corev1.Event) api.Event {
	last := e.LastTimestamp.Time
	for _, t := range []time.Time{e.EventTime.Time, e.CreationTimestamp.Time} {
		if last.IsZero() {
			last = t
		}
	}
	count := max(e.Count, 1)
	if e.Series != nil {
		count, last = e.Series.Count, e.Series.LastObservedTime.Time
	}
	return api.Event{UID: string(e.UID), Time: last, Type: e.Type, Reason: e.Reason, Message: e.Message,
		Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Count: count, Source: cmp.Or(e.Source.Component, e.ReportingController)}
}
