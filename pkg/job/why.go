package job

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/runtime/rules"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// Why explains in one sentence why a job doesn't make progress, or how it ended. It also contains the facts behind this explanation.
type Why struct {
	Job      string `json:"job"` // user/name
	State    string `json:"state"`
	Sentence string `json:"sentence"`
	// Remedy lists possible remedies, the most likely first.
	Remedy []string `json:"remedy,omitempty"`
	Facts  []Fact   `json:"facts,omitempty"`
	// Log contains the last lines of a failed program, or the lines around the line that identified its failure.
	Log []string `json:"log,omitempty"`

	others []string // titles of the jobs that the explanation names
}

// Fact is a known fact about a job.
type Fact struct {
	What string `json:"what"`
	Text string `json:"text"`
}

func (w *Why) fact(what, text string) {
	if text != "" {
		w.Facts = append(w.Facts, Fact{what, text})
	}
}

// evidence holds the data from which an explanation is made.
type evidence struct {
	*Detail
	now    time.Time
	events []api.Event // the events of the job and its pods, latest first
	nodes  map[string]*corev1.Node
	// volumes maps the claims of the pods' storages to the machines that have them. It is nil if all machines have the storages.
	volumes map[string]*corev1.NodeSelector
	// cells maps each machine to the kind of its cells. It is nil if the kinds aren't known.
	cells map[string]kind
	// gang is the scheduler's explanation. If it is nil, schedulerErr may explain why.
	gang         *schedulerapi.Why
	schedulerErr error
	// alone maps the names of Frameworks to the titles of jobs that hold cells with pods outside of gangs.
	alone map[string]string
	// controllerErr is the error of the request to the job controller, or nil.
	controllerErr error
	// cutOff reports whether the submission was interrupted before it stored the job's commands.
	cutOff bool
	rules  *rules.Set
}

// Why explains a job to a caller who may know the names of all jobs.
func (c *Client) Why(ctx context.Context, j *Job) (*Why, error) { return c.WhyFor(ctx, j, nil) }

// WhyFor explains a job to a caller who may not know the names of all jobs; see NameOf.
func (c *Client) WhyFor(ctx context.Context, j *Job, names NameOf) (*Why, error) {
	e, err := c.evidence(ctx, j)
	if err != nil {
		return nil, err
	}
	w := e.explain()
	names.why(w, j)
	return w, nil
}

func (c *Client) evidence(ctx context.Context, j *Job) (*evidence, error) {
	e := &evidence{now: c.Now(), rules: c.ExitRules(ctx)}
	if !j.Live {
		e.Detail = archivedDetail(j)
		return e, nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if e.Detail, err = c.Detail(ctx, j); err != nil {
			return err
		}
		if errors.Is(e.historyErr, ErrNoController) && !errors.Is(e.historyErr, ErrClosed) {
			e.controllerErr = e.historyErr
		}
		if e.group != "" {
			e.gang, e.schedulerErr = c.Scheduler.Why(ctx, e.VirtualCluster, e.group)
			e.alone = c.titles(ctx, e.gang)
		} else {
			e.schedulerErr = e.queueErr
		}
		if e.events, err = c.events(ctx, j, e.suspects()); err != nil {
			return err
		}
		e.volumes, err = c.volumes(ctx, e.pods)
		e.cells = c.readCells(ctx, e)
		return err
	})
	g.Go(func() (err error) {
		e.nodes, err = c.nodes(ctx)
		return err
	})
	g.Go(func() error {
		if j.framework.Annotations[v1.AnnotationRuntime] == "" {
			return nil
		}
		s, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, v1.SpecSecretName(j.Object), metav1.GetOptions{})
		e.cutOff = apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(s, j.framework)
		return nil
	})
	return e, c.Explain(g.Wait())
}

// titles returns the titles of jobs that hold cells, if the scheduler knows only their pods, by the names of their Frameworks. The title of a removed
// job is empty.
func (c *Client) titles(ctx context.Context, g *schedulerapi.Why) map[string]string {
	out := map[string]string{}
	if g == nil || g.Explanation == nil {
		return out
	}
	holders := slices.Clone(g.Explanation.Holders)
	if g.Alternative != nil {
		holders = append(holders, g.Alternative.Holders...)
	}
	for _, h := range holders {
		object := ObjectOfGroup(h.Gang)
		if _, known := out[object]; known || JobOfGroup(h.Gang) != h.Gang {
			continue
		}
		out[object] = ""
		if f, err := c.Frameworks.Get(ctx, object); err == nil {
			out[object] = Of(f).Title()
		}
	}
	return out
}

// ExitRules returns the rules that explain exit codes: the administrator's rules if they can be read, or the built-in rules.
func (c *Client) ExitRules(ctx context.Context) *rules.Set {
	m, err := c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, api.RulesConfigMap, metav1.GetOptions{})
	if err != nil {
		return rules.Builtin()
	}
	set, found := rules.Parse(api.RulesConfigMap, []byte(m.Data[api.RulesKey]))
	if found.Err() != nil {
		return rules.Builtin()
	}
	return set
}

// maxSuspects bounds the number of objects whose events are read. A few pods are enough, because a problem usually affects all pods.
const maxSuspects = 20

// suspects returns the names of objects whose events may explain the problem: the job's Framework, and pods that don't run.
func (e *evidence) suspects() []string {
	out := []string{e.Framework}
	for i := range e.pods {
		if p := &e.pods[i]; p.Status.Phase != corev1.PodRunning && p.Status.Phase != corev1.PodSucceeded && len(out) < maxSuspects {
			out = append(out, p.Name)
		}
	}
	return out
}

// events reads the events of objects, latest first, from the controller. If the controller fails, events reads them from the API server, which has to
// search the events of all jobs for each object.
func (c *Client) events(ctx context.Context, j *Job, names []string) ([]api.Event, error) {
	out, err := c.collected(ctx, j)
	if err != nil {
		if out, err = c.eventsOf(ctx, j, names); err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b api.Event) int { return b.Time.Compare(a.Time) })
	return out, nil
}

// saysOf reports whether an event concerns a pod, and not an earlier pod with the same name.
func saysOf(e *api.Event, p *corev1.Pod) bool {
	return e.Object == "Pod/"+p.Name && !e.Time.Before(p.CreationTimestamp.Time)
}

// nodes returns the machines by name, or nil if the caller may not read them.
func (c *Client) nodes(ctx context.Context) (map[string]*corev1.Node, error) {
	list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]*corev1.Node{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}
