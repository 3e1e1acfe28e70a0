package controller

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

const (
	// labelModel is the node label with the model of the node's GPUs, which NVIDIA's feature discovery writes. If paictl's agent runs on the
	// node, the label in the cache contains the model that the agent reports.
	labelModel = "nvidia.com/gpu.product"
	// nodesWait is how long to wait for the node of a pod while the cache of nodes is still being filled.
	nodesWait = time.Minute
	// accountEvery is how often the GPUs that a job holds are written to the archive. accountSoon is how soon they are written after they have
	// changed.
	accountEvery = 5 * time.Minute
	accountSoon  = 10 * time.Second
)

// allocated returns the GPUs of a pod that has a machine. known is false if the pod's node is missing, perhaps only because the cache lags
// behind.
func (r *reconciler) allocated(f *v1.Framework, p *corev1.Pod) (g *v1.TaskGPUs, known bool) {
	template := templateOf(f, p.Labels[v1.LabelTaskRole])
	n := gpusOf(p, template)
	if n == 0 {
		return nil, true
	}
	node := r.cache.node(p.Spec.NodeName)
	if node == nil && !r.cache.nodes.HasSynced() && r.now().Sub(r.began) < nodesWait {
		return nil, false
	}
	g = &v1.TaskGPUs{Count: n, Since: boundAt(p)}
	request := requestOf(f, template)
	g.Opportunistic = request.opportunistic
	if g.Type = request.gpuType; node != nil && node.Labels[labelModel] != "" {
		g.Type = node.Labels[labelModel]
	}
	return g, true
}

// templateOf returns the pod template of a role, or nil if the job no longer has that role.
func templateOf(f *v1.Framework, role string) *corev1.PodTemplateSpec {
	for i := range f.Spec.TaskRoles {
		if f.Spec.TaskRoles[i].Name == role {
			return &f.Spec.TaskRoles[i].Task.Pod
		}
	}
	return nil
}

// maxAllocated is more GPUs than any machine has.
const maxAllocated = 1024

// gpusOf returns how many GPUs the scheduler assigned to a pod, or how many the pod's template requests from the device plugin. It also counts
// GPUs that the pod doesn't see but blocks because it uses their processors.
func gpusOf(p *corev1.Pod, template *corev1.PodTemplateSpec) int32 {
	n := int64(0)
	if text := p.Annotations[annotation.IsolationKey]; text != "" {
		n = int64(strings.Count(text, ",") + 1)
	} else if template != nil {
		for i := range template.Spec.Containers {
			q := template.Spec.Containers[i].Resources.Limits[resourceGPU]
			n += q.Value()
		}
	}
	return int32(min(max(n, 0), maxAllocated))
}

// boundAt returns when a pod was bound to its machine, or zero if the pod's status doesn't contain this time.
func boundAt(p *corev1.Pod) metav1.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime
		}
	}
	return metav1.Time{}
}

type gpuRequest struct {
	opportunistic bool
	gpuType       string // empty: any
}

// requestOf returns the request of a role to the scheduler.
func requestOf(f *v1.Framework, template *corev1.PodTemplateSpec) (out gpuRequest) {
	out.opportunistic = f.Annotations[v1.AnnotationPriority] == v1.PriorityOpportunistic
	if template == nil || template.Annotations[annotation.SpecKey] == "" {
		return out
	}
	asks, err := annotation.ParseRequest(template.Annotations[annotation.SpecKey], f.Name)
	if err != nil {
		return out // the scheduler refused it, or it has placeholders
	}
	out.opportunistic = asks.Priority < 0
	out.gpuType = asks.LeafType
	return out
}

// modelOf returns the model of a node's GPUs. All GPUs of a node have the same model.
func modelOf(n *corev1.Node) string {
	told := api.NodeDevices{}
	if err := json.Unmarshal([]byte(n.Annotations[api.DevicesAnnotation]), &told); err == nil {
		for _, d := range told.Devices {
			if d.Model != "" {
				return d.Model
			}
		}
	}
	return n.Labels[labelModel]
}

// account writes the GPUs that a job holds to the archive. So the archive knows the job's GPU hours while the job runs. If the Framework
// disappears, it knows them until the last observation. Attempts that the status no longer contains were archived before. account returns when to
// call it again; zero means never.
func (r *reconciler) account(ctx context.Context, f *v1.Framework, e *entry) time.Duration {
	if e.status == nil || e.status.State == v1.Completed {
		return 0 // its end is archived with the whole Framework
	}
	open, sum := holding(e.status)
	if sum.attempts == 0 || open == 0 && sum == e.accounted {
		return 0
	}
	now := r.now()
	due := e.accountedAt.Add(accountEvery)
	if sum != e.accounted {
		due = e.accountedAt.Add(accountSoon)
	}
	// If the clock was set back, the wait could be too long, so it is limited.
	if wait := due.Sub(now); wait > 0 && wait <= accountEvery {
		return wait
	}
	whole := e.whole(f)
	if err := r.archive(ctx, func(ctx context.Context) error { return r.o.Store.SaveHolds(ctx, whole) }); err != nil {
		if ctx.Err() == nil {
			r.o.Log.Error(err, "write which GPUs a job holds", "framework", f.Name)
		}
		return accountSoon
	}
	e.accounted, e.accountedAt = sum, now
	if open == 0 {
		return 0
	}
	return accountEvery
}

// holding returns how many attempts of tasks currently hold GPUs. sum identifies all attempts that hold or held GPUs, so that a change is
// detected.
func holding(s *v1.FrameworkStatus) (open int, sum holds) {
	for _, role := range s.AttemptStatus.TaskRoleStatuses {
		for _, t := range role.TaskStatuses {
			a := &t.AttemptStatus
			if a.GPUs == nil {
				continue
			}
			sum.attempts++
			sum.ids += int64(a.ID) + 1
			if a.CompletionTime == nil {
				open++
			}
		}
	}
	sum.attempt, sum.open = s.AttemptStatus.ID, open
	return open, sum
}

// holds identifies a set of attempts that hold or held GPUs.
type holds struct {
	attempt        int32
	attempts, open int
	ids            int64
}
