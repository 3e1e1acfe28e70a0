// Package job shows and changes jobs for paictl: it submits, lists, explains, stops and retries
// them, while they run and after they finish.
// In: a cluster, job files. Out: Frameworks and Secrets in it; a job's state from the job controller's history, the
// scheduler and Kubernetes.
package job

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/controller/status"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// Client shows and changes the jobs of one cluster.
type Client struct {
	*kube.Cluster
	Frameworks *Frameworks
	History    *History
	Scheduler  *vc.Scheduler
	// Namespace is the namespace of the jobs.
	Namespace string
	// Now is the clock; tests replace it.
	Now func() time.Time
	// Configured returns the virtual clusters if the scheduler doesn't respond. If Configured is nil, the virtual clusters are read from the
	// scheduler's configuration.
	Configured func(context.Context) ([]schedulerapi.VirtualCluster, error)
}

// Open connects to the cluster. It doesn't send a request yet.
func Open(o kube.Options) (*Client, error) {
	c, err := kube.Open(o)
	if err != nil {
		return nil, err
	}
	return New(c)
}

// Options specify how to reach the platform's programs. An empty URL means that requests go through the API server, as from outside of the cluster.
// Otherwise it is the URL of the program's Service, as pods reach it.
type Options struct {
	HistoryURL   string // the URL of the job controller: http://job-controller.pai-system:9097
	SchedulerURL string // http://scheduler.pai-system:9096
}

// New returns a client for the cluster. It reaches the platform's programs through the API server.
func New(c *kube.Cluster) (*Client, error) { return NewAt(c, Options{}) }

// NewAt returns a client for the cluster. It reaches the platform's programs at the URLs of o.
func NewAt(c *kube.Cluster, o Options) (*Client, error) {
	f, err := NewFrameworks(c.Config, kube.JobNamespace)
	if err != nil {
		return nil, err
	}
	h, err := newHistory(c, o.HistoryURL)
	if err != nil {
		return nil, err
	}
	s, err := vc.NewSchedulerAt(c.Client, o.SchedulerURL)
	if err != nil {
		return nil, err
	}
	return &Client{
		Cluster: c, Frameworks: f, History: h,
		Scheduler: s, Namespace: kube.JobNamespace, Now: time.Now,
	}, nil
}

// objectName matches the names of Frameworks that paictl makes.
var objectName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Resolve finds a job by its name, by USER~NAME or USER/NAME, or by the name of its Framework.
func (c *Client) Resolve(ctx context.Context, user, name string) (*Job, error) {
	owner, short, err := protocol.SplitName(name)
	if err != nil {
		return nil, hint.Wrap(err, hint.Of(err)+"; see the names with: paictl job list")
	}
	owner = cmp.Or(owner, user)
	j, err := c.find(ctx, owner, short, v1.ObjectName(owner, short))
	if err == nil || !objectName.MatchString(name) || !IsNotFound(err) {
		return j, err
	}
	if j, objectErr := c.find(ctx, "", "", name); objectErr == nil {
		return j, nil
	}
	return j, err
}

// find reads a job with all its tasks.
func (c *Client) find(ctx context.Context, user, name, object string) (*Job, error) {
	j, err := c.brief(ctx, user, name, object)
	if err != nil || !j.Live || j.framework.Status == nil || j.framework.Status.AttemptStatus.TaskChunks == 0 {
		return j, err
	}
	chunks, err := c.chunks(ctx, j)
	if err != nil {
		return nil, c.Explain(fmt.Errorf("read the tasks of %s: %w", j.Title(), err))
	}
	status.Fill(j.framework, chunks) // the controller finds lost tasks again by their pods
	return j, nil
}

// fewChunks is the largest number of ConfigMaps with tasks that are read one by one; compare fewPods.
const fewChunks = 16

