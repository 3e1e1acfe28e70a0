package job

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openpai/paictl/pkg/framework/api"
	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/hint"
)

// historyPage is how many rows of the history are asked for at once, at most.
const historyPage = 1000

// Filter selects jobs. Empty fields select all.
type Filter struct {
	User, VirtualCluster string
	// Keyword is a part of the user's, the job's or the virtual cluster's name.
	Keyword string
	// InName is a part of the job's own name.
	InName string
	Phases []Phase
	Since  time.Time // of submission
	// Limit is how many rows a page has; 0 is all.
	Limit int
	// Cursor is Page.Next of the page before.
	Cursor string
}

// Row is one job of a list. Its State is one of the phases.
type Row struct {
	api.Job
	Position int        `json:"position,omitempty"`
	RetryAt  *time.Time `json:"retryAt,omitempty"`
	// Live reports whether the job's Framework is there.
	Live bool `json:"live"`
}

// At is where the job is on its way.
func (r *Row) At() State { return State{Phase(r.State), r.Position, r.RetryAt} }

func newRow(job api.Job, s State, live bool) Row {
	job.State = string(s.Phase)
	return Row{Job: job, Position: s.Position, RetryAt: s.RetryAt, Live: live}
}

// Page is a part of a list, newest submission first.
type Page struct {
	Items []Row `json:"items"`
	// Next is the cursor of the following page, or "".
	Next string `json:"next,omitempty"`
	// Note says what could not be asked.
	Note string `json:"note,omitempty"`
}

// List lists jobs: those that the API has, and those that only the history has. Without a controller
// that answers it shows the former, and says so.
func (c *Client) List(ctx context.Context, o Filter) (*Page, error) {
	after, err := readCursor(o.Cursor)
	if err != nil {
		return nil, err
	}
	// The history first: a job that ends in between is then in both lists, not in none.
	old, note, err := c.ended(ctx, o, after)
	if err != nil {
		return nil, c.Explain(err)
	}
	live, err := c.live(ctx, o)
	if err != nil {
		return nil, c.Explain(err)
	}
	there := map[string]bool{}
	page := &Page{Items: []Row{}, Note: note}
	for _, r := range live {
		there[r.UID] = true
		if o.fits(&r) && after.before(&r) {
			page.Items = append(page.Items, r)
		}
	}
	for i := range old {
		if r := newRow(old[i], archivedState(&old[i]), false); !there[r.UID] && o.fits(&r) {
			page.Items = append(page.Items, r)
		}
	}
	slices.SortFunc(page.Items, newestFirst)
	if o.Limit > 0 && len(page.Items) > o.Limit {
		page.Items = page.Items[:o.Limit]
		page.Next = writeCursor(&page.Items[o.Limit-1])
	}
	return page, nil
}

// newestFirst is also the history's order.
func newestFirst(a, b Row) int {
	return cmp.Or(b.Submitted.Compare(a.Submitted), cmp.Compare(b.UID, a.UID))
}

// live reads the jobs that the API has.
func (c *Client) live(ctx context.Context, o Filter) ([]Row, error) {
	pending := map[string][]corev1.Pod{}
	var queue Queue
	// Pods after Frameworks: one that a Framework knows and this list hasn't got has begun.
	frameworks, err := c.Frameworks.List(ctx, o.selector())
	if err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		// Only pods that have not started tell more than the Frameworks do.
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
		queue = c.queue(ctx, o.VirtualCluster)
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []Row
	for i := range frameworks {
		f := &frameworks[i]
		out = append(out, newRow(api.Summary(f), StateOf(f, append([]corev1.Pod{}, pending[f.Name]...), queue), true))
	}
	return out, nil
}

// queue is who waits for GPUs; no one where no scheduler answers, since jobs then wait in no queue.
func (c *Client) queue(ctx context.Context, vc string) Queue {
	q, err := c.Scheduler.Queue(ctx, vc)
	if err != nil {
		return nil
	}
	return NewQueue(q)
}

