package job

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
)

// Stop requests that a job stops, and returns its phase before that. A finished job stays as it is.
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

// ScaleOptions say how a job is scaled.
type ScaleOptions struct {
	// Allow, if not nil, returns an error if the job may no longer use something. Then it may not grow.
	Allow func(Use) error
	// Room, if not nil, returns an error if that number of additional tasks isn't allowed.
	Room func(more int) error
}

// Scale changes how many tasks a role has, while the job runs, and returns how many it had. Tasks of a
// gang know each other from the start, so that only jobs without one can be scaled.
func (c *Client) Scale(ctx context.Context, j *Job, role string, tasks int, o ScaleOptions) (before int, err error) {
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
		if o.Room != nil {
			if err := o.Room(tasks - before); err != nil {
				return before, err
			}
		}
	}
	gpus, taken, err := c.resize(ctx, f, r.Name, tasks)
	if err != nil {
		return before, c.Explain(fmt.Errorf("tell new tasks of %s how many there are: %w", j.Title(), err))
	}
	path := fmt.Sprintf("/spec/taskRoles/%d/", at)
	patch := []operation{{"test", path + "name", r.Name}, {"test", path + "taskNumber", before}, {"replace", path + "taskNumber", tasks}}
	if int(r.FrameworkAttemptCompletionPolicy.MinSucceededTaskCount) == before {
		// It meant all of them.
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

// scalable holds the new number of tasks of a role against the limits of a submission. Tasks without a gang need not run at the same time, so
// that a job may have more of them than its virtual cluster has room for.
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

// resize writes the new number into the Secret that new tasks read. It returns how many GPUs all tasks request then, and how many
// they occupy. gpus is -1 if paictl didn't make the job. Tasks that run have read the Secret already.
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

// cellsOf returns how many GPUs a task of a role takes, or 0 if its Framework doesn't say.
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