// chunks reads the existing ConfigMaps that hold the tasks of a large job.
func (c *Client) chunks(ctx context.Context, j *Job) ([]*corev1.ConfigMap, error) {
	all := c.Client.CoreV1().ConfigMaps(c.Namespace)
	if n := j.framework.Status.AttemptStatus.TaskChunks; n <= fewChunks {
		names := make([]string, n)
		for k := range n {
			names[k] = status.Name(j.Object, k)
		}
		return those(ctx, names, all.Get)
	}
	list, err := all.List(ctx, metav1.ListOptions{LabelSelector: v1.LabelFramework + "=" + j.Object + "," + status.LabelPart + "=" + status.PartTasks})
	if err != nil {
		return nil, err
	}
	chunks := make([]*corev1.ConfigMap, len(list.Items))
	for i := range list.Items {
		chunks[i] = &list.Items[i]
	}
	return chunks, nil
}

// those reads objects by their names. It leaves out objects that don't exist.
func those[T any](ctx context.Context, names []string, get func(context.Context, string, metav1.GetOptions) (*T, error)) ([]*T, error) {
	found := make([]*T, len(names))
	g, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		g.Go(func() error {
			one, err := get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			found[i] = one
			return nil
		})
	}
	err := g.Wait()
	return slices.DeleteFunc(found, func(one *T) bool { return one == nil }), err
}

// brief searches the API, then the history. If neither contains the job, it returns a NotFoundError. It leaves out the tasks of a large live job.
func (c *Client) brief(ctx context.Context, user, name, object string) (*Job, error) {
	j := &Job{User: user, Name: name, Object: object}
	f, err := c.Frameworks.Get(ctx, object)
	switch {
	case err == nil:
		return Of(f), nil
	case !apierrors.IsNotFound(err):
		return nil, c.Explain(err)
	}
	missing := err
	archived, err := c.History.Job(ctx, object)
	switch {
	case err == nil:
		past := Past(archived)
		past.Object = object // which may be the requested UID
		return past, nil
	case apierrors.IsNotFound(err):
		return j, notFound(user, name, nil)
	case isNoCRD(missing):
		return nil, c.Explain(missing)
	}
	return j, notFound(user, name, err)
}

// Get reads the job again. If its Framework no longer exists, it reads the job from the history.
func (c *Client) Get(ctx context.Context, j *Job) (*Job, error) {
	return c.find(ctx, j.User, j.Name, j.Object)
}

// FromHistory reads a job from the history. For a live job, the result may be an earlier job of the same name.
func (c *Client) FromHistory(ctx context.Context, j *Job) (*api.JobDetail, error) {
	if j.archived != nil {
		return j.archived, nil
	}
	return c.History.Job(ctx, j.Object)
}

// fewPods is the largest number of pods that are read one by one. For a list of the job's pods, the API server would have to scan the pods of all
// jobs.
const fewPods = 8

// Pods lists the pods of a job, which are the pods of its current attempt and the ended pods that are kept for their logs.
func (c *Client) Pods(ctx context.Context, j *Job) ([]corev1.Pod, error) {
	if names, few := podsOf(j); few {
		pods, err := those(ctx, names, c.Client.CoreV1().Pods(c.Namespace).Get)
		if err != nil {
			return nil, c.Explain(fmt.Errorf("read the pods of %s: %w", j.Title(), err))
		}
		var out []corev1.Pod
		for _, p := range pods {
			if p.Labels[v1.LabelFramework] == j.Object {
				out = append(out, *p)
			}
		}
		return out, nil
	}
	list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: v1.LabelFramework + "=" + j.Object})
	if err != nil {
		return nil, c.Explain(fmt.Errorf("list the pods of %s: %w", j.Title(), err))
	}
	return list.Items, nil
}

// podsOf returns the names of the pods that a job may have. few is false if there are more than fewPods, or if the job isn't live.
func podsOf(j *Job) (names []string, few bool) {
	if !j.Live {
		return nil, false // pods of a job that was removed by force may still exist
	}
	names = podNames(j, fewPods)
	if s := j.framework.Status; s != nil {
		for _, r := range s.AttemptStatus.TaskRoleStatuses {
			for _, t := range r.TaskStatuses {
				// Include the pods of tasks that are being removed.
				if name := t.AttemptStatus.PodName; len(names) <= fewPods && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names, len(names) <= fewPods
}

// service is the name of the job controller's Service, in the form that the API server's proxy expects.
const service = api.Service + ":" + api.PortName

// path joins the segments of a URL's path and escapes each.
func path(segments ...string) string {
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return strings.Join(segments, "/")
}
