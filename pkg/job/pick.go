package job

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// RuntimePath is the path of the job runtime in a task's container.
const RuntimePath = spec.Runtime

// Target is a task whose program runs, so that commands can run in its container.
type Target struct {
	Task  string `json:"task"` // role[index]
	Role  string `json:"role"` // the role's name in the Framework
	Index int32  `json:"index"`
	Node  string `json:"node"`
	// Pod is the name of the task's pod in Namespace. UID distinguishes the pod from an earlier pod of the same name.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid"`
	Container string `json:"container"`
	// OwnRuntime reports whether the container contains the job runtime.
	OwnRuntime bool `json:"ownRuntime"`
	// Program is the path of the runtime.
	Program string `json:"program"`
	// Ports are the ports that the runtime allocates to the task, by label. The map is nil if the job has no ports with labels.
	Ports map[string][]int `json:"ports,omitempty"`
	// User and Job identify the job of the task. They aren't part of the JSON, because the requester knows them.
	User string `json:"-"`
	Job  string `json:"-"`
	// Others is the number of other tasks that also match.
	Others int `json:"-"`

	pod *corev1.Pod
}

// LacksRuntime reports whether a command could not be started because the container doesn't have the file of the runtime. The wording of the error
// depends on the container runtime, but contains the file's name and the system's reason.
func (r *Target) LacksRuntime(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, r.Program) && (strings.Contains(text, "no such file or directory") || strings.Contains(text, "not found"))
}

// Kubernetes returns the task's pod, or nil for a Target that was read from JSON.
func (r *Target) Kubernetes() *corev1.Pod { return r.pod }

// Command returns a command line that runs args with the environment of the task. If the container doesn't have the runtime, it returns args.
func (r *Target) Command(args ...string) []string {
	if !r.OwnRuntime {
		return args
	}
	return append([]string{r.Program, "exec", "--"}, args...)
}

// Runtime returns a command line that runs the runtime with args.
func (r *Target) Runtime(args ...string) []string {
	return r.Command(append([]string{r.Program}, args...)...)
}

// runningRuntime is the path of the program that runs as a container's first process. The path stays valid if the program's file was changed or
// removed.
const runningRuntime = "/proc/1/exe"

// program returns the path of the runtime in a container. The task can replace the files in Home, so program prefers a runtime that the task can't
// replace, which is the mounted image or the program that already runs.
func program(p *corev1.Pod, container string) string {
	i := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		return RuntimePath
	}
	c := &p.Spec.Containers[i]
	mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == spec.Image && m.ReadOnly })
	first := len(c.Command) > 0 && c.Command[0] == spec.Runtime
	switch {
	case mounted && len(c.Command) > 0 && c.Command[0] == spec.ImageRuntime:
		return spec.ImageRuntime
	case first && !p.Spec.HostPID && (p.Spec.ShareProcessNamespace == nil || !*p.Spec.ShareProcessNamespace):
		return runningRuntime
	}
	return RuntimePath
}

// Pick finds a running task by its role and index. Index -1 means the first running task.
func (c *Client) Pick(ctx context.Context, j *Job, role string, index int32) (*Target, error) {
	if err := CheckRole(j, role); err != nil {
		return nil, err
	}
	all, err := c.Targets(ctx, j)
	if err != nil {
		return nil, err
	}
	return PickOf(j, all, role, index)
}

// PickOf finds a task like Pick, but in a list of the job's running tasks.
func PickOf(j *Job, all []*Target, role string, index int32) (*Target, error) {
	if err := CheckRole(j, role); err != nil {
		return nil, err
	}
	object := j.RoleObject(role)
	var first *Target
	others := 0
	for _, t := range all {
		switch {
		case role != "" && t.Role != object, index >= 0 && t.Index != index:
		case first == nil:
			first = t
		default:
			others++
		}
	}
	if first == nil {
		return nil, noneRuns(j, role, index)
	}
	first.Others = others
	return first, nil
}

// CheckRole returns an error if a job has finished, or doesn't have the role. The role "" means any role.
func CheckRole(j *Job, role string) error {
	if !j.Live {
		return ended(j, "read its logs with: paictl job logs "+j.Title())
	}
	if role != "" && j.RoleObject(role) == "" {
		return hint.Errorf("there are: "+strings.Join(j.RoleNames(), ", "), "%s has no task role %q", j.Title(), role)
	}
	return nil
}

// Targets returns all running tasks of a job, in the order of its roles.
func (c *Client) Targets(ctx context.Context, j *Job) ([]*Target, error) {
	if err := CheckRole(j, ""); err != nil {
		return nil, err
	}
	pods, err := c.Pods(ctx, j)
	if err != nil {
		return nil, err
	}
	var out []*Target
	for i := range pods {
		if t := target(j, &pods[i]); t != nil {
			out = append(out, t)
		}
	}
	names := j.RoleNames()
	slices.SortFunc(out, func(a, b *Target) int {
		ra, ia, _ := ParseTask(a.Task)
		rb, ib, _ := ParseTask(b.Task)
		return cmp.Or(cmp.Compare(slices.Index(names, ra), slices.Index(names, rb)), cmp.Compare(ia, ib))
	})
	return out, nil
}

// target returns the task of a pod if the pod's user container runs, or nil.
func target(j *Job, p *corev1.Pod) *Target {
	index, err := strconv.ParseInt(p.Labels[v1.LabelTaskIndex], 10, 32)
	if err != nil || p.DeletionTimestamp != nil || len(p.Spec.Containers) == 0 {
		return nil
	}
	name := p.Spec.Containers[0].Name
	for i := range p.Spec.Containers {
		if p.Spec.Containers[i].Name == "app" {
			name = "app"
		}
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		if s.Name != name || s.State.Running == nil {
			continue
		}
		object := p.Labels[v1.LabelTaskRole]
		role := object
		if at := slices.IndexFunc(j.Roles, func(r Role) bool { return r.Object == object }); at >= 0 {
			role = j.Roles[at].Name
		}
		return &Target{User: j.User, Job: j.Name, Task: TaskName(role, int32(index)), Role: object, Index: int32(index), Node: p.Spec.NodeName,
			Namespace: p.Namespace, Pod: p.Name, UID: string(p.UID), Container: name,
			OwnRuntime: j.framework.Annotations[v1.AnnotationRuntime] != "", Program: program(p, name), Ports: ports(p.Annotations[v1.AnnotationPorts], string(p.UID), j.hostNetwork()), pod: p}
	}
	return nil
}

// Port returns the first port with a label.
func (r *Target) Port(label string) (int, error) {
	switch {
	case r.Ports == nil:
		return 0, hint.Errorf("give its number", "the ports of %s have no labels", r.Task)
	case len(r.Ports[label]) == 0:
		return 0, hint.Errorf("there are: "+strings.Join(slices.Sorted(maps.Keys(r.Ports)), ", ")+"; or give a number", "%s has no ports with the label %q", r.Task, label)
	}
	return r.Ports[label][0], nil
}

func noneRuns(j *Job, role string, index int32) error {
	what := "no task of " + j.Title() + " runs"
	if index >= 0 {
		what = fmt.Sprintf("task %d of %s doesn't run", index, j.Title())
		if role != "" {
			what = fmt.Sprintf("%s of %s doesn't run", TaskName(role, index), j.Title())
		}
	}
	return hint.Errorf("see why with: paictl job why "+j.Title(), "%s", what)
}