// ended reads the jobs that the history has, as many as a page may need. A note says why it couldn't.
func (c *Client) ended(ctx context.Context, o Filter, after cursor) (jobs []api.Job, note string, err error) {
	q := api.JobQuery{User: o.User, VirtualCluster: o.VirtualCluster, Keyword: o.Keyword, Since: o.Since, Limit: historyPage}
	if o.Limit > 0 {
		q.Limit = min(historyPage, o.Limit+1)
	}
	if len(o.Phases) > 0 {
		for _, p := range o.Phases {
			if p.Done() && p != Deleted {
				q.States = append(q.States, string(p))
			}
		}
		if slices.Contains(o.Phases, Deleted) {
			q.States = nil
		} else if len(q.States) == 0 {
			return nil, "", nil // only jobs that the API has can be in these states
		}
	}
	if !after.submitted.IsZero() {
		// Times of submission are whole seconds; those of the cursor's own are sorted out below.
		q.Before = after.submitted.Add(time.Second)
	}
	for {
		page, err := c.History.Jobs(ctx, q)
		if errors.Is(err, ErrNoController) || errors.Is(err, errFailing) {
			note := "jobs that finished long ago are not shown: " + err.Error()
			if errors.Is(err, errClosed) || errors.Is(err, errFailing) {
				note += "; " + hint.Of(err)
			}
			return nil, note, nil
		}
		if err != nil {
			return nil, "", err
		}
		for i := range page.Items {
			if after.before(&Row{Job: page.Items[i]}) {
				jobs = append(jobs, page.Items[i])
			}
		}
		// Deleted jobs are few among those that this finds; all others fill the page.
		full := o.Limit > 0 && len(jobs) > o.Limit && !slices.Contains(o.Phases, Deleted)
		if page.Next == "" || full {
			return jobs, "", nil
		}
		q.Cursor = page.Next
	}
}

// selector is what the API server itself can sort out.
func (o *Filter) selector() string {
	var parts []string
	for label, value := range map[string]string{v1.LabelUser: o.User, v1.LabelVC: o.VirtualCluster} {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			parts = append(parts, label+"="+value)
		}
	}
	return strings.Join(parts, ",")
}

func (o *Filter) fits(r *Row) bool {
	has := func(text string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(o.Keyword))
	}
	switch {
	case o.User != "" && r.User != o.User, o.VirtualCluster != "" && r.VirtualCluster != o.VirtualCluster:
		return false
	case r.Submitted.Before(o.Since), !strings.Contains(strings.ToLower(r.Name), strings.ToLower(o.InName)):
		return false
	case len(o.Phases) > 0 && !slices.Contains(o.Phases, Phase(r.State)):
		return false
	}
	return has(r.User) || has(r.Name) || has(r.VirtualCluster)
}

// cursorUID is how many characters of a UID a cursor has.
const cursorUID = 8

// cursor is the last row of a page, by the beginning of its UID, which is less than the UID itself.
type cursor struct {
	submitted time.Time
	uid       string
}

// before reports whether a row comes after the cursor's.
func (c cursor) before(r *Row) bool {
	return c.submitted.IsZero() || newestFirst(Row{Job: api.Job{Submitted: c.submitted, UID: c.uid}}, *r) < 0
}

// writeCursor is short, since people type it: the second, and as much of the UID as tells apart what was submitted in it.
func writeCursor(r *Row) string {
	return strconv.FormatInt(r.Submitted.Unix(), 36) + "-" + r.UID[:min(len(r.UID), cursorUID)]
}

func readCursor(text string) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	at, uid, ok := strings.Cut(text, "-")
	second, err := strconv.ParseInt(at, 36, 64)
	if err != nil || !ok || second <= 0 || len(uid) > cursorUID {
		return cursor{}, hint.Errorf("use the cursor at the end of the page before", "%s is not a cursor", url.QueryEscape(text))
	}
	return cursor{time.Unix(second, 0), uid}, nil
}

// ReadPhases reads the names of states.
func ReadPhases(names []string) ([]Phase, error) {
	var out []Phase
	for _, n := range names {
		p := Phase(strings.ToLower(strings.TrimSpace(n)))
		if !slices.Contains(Phases(), p) {
			return nil, hint.Errorf("the states are: "+strings.Join(PhaseNames(), ", "), "there is no state %q", n)
		}
		out = append(out, p)
	}
	return out, nil
}

// PhaseNames are the names of all states.
func PhaseNames() []string {
	var out []string
	for _, p := range Phases() {
		out = append(out, string(p))
	}
	return out
}
