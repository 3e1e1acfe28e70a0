package job

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// maxPage is the largest number of rows that one request to the job controller asks for.
const maxPage = 1000

// List lists live jobs and jobs that only the history has. The job controller has both in memory. If it doesn't respond, or is too old to list jobs,
// List reads all live jobs from the API server.
func (c *Client) List(ctx context.Context, f Filter) (*Page, error) {
	if _, err := listing.ReadCursor(f.Cursor); err != nil {
		return nil, err
	}
	page, err := c.Listed(ctx, f, c.History)
	if err == nil || ctx.Err() != nil {
		return page, err
	}
	return c.gathered(ctx, f, err)
}

// Lister returns lists of jobs page by page. The job controller is a Lister, and so is a cache that watches the jobs like the controller.
type Lister interface {
	List(ctx context.Context, f Filter) (*Page, error)
}

// Listed reads jobs from a Lister and asks the scheduler which of the jobs without a machine are queued, and at which position. If the filter selects
// jobs by their place in the queue, Listed reads pages until it has a full page of jobs that the filter selects.
func (c *Client) Listed(ctx context.Context, f Filter, from Lister) (*Page, error) {
	out := &Page{Items: []Row{}}
	ask := f
	for {
		ask.Limit = maxPage
		if f.Limit > 0 {
			ask.Limit = min(maxPage, f.Limit+1-len(out.Items))
		}
		page, err := from.List(ctx, ask)
		if err != nil {
			return nil, err
		}
		if err := c.Place(ctx, f.VirtualCluster, page.Items); err != nil {
			return nil, err
		}
		for i := range page.Items {
			if f.Selects(&page.Items[i]) {
				out.Items = append(out.Items, page.Items[i])
			}
		}
		out.Note = page.Note
		if f.Limit > 0 && len(out.Items) > f.Limit {
			out.Items = out.Items[:f.Limit]
			out.Next = listing.NewCursor(&out.Items[f.Limit-1])
			return out, nil
		}
		if page.Next == "" {
			return out, nil
		}
		ask.Cursor = page.Next
	}
}

// Place asks the scheduler which of the jobs without a machine are in its queue. If the scheduler doesn't respond, no job counts as queued.
func (c *Client) Place(ctx context.Context, vc string, rows []Row) error {
	var unplaced []*Row
	for i := range rows {
		if rows[i].Unplaced {
			unplaced = append(unplaced, &rows[i])
			rows[i].Unplaced = false
		}
	}
	queue, err := c.places(ctx, vc, unplaced)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return nil //nolint:nilerr // as said above
	}
	for _, r := range unplaced {
		if q, ok := queue[r.Framework]; ok {
			r.State, r.Position = string(Queued), q.PositionInVC
		}
	}
	return nil
}

// gathered lists jobs without the help of the job controller. why is the error of the request to the controller.
func (c *Client) gathered(ctx context.Context, f Filter, why error) (*Page, error) {
	rows, err := c.live(ctx, &f)
	if err != nil {
		return nil, c.Explain(err)
	}
	there, named := map[string]bool{}, map[string]bool{}
	for i := range rows {
		there[rows[i].UID], named[rows[i].Framework] = true, true
	}
	known := listing.Live{Exists: func(uid string) bool { return there[uid] }, Named: func(framework string) bool { return named[framework] }, Deleted: c.gone}
	if known.Rows, err = listing.Select(rows, &f); err != nil {
		return nil, err
	}
	var history listing.Archive = c.History
	if errors.Is(why, ErrNoController) {
		history = noHistory{why} // it needn't be queried twice
	}
	page, missing, err := listing.Merge(ctx, f, known, history)
	switch {
	case err != nil:
		return nil, c.Explain(err)
	case errors.Is(missing, ErrClosed), errors.Is(missing, errFailing):
		page.Note = listing.Without(missing) + "; " + hint.Of(missing)
	case errors.Is(missing, ErrNoController):
		page.Note = listing.Without(missing)
	case missing != nil:
		return nil, c.Explain(missing)
	}
	return page, nil
}

// noHistory is a history that can't be read.
type noHistory struct{ err error }

// Jobs implements listing.Archive. It returns the error.
func (n noHistory) Jobs(context.Context, api.JobQuery) (*api.JobPage, error) { return nil, n.err }

// Job implements listing.Archive. It returns the error.
func (n noHistory) Job(context.Context, string) (*api.JobDetail, error) { return nil, n.err }

// gone reports whether the Framework of a job no longer exists.
func (c *Client) gone(ctx context.Context, job *api.Job) (bool, error) {
	f, err := c.Frameworks.Get(ctx, job.Framework)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && string(f.UID) != job.UID, err
}

// live reads the jobs whose Frameworks exist.
func (c *Client) live(ctx context.Context, f *Filter) ([]Row, error) {
	pending := map[string][]corev1.Pod{}
	var queue Queue
	// Read the pods after the Frameworks, so that a pod that a Framework names and that isn't in the list of pending pods has begun.
	frameworks, err := c.Frameworks.List(ctx, selector(f))
	if err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		// Only pods that have not started tell more than their Frameworks.
		list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1.LabelFramework, FieldSelector: "status.phase=" + string(corev1.PodPending)})
		if err != nil {
			return err
		}
		for i := range list.Items {
			name := list.Items[i].Labels[v1.LabelFramework]
			pending[name] = append(pending[name], list.Items[i])
		}
		return nil
	})
	g.Go(func() error {
		queue = c.queue(ctx, f.VirtualCluster)
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []Row
	for i := range frameworks {
		one := &frameworks[i]
		out = append(out, listing.NewRow(api.Summary(one), StateOf(one, append([]corev1.Pod{}, pending[one.Name]...), queue), true))
	}
	return out, nil
}

// selector returns the label selector for the part of a filter that the API server can apply.
func selector(f *Filter) string {
	var parts []string
	for label, value := range map[string]string{v1.LabelUser: f.User, v1.LabelVC: f.VirtualCluster} {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			parts = append(parts, label+"="+value)
		}
	}
	return strings.Join(parts, ",")
}
