package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// RuntimePath is where the job runtime is in a task's container.
const RuntimePath = spec.Runtime

// Target is a task whose program runs.
type Target struct {
	Task      string // role[index]
	Pod       *corev1.Pod
	Container string
	Others    int // further tasks that would have fitted
	// OwnRuntime reports whether the runtime of jobs is in the container.
	OwnRuntime bool
	// Program is where it is.
	Program string
}

// Command makes a command run with the environment of the task, where the runtime can do so.
func (r *Target) Command(args ...string) []string {
	if !r.OwnRuntime {
		return args
	}
	return append([]string{r.Program, "exec", "--"}, args...)
}

// Runtime makes a command of the runtime itself.
func (r *Target) Runtime(args ...string) []string {
	return r.Command(append([]string{r.Program}, args...)...)
}

// runningRuntime is the program of a container's first process, whatever has become of its file since.
const runningRuntime = "/proc/1/exe"

// program is the runtime in a container. In Home the task may write, so what lies there may be the task's
// own: taken is what it can't replace, the image where it is mounted, or the program that runs already.
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

// Pick finds a task that runs: the one of a role and index, or with index -1 the first.
func (c *Client) Pick(ctx context.Context, j *Job, role string, index int32) (*Target, error) {
	if !j.Live() {
		return nil, hint.Errorf("read its logs with: paictl job logs "+j.Name, "%s has ended", j.Title())
	}
	object := ""
	if role != "" {
		if object = j.RoleObject(role); object == "" {
			return nil, hint.Errorf("there are: "+strings.Join(j.RoleNames(), ", "), "%s has no task role %q", j.Title(), role)
		}
	}
	all, err := c.Targets(ctx, j)
	if err != nil {
		return nil, err
	}
	var first *Target
	others := 0
	for _, t := range all {
		labels := t.Pod.Labels
		switch {
		case object != "" && labels[v1.LabelTaskRole] != object, index >= 0 && labels[v1.LabelTaskIndex] != strconv.Itoa(int(index)):
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

// Targets finds all tasks that run, in the order of roles.
func (c *Client) Targets(ctx context.Context, j *Job) ([]*Target, error) {
	if !j.Live() {
		return nil, hint.Errorf("read its logs with: paictl job logs "+j.Name, "%s has ended", j.Title())
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

// target returns a task whose user container runs; nil for others.
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
		role := p.Labels[v1.LabelTaskRole]
		for k := range j.Framework.Spec.TaskRoles {
			if r := &j.Framework.Spec.TaskRoles[k]; r.Name == role {
				role = RoleName(r)
			}
		}
		return &Target{Task: TaskName(role, int32(index)), Pod: p, Container: name,
			OwnRuntime: j.Framework.Annotations[v1.AnnotationRuntime] != "", Program: program(p, name)}
	}
	return nil
}

func noneRuns(j *Job, role string, index int32) error {
	what := "no task of " + j.Title() + " runs"
	if index >= 0 {
		what = fmt.Sprintf("task %d of %s doesn't run", index, j.Title())
		if role != "" {
			what = fmt.Sprintf("%s of %s doesn't run", TaskName(role, index), j.Title())
		}
	}
	return hint.Errorf("see why with: paictl job why "+j.Name, "%s", what)
}
