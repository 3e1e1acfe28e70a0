package job

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Stop requests that a job stops, and returns the phase that the job had before. It doesn't change a finished job.
func (c *Client) Stop(ctx context.Context, j *Job) (before Phase, err error) {
	if !j.Live {
		return endedPhase(j), nil
	}
	before = Phase(api.StateOf(j.framework))
	if before.Done() || j.framework.Spec.ExecutionType == v1.ExecutionStop {
		return before, nil
	}
	patch := map[string]any{"spec": map[string]any{"executionType": v1.ExecutionStop}}
	if _, err := c.Frameworks.Patch(ctx, j.Object, types.MergePatchType, patch); err != nil {
		return before, c.Explain(fmt.Errorf("stop %s: %w", j.Title(), err))
	}
	return before, nil
}

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// ScaleOptions specify how a job is scaled.
type ScaleOptions struct {
	// Allow, if not nil, returns an error if the job may no longer use one of its resources. Then the number of tasks can't grow.
	Allow func(Use) error
	// CheckLimit, if not nil, returns an error if the job may not have that many additional tasks.
	CheckLimit func(more int) error
	// Facts, if not nil, reads the resources of the cluster. If the number of tasks grows, the job is checked against these resources like a new
	// submission.
	Facts func(context.Context) (*Facts, error)
}

// Scaled is the result of Scale: the former number of tasks of the role, and warnings about the new tasks.
type Scaled struct {
	Before   int
	Findings strictyaml.Findings
}

// Scale changes the number of tasks of a role while the job runs. It fails for jobs with a gang, because the tasks of a gang know each other from the
// start.
func (c *Client) Scale(ctx context.Context, j *Job, role string, tasks int, o ScaleOptions) (out Scaled, err error) {
	out.Before, err = c.scale(ctx, j, role, tasks, o, &out.Findings)
	return out, err
}

func (c *Client) scale(ctx context.Context, j *Job, role string, tasks int, o ScaleOptions, warnings *strictyaml.Findings) (before int, err error) {
	if !j.Live || Phase(api.StateOf(j.framework)).Done() {
		return 0, ended(j, "run it again: paictl job retry "+j.Title())
	}
	f := j.framework
	at := -1
	for i := range f.Spec.TaskRoles {
		if r := &f.Spec.TaskRoles[i]; isRole(r, role) || role == "" && len(f.Spec.TaskRoles) == 1 {
			at = i
		}
	}
	if at < 0 {
		return 0, hint.Errorf("name one with --role: "+strings.Join(j.RoleNames(), ", "), "%s has no role %q", j.Title(), role)
	}
	r := &f.Spec.TaskRoles[at]
	before = int(r.TaskNumber)
	if f.Annotations[v1.AnnotationRuntime] != "" && f.Annotations[v1.AnnotationGang] != "false" {
		return before, hint.Errorf(fmt.Sprintf("submit it with its new size under another name: paictl job clone %s -o job.yaml; if tasks don't depend on each other, write \"extras: {gangAllocation: false}\" into the job file", j.Title()),
			"%s can't be scaled: its tasks are a gang, which gets its machines together, and each task knows all others from the start", j.Title())
	}
	if before == tasks {
		return before, nil
	}
	if err := scalable(f, at, tasks); err != nil {
		return before, err
	}
	if tasks > before {
		if err := c.allowed(ctx, f, o.Allow); err != nil {
			return before, err
		}
		if o.CheckLimit != nil {
			if err := o.CheckLimit(tasks - before); err != nil {
				return before, err
			}
		}
		if *warnings, err = c.fitting(ctx, f, at, tasks, o.Facts); err != nil {
			return before, err
		}
	}
	gpus, taken, err := c.resize(ctx, f, r.Name, tasks)
	if err != nil {
		return before, c.Explain(fmt.Errorf("publish the number of tasks of %s: %w", j.Title(), err))
	}
	path := fmt.Sprintf("/spec/taskRoles/%d/", at)
	patch := []operation{{"test", path + "name", r.Name}, {"test", path + "taskNumber", before}, {"replace", path + "taskNumber", tasks}}
	if int(r.FrameworkAttemptCompletionPolicy.MinSucceededTaskCount) == before {
		// The role required that all tasks succeed, and still does.
		patch = append(patch, operation{"replace", path + "frameworkAttemptCompletionPolicy/minSucceededTaskCount", tasks})
	}
	if gpus >= 0 {
		patch = append(patch, operation{"replace", "/metadata/annotations/" + v1.AnnotationGPUs, strconv.Itoa(gpus)})
	}
	if gpus >= 0 && f.Annotations[v1.AnnotationGPUsTaken] != "" {
		patch = append(patch, operation{"replace", "/metadata/annotations/" + strings.ReplaceAll(v1.AnnotationGPUsTaken, "/", "~1"), strconv.Itoa(taken)})
	}
	if _, err := c.Frameworks.Patch(ctx, j.Object, types.JSONPatchType, patch); err != nil {
		return before, c.Explain(fmt.Errorf("scale %s: %w", j.Title(), err))
	}
	return before, nil
}

