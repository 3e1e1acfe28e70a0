package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	// behindFor is how long a list waits until the index has caught up with the API server.
	behindFor = 3 * time.Second
	behindAsk = 100 * time.Millisecond
	behindNow = 2 * time.Millisecond
)

// list contains the data that Controller.List needs.
type list struct {
	index  *listing.Index
	cache  *caches
	synced []toolscache.InformerSynced
	store  archive.Store
	api    rest.Interface // apart from the controller's own, which may have to wait behind thousands of pods
}

// newList returns a list that follows the caches. The caches must not be started yet.
func newList(o *Options, config *rest.Config, cache *caches) (*list, error) {
	own := rest.CopyConfig(config)
	own.GroupVersion, own.APIPath = &schema.GroupVersion{Group: v1.GroupVersion.Group, Version: v1.GroupVersion.Version}, "/apis"
	own.NegotiatedSerializer, own.RateLimiter, own.QPS = scheme.Codecs.WithoutConversion(), nil, -1
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	l := &list{index: listing.NewIndex(), cache: cache, store: o.Store, api: client}
	for informer, handler := range map[toolscache.SharedIndexInformer]toolscache.ResourceEventHandlerFuncs{
		cache.frameworks: followed(func(f *v1.Framework) { l.index.Put(listing.NewBrief(f)) }, func(f *v1.Framework) { l.index.Remove(listing.NewBrief(f), true) }, frameworkFrom),
		cache.pods: followed(func(p *corev1.Pod) { l.index.Pod(p.Labels[v1.LabelFramework], p.UID, listing.NewStart(p), 0) },
			func(p *corev1.Pod) { l.index.DeletePod(p.Labels[v1.LabelFramework], p.UID, 0) }, podFrom),
	} {
		r, err := informer.AddEventHandler(handler)
		if err != nil {
			return nil, fmt.Errorf("follow the jobs: %w", err)
		}
		l.synced = append(l.synced, r.HasSynced)
	}
	return l, nil
}

// followed returns an event handler for an informer. The handler converts objects with from, and passes them to put or gone.
func followed[T any](put, gone func(*T), from func(any) *T) toolscache.ResourceEventHandlerFuncs {
	with := func(do func(*T)) func(any) {
		return func(o any) {
			if one := from(o); one != nil {
				do(one)
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: with(put), UpdateFunc: func(_, o any) { with(put)(o) }, DeleteFunc: with(gone)}
}

// frameworkFrom returns the Framework in an event of an informer, or nil if the object isn't a Framework.
func frameworkFrom(o any) *v1.Framework {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	f, _ := o.(*v1.Framework)
	return f
}

// Leads reports whether this replica leads.
func (c *Controller) Leads() bool { return !c.o.LeaderElection || c.Leader() == c.o.Identity }

// List returns a page of live and archived jobs. It works only on the leading replica, because other replicas see changes at other times, so that
// pages from several replicas wouldn't fit together. Errors that wrap listing.ErrUnavailable are temporary.
func (c *Controller) List(ctx context.Context, f listing.Filter) (*listing.Page, error) {
	l := c.list.Load()
	if l == nil || !c.Leads() {
		return nil, fmt.Errorf("%w: this replica isn't the leader", listing.ErrUnavailable)
	}
	if err := l.fresh(ctx, c.o.Namespace); err != nil {
		return nil, err
	}
	rows, err := l.index.Rows(f, f.Limit+1)
	if err != nil {
		return nil, err
	}
	page, missing, err := listing.Merge(ctx, f, listing.Live{Rows: rows, Exists: l.index.Has, Named: l.index.Named, Deleted: l.gone}, c.o.Store)
	if err != nil {
		return nil, err
	}
	if missing != nil {
		if ctx.Err() != nil {
			return nil, missing
		}
		c.o.Log.Error(missing, "list jobs of the archive")
		page.Note = listing.Without(fmt.Errorf("the history of jobs fails: %w; see its log: paictl service logs -n job-controller", missing))
	}
	return page, nil
}

// gone reports whether a Framework is missing from the controller's cache. It doesn't use the index, because the index follows the cache with a
// delay.
func (l *list) gone(_ context.Context, job *api.Job) (bool, error) {
	f := l.cache.framework(job.Framework)
	return f == nil || string(f.UID) != job.UID, nil
}

// fresh waits until the index has caught up with the API server, so that users see the jobs that they have submitted. It compares the numbers of
// jobs, which costs the API server only one row of a table. If one job was added and another removed at the same time, the new job may be missing
// for some milliseconds.
func (l *list) fresh(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, behindFor)
	defer cancel()
	behind := fmt.Errorf("%w: the controller's index isn't up to date with the API server yet", listing.ErrUnavailable)
	for {
		for _, synced := range l.synced {
			if !synced() {
				return behind
			}
		}
		n, known, err := l.count(ctx, namespace)
		if err != nil {
			if ctx.Err() != nil {
				return behind
			}
			return fmt.Errorf("%w: %w", listing.ErrUnavailable, err)
		}
		if !known || l.reaches(ctx, n) {
			return nil
		}
		if ctx.Err() != nil {
			return behind
		}
	}
}

// reaches waits for a short time until the index has n jobs, and reports whether this happens.
func (l *list) reaches(ctx context.Context, n int) bool {
	for wait := time.After(behindAsk); ; {
		if l.index.Len() == n {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-wait:
			return false
		case <-time.After(behindNow):
		}
	}
}

// count returns the current number of Frameworks in the API server. known is false if the API server doesn't report it.
func (l *list) count(ctx context.Context, namespace string) (n int, known bool, err error) {
	body, err := l.api.Get().Namespace(namespace).Resource("frameworks").Param("limit", "1").Param("includeObject", "None").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	if err != nil {
		return 0, false, fmt.Errorf("ask the API server how many jobs there are: %w", err)
	}
	var table struct {
		Metadata struct {
			Continue           string `json:"continue"`
			RemainingItemCount *int   `json:"remainingItemCount"`
		} `json:"metadata"`
		Rows []json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal(body, &table); err != nil {
		return 0, false, errors.New("ask the API server for the number of jobs: its answer is not a table")
	}
	more := table.Metadata.RemainingItemCount
	if more == nil {
		return len(table.Rows), table.Metadata.Continue == "", nil
	}
	return len(table.Rows) + *more, true, nil
}
