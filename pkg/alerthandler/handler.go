// Package alerthandler is the program pai-alert-handler, which carries out operations on jobs and machines for alerts and for administrators.
// In: messages from Alertmanager; watched Actions, jobs, machines and people. Out: Actions, and their effects: jobs are stopped or run another
// attempt; machines are cordoned, drained and restarted; GPUs are reset.
//
// No other program of the platform stops other people's jobs or cordons machines. Package step makes the decisions. This package collects the facts
// and carries out the decisions. It writes each decision before it acts, and each effect can be repeated. So the program can be killed at any time.
package alerthandler

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	"github.com/openpai/paictl/pkg/alerthandler/step"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/people"
)

// Options configure a Handler.
type Options struct {
	Config       *rest.Config
	JobNamespace string
	Policies     *policy.Config
	// Notify configures notices. Nil disables notices. SystemNamespace is the namespace of the ConfigMap that records sent notices.
	Notify          *notify.Config
	SystemNamespace string
	// Audit stores audit records of the handler's effects. If Audit is nil, no records are written. The records are also written to AuditLines.
	Audit      audit.Poster
	AuditLines io.Writer
	// Reports configures the source of the figures in weekly reports.
	Reports ReportOptions
	// Pause is the minimum time between two checks for notices. 0 means two seconds.
	Pause time.Duration
	Log   *slog.Logger
	// Now returns the current time. Nil means time.Now.
	Now func() time.Time
	// Elapsed returns the reading of a monotonic clock. Nil means the clock of the process.
	Elapsed func() time.Time
}

// Handler watches jobs, machines, people and Actions, and acts on Actions.
type Handler struct {
	o       Options
	core    kubernetes.Interface
	objects dynamic.Interface

	jobs    *watch.Store[*jobFacts]
	nodes   *watch.Store[*corev1.Node]
	actions *watch.Store[*v1.Action]
	people  *people.Directory

	touched chan struct{} // one is waiting if something has changed
	news    chan struct{} // the same, for notifier
	refused refusals
	tries   tries
	endings endings // of alerts without an Action
	metrics *metrics
	records *records // nil if none are written
	// notifier is nil if no channel is configured.
	notifier *notify.Notifier
	weekly   *weekly
	clock    clock
	jumped   bool // whether clock had jumped at the beginning of the round; belongs to the goroutine that leads
}

type jobFacts struct {
	object, user, name, vc string
	uid                    types.UID
	made                   time.Time
	tags                   []string
	ended, stopping        bool
	attempt                time.Time // when the latest attempt began; zero before the first one
	// requested is the pending request for another attempt. finished reports whether the current attempt has ended and no other attempt was
	// requested. retrying reports whether the next attempt waits for its start time.
	requested          string
	finished, retrying bool
	requeues           []jobv1.Requeue
	// news holds the facts for notices. It is nil for a job without an owner.
	news *notify.Job
}