// scalable checks the new number of tasks of a role against the limits of a submission. Tasks without a gang need not run at the same time, so a job
// may have more tasks than its virtual cluster can run at once.
func scalable(f *v1.Framework, role, tasks int) error {
	total := tasks
	for i := range f.Spec.TaskRoles {
		if i != role {
			total += int(f.Spec.TaskRoles[i].TaskNumber)
		}
	}
	switch {
	case tasks < 0:
		return hint.Errorf("give a number from 0", "a role can't have %d tasks", tasks)
	case tasks > protocol.MaxTasks || total > protocol.MaxTasks:
		return hint.Errorf("scale to fewer tasks, or submit several jobs", "%s would have %d tasks, but the limit of one job is %d", Of(f).Title(), max(tasks, total), protocol.MaxTasks)
	}
	return nil
}

// fitting checks a job with more tasks of a role against the current resources of the cluster. It returns the same warnings as a submission, and an
// error if a submission would be rejected. It doesn't report mistakes in the job file, because the submission has checked the file.
func (c *Client) fitting(ctx context.Context, f *v1.Framework, role, tasks int, read func(context.Context) (*Facts, error)) (strictyaml.Findings, error) {
	if read == nil || f.Annotations[v1.AnnotationConfig] == "" {
		return nil, nil
	}
	parsed, found := protocol.ParseMasked("job.yaml", []byte(f.Annotations[v1.AnnotationConfig]))
	if len(found.Errors()) > 0 {
		return nil, nil // an earlier paictl accepted it
	}
	for i := range parsed.Roles {
		for k := range f.Spec.TaskRoles {
			r, n := &f.Spec.TaskRoles[k], int(f.Spec.TaskRoles[k].TaskNumber)
			if k == role {
				n = tasks
			}
			if isRole(r, parsed.Roles[i].Name) {
				parsed.Roles[i].Instances = n
			}
		}
	}
	facts, err := read(ctx)
	if err != nil {
		return nil, err
	}
	found = render.Check(parsed, render.Options{User: f.Labels[v1.LabelUser], Group: f.Labels[v1.LabelGroup], Namespace: c.Namespace, Cluster: facts.Cluster, Now: c.Now()})
	if wrong := found.Errors(); len(wrong) > 0 {
		return nil, hint.Errorf(wrong[0].Remedy, "%s can't have %s: %s", Of(f).Title(), plural.Of(tasks, "task"), wrong[0].Message)
	}
	return found, nil
}

// resize writes the new number of tasks into the Secret that new tasks read. It returns how many GPUs all tasks then request and how many they
// occupy, or -1 for gpus if paictl didn't make the job. Running tasks don't read the Secret again.
func (c *Client) resize(ctx context.Context, f *v1.Framework, role string, tasks int) (gpus, taken int, err error) {
	if f.Annotations[v1.AnnotationRuntime] == "" {
		return -1, 0, nil
	}
	store := c.Client.CoreV1().Secrets(c.Namespace)
	held, err := store.Get(ctx, v1.SpecSecretName(f.Name), metav1.GetOptions{})
	if err != nil {
		return -1, 0, err
	}
	told, err := spec.Decode(held.Data[v1.SpecKey])
	if err != nil {
		return -1, 0, err
	}
	for i := range told.Roles {
		if r := &told.Roles[i]; r.Object == role {
			r.Instances = tasks
		}
		r := &told.Roles[i]
		gpus += r.Instances * r.GPU
		if r.GPU > 0 {
			taken += r.Instances * max(r.GPU, cellsOf(f, r.Object))
		}
	}
	if held.Data[v1.SpecKey], err = json.Marshal(told); err != nil {
		return -1, 0, err
	}
	_, err = store.Update(ctx, held, metav1.UpdateOptions{FieldManager: "paictl"})
	return gpus, taken, err
}

// cellsOf returns how many GPUs a task of a role takes, or 0 if the Framework doesn't contain that number.
func cellsOf(f *v1.Framework, role string) int {
	for i := range f.Spec.TaskRoles {
		r := &f.Spec.TaskRoles[i]
		if r.Name != role {
			continue
		}
		asks, err := annotation.ParseRequest(r.Task.Pod.Annotations[annotation.SpecKey], f.Name)
		if err != nil {
			return 0
		}
		if sets := asks.Sets(); asks.Set < len(sets) {
			return sets[asks.Set].Cells
		}
	}
	return 0
}
