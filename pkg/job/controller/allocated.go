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
	// labelModel is the label of a node with the model of its GPUs, which NVIDIA's feature discovery writes. In the
	// cache, it has the model that paictl's agent reports, if the agent runs on the node.
	labelModel = "nvidia.com/gpu.product"
	// nodesWait is how long a pod's node may be missing in a cache that is still being filled.
	nodesWait = time.Minute
	// accountEvery is how often the GPUs that a job holds are written to the archive, and accountSoon how soon after a change of its GPUs.
	accountEvery = 5 * time.Minute
	accountSoon  = 10 * time.Second
)

// allocated returns the GPUs of a pod that has a machine. known is false if the cache may only be late.
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

// gpusOf counts the GPUs that the scheduler gave a pod, or that its template requests from the device plugin. GPUs that belong to a pod's
// processors count, though the pod doesn't see them: no other pod has them.
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

// boundAt returns when a pod was bound to its machine, or zero if its status doesn't have that.
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

// modelOf returns the model of a node's GPUs. All GPUs of a machine have the same model.
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

// account writes the GPUs that a job holds, so that its hours are known while it runs and, if it vanishes, until it was last observed.
// Attempts that are dropped from the status are archived before that anyway. It returns when to call it again; 0: never.
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
	// A clock that was set back must not delay it.
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

// holding counts the attempts of tasks that hold GPUs, and sums up which, so that a change is detected.
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

// holds identifies a set of attempts that hold GPUs.
type holds struct {
	attempt        int32
	attempts, open int
	ids            int64
}