// New returns a Handler. It doesn't send a request yet.
func New(o Options) (*Handler, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	core, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	objects, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	watching, err := watch.Client(o.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	frameworks, err := job.NewFrameworks(o.Config, o.JobNamespace)
	if err != nil {
		return nil, err
	}
	directory, err := people.Open(o.Config, people.Options{Log: o.Log})
	if err != nil {
		return nil, err
	}
	h := &Handler{o: o, core: core, objects: objects, people: directory, touched: make(chan struct{}, 1), news: make(chan struct{}, 1), metrics: newMetrics()}
	h.clock.source = o.Elapsed
	h.jobs = watch.New(watch.Options[*jobv1.Framework, *jobFacts]{Name: "jobs", Source: frameworks.Source(), Keep: keepJob, Changed: wakes[*jobFacts](h), Log: o.Log})
	h.nodes = watch.New(watch.Options[*corev1.Node, *corev1.Node]{Name: "nodes", Source: watch.From(core.CoreV1().Nodes(), metav1.ListOptions{}), Keep: keepNode, Changed: wakes[*corev1.Node](h), Log: o.Log})
	h.actions = watch.New(watch.Options[*unstructured.Unstructured, *v1.Action]{Name: "actions", Source: watch.From(watching.Resource(v1.Actions), metav1.ListOptions{}),
		Reads: watch.From(objects.Resource(v1.Actions), metav1.ListOptions{}), Keep: keepAction, Changed: wakes[*v1.Action](h), Confirm: true, Log: o.Log})
	h.records = h.newRecords(o.Audit, o.AuditLines)
	if o.Notify != nil && o.Notify.Enabled() {
		if h.notifier, err = h.newNotifier(); err != nil {
			return nil, err
		}
		if h.weekly, err = h.newWeekly(); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func wakes[T any](h *Handler) func([]watch.Change[T], string) {
	return func([]watch.Change[T], string) { h.wake() }
}

// wake makes the leader and the notifier check all Actions again.
func (h *Handler) wake() {
	for _, c := range []chan struct{}{h.touched, h.news} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func keepJob(f *jobv1.Framework) (*jobFacts, error) {
	row := api.Summary(f)
	var attempt time.Time
	retrying := false
	if f.Status != nil {
		attempt, retrying = f.Status.AttemptStatus.StartTime.Time, f.Status.RetryPolicyStatus.RetryDelaySec != nil
	}
	return &jobFacts{attempt: attempt, requested: f.Requested(), finished: f.Finished(), retrying: retrying, requeues: jobv1.ReadRequeues(f.Annotations), object: f.Name, uid: f.UID, made: f.CreationTimestamp.Time, user: row.User, name: row.Name, vc: row.VirtualCluster, tags: row.Tags,
		ended: row.State == api.Succeeded || row.State == api.Failed || row.State == api.Stopped, stopping: f.Spec.ExecutionType == jobv1.ExecutionStop,
		news: news(f, &row)}, nil
}

// keepNode returns a copy of a Node with only the fields that decisions need. The images and addresses of a Node would take much memory.
func keepNode(n *corev1.Node) (*corev1.Node, error) {
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp, Labels: n.Labels, Annotations: n.Annotations}}
	out.Spec.Unschedulable, out.Spec.Taints, out.Status.NodeInfo.BootID = n.Spec.Unschedulable, n.Spec.Taints, n.Status.NodeInfo.BootID
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady || c.Type == checks.ConditionGPUsUnhealthy {
			out.Status.Conditions = append(out.Status.Conditions, c)
		}
	}
	return out, nil
}

func keepAction(u *unstructured.Unstructured) (*v1.Action, error) {
	a := &v1.Action{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a); err != nil {
		return nil, fmt.Errorf("read the action: %w", err)
	}
	return a, nil
}

// Run watches the objects until ctx ends.
func (h *Handler) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { h.jobs.Run(ctx) })
	all.Go(func() { h.nodes.Run(ctx) })
	all.Go(func() { h.actions.Run(ctx) })
	if h.records != nil {
		all.Go(func() { _ = h.records.sink.Run(ctx) })
	}
	return h.people.Run(ctx)
}

// Synced reports whether jobs, nodes and Actions have been read once.
func (h *Handler) Synced() bool { return len(h.unread()) == 0 }

// unread returns the names of the resources whose watches haven't delivered their objects yet, for example because the definitions are missing.
func (h *Handler) unread() (out []string) {
	for _, r := range []struct {
		name   string
		synced bool
	}{{"jobs", h.jobs.Synced()}, {"nodes", h.nodes.Synced()}, {"actions", h.actions.Synced()}} {
		if !r.synced {
			out = append(out, r.name)
		}
	}
	return out
}

// list returns all Actions in order of age, the oldest first.
func (h *Handler) list() []*v1.Action {
	all := h.actions.All()
	out := make([]*v1.Action, 0, len(all))
	for _, a := range all {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *v1.Action) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// machines returns the machines that run jobs, including the machines that are out of service.
func (h *Handler) machines() step.Machines {
	m := step.Machines{Out: map[string]bool{}, Cordoned: map[string]bool{}}
	for name, n := range h.nodes.All() {
		if !runsJobs(n) {
			continue
		}
		m.Total++
		if n.Spec.Unschedulable || !ready(n) {
			m.Out[name] = true
		}
		if n.Spec.Unschedulable {
			m.Cordoned[name] = true
		}
	}
	return m
}

// runsJobs reports whether a machine isn't reserved for the control plane.
func runsJobs(n *corev1.Node) bool {
	return !controlPlane(n) || !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == roleControlPlane && t.Effect == corev1.TaintEffectNoSchedule
	})
}

// roleControlPlane is the key of a label and a taint of control-plane machines.
const roleControlPlane = "node-role.kubernetes.io/control-plane"

func controlPlane(n *corev1.Node) bool {
	_, is := n.Labels[roleControlPlane]
	return is
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func hasAgent(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == checks.ConditionGPUsUnhealthy })
}

// sick returns the GPU fault that the agent reports for a machine, or "".
func sick(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != checks.ConditionGPUsUnhealthy || c.Status == corev1.ConditionFalse:
		case c.Status == corev1.ConditionTrue:
			return policy.OneLine(c.Message, mostSick)
		default:
			return "the state of its GPUs is unknown"
		}
	}
	return ""
}

// mostSick limits the text that a status copies from the message of a condition, in bytes.
const mostSick = 300
