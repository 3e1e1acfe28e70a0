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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/framework/api"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

// Events are those of a job and its pods, the latest last: the cluster's, and those that the archive kept.
// note says why the archive's are missing.
func (c *Client) Events(ctx context.Context, j *Job) (list []api.Event, note, err error) {
	seen := map[string]bool{}
	if j.Live() {
		if list, err = c.liveEvents(ctx, j); err != nil {
			return nil, nil, err
		}
		for i := range list {
			seen[list[i].UID] = true
		}
	}
	kept, err := c.History.Events(ctx, j.Object)
	switch {
	case err == nil:
	case !j.Live():
		return nil, nil, c.Explain(err)
	default:
		note = fmt.Errorf("earlier events are not shown: %w", err)
	}
	for _, e := range kept {
		if !seen[e.UID] {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b api.Event) int { return a.Time.Compare(b.Time) })
	return list, note, nil
}

// manyNames is from how many pods on all events are read at once instead of those of each pod.
const manyNames = 40

// liveEvents reads those that the cluster still has. Names of pods are the same for all attempts.
func (c *Client) liveEvents(ctx context.Context, j *Job) ([]api.Event, error) {
	selectors := []string{"involvedObject.name=" + j.Object}
	for i := range j.Framework.Spec.TaskRoles {
		r := &j.Framework.Spec.TaskRoles[i]
		for k := range r.TaskNumber {
			if len(selectors) > manyNames {
				break
			}
			selectors = append(selectors, "involvedObject.name="+v1.PodName(j.Object, r.Name, k))
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
			lists[i], err = c.eventsOf(ctx, j, selector)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, c.Explain(fmt.Errorf("read the events of %s: %w", j.Title(), err))
	}
	return slices.Concat(lists...), nil
}

// eventsOf reads the events that a field selector fits, page by page, and keeps the job's. One that had
// its name before told its own.
func (c *Client) eventsOf(ctx context.Context, j *Job, selector string) ([]api.Event, error) {
	var out []api.Event
	for o := (metav1.ListOptions{FieldSelector: selector, Limit: pageSize}); ; {
		page, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			e, about := &page.Items[i], &page.Items[i].InvolvedObject
			known := about.Name == j.Object || strings.HasPrefix(about.Name, j.Object+"-")
			same := about.UID == j.Framework.UID || !e.CreationTimestamp.Time.Before(j.Framework.CreationTimestamp.Time)
			if known && same {
				out = append(out, NewEvent(e))
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return out, nil
		}
	}
}

// NewEvent is an event of Kubernetes as the archive has it.
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
