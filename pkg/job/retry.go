package job

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// The Secret that stores a job between its removal and its return has the key keptKey. Its name ends with keptSuffix.
const (
	keptKey    = "objects.json"
	keptSuffix = "-retry"
)

// RetryOptions specify how a job is run again.
type RetryOptions struct {
	// Allow, if not nil, returns an error if the job may no longer use one of its resources. A retried job has the content of the original
	// submission.
	Allow func(Use) error
	// MaySee, if not nil, returns an error for a job that the owner may no longer know, so that the retried job can't wait for that job.
	MaySee func(*Job) error
	// CheckLimit, if not nil, returns an error if the owner may not have another job with that number of tasks.
	CheckLimit func(tasks int) error
}

// Retry runs a job again, with the same name and the content of its submission, including secrets and code. A job that has not ended gets one more
// attempt now. A job that has ended becomes a new job of the same name, and the old job stays in the history.
//
// Before Retry removes the old job, it stores the job in a separate Secret. If Retry is killed after the removal, the next Retry continues, even if
// the job is neither live nor in the history.
func (c *Client) Retry(ctx context.Context, j *Job, o RetryOptions) (before Phase, err error) {
	if j.Live && !Phase(api.StateOf(j.framework)).Done() {
		before = Phase(api.StateOf(j.framework))
		if j.framework.Spec.ExecutionType == v1.ExecutionStop {
			return before, hint.Errorf("wait for its end first: paictl job wait "+j.Title(), "%s is stopping", j.Title())
		}
		if err := c.allowed(ctx, j.framework, o.Allow); err != nil {
			return before, err
		}
		if kept, err := c.keptOf(ctx, j.framework); err != nil {
			return before, c.Explain(err)
		} else if kept != nil {
			return before, c.bringBack(ctx, kept)
		}
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1.AnnotationRestart: c.Now().UTC().Format("2006-01-02T15:04:05.000Z")}}}
		if _, err := c.Frameworks.Patch(ctx, j.Object, types.MergePatchType, patch); err != nil {
			return before, c.Explain(fmt.Errorf("request another attempt of %s: %w", j.Title(), err))
		}
		return before, nil
	}
	var kept *render.Objects
	if j.Live {
		before = Phase(api.StateOf(j.framework))
		if err := c.allowed(ctx, j.framework, o.Allow); err != nil {
			return before, err
		}
		if err := o.room(j.framework); err != nil {
			return before, err
		}
		if kept, err = c.keep(ctx, j); err != nil {
			return before, c.Explain(fmt.Errorf("save %s while it is created again: %w", j.Title(), err))
		}
		if err := c.renewAfter(ctx, kept.Framework, o.MaySee); err != nil {
			return before, err
		}
		if err := c.Remove(ctx, j); err != nil {
			return before, err
		}
	} else {
		before = Deleted
		if j.archived != nil {
			before = endedPhase(j)
		}
		if kept, err = c.kept(ctx, j.Object); err != nil {
			return before, c.Explain(err)
		}
		if kept == nil && j.archived == nil {
			return before, notFound(j.User, j.Name, nil)
		}
		if kept == nil {
			return before, hint.Errorf("write its job file with another name: paictl job clone "+j.Title()+" -o job.yaml",
				"%s has %s long ago: its commands and secrets are no longer kept", j.Title(), before)
		}
		if err := c.allowed(ctx, kept.Framework, o.Allow); err != nil {
			return before, err
		}
		if err := o.room(kept.Framework); err != nil {
			return before, err
		}
	}
	return before, c.bringBack(ctx, kept)
}

// room calls o.Room with the number of tasks of a job that is created again.
func (o *RetryOptions) room(f *v1.Framework) error {
	if o.CheckLimit == nil {
		return nil
	}
	tasks := 0
	for i := range f.Spec.TaskRoles {
		tasks += int(f.Spec.TaskRoles[i].TaskNumber)
	}
	return o.CheckLimit(tasks)
}

// keep stores the job in a Secret, as it was submitted.
func (c *Client) keep(ctx context.Context, j *Job) (*render.Objects, error) {
	f := j.framework.DeepCopy()
	f.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind}
	f.ObjectMeta = bare(&f.ObjectMeta)
	f.Status, f.Spec.ExecutionType = nil, v1.ExecutionStart
	for _, of := range []string{v1.AnnotationRestart, v1.AnnotationRequeues, v1.AnnotationStopped} { // they are about the job that has ended
		delete(f.Annotations, of)
	}
	out := &render.Objects{Framework: f}
	store := c.Client.CoreV1().Secrets(c.Namespace)
	for _, name := range []string{v1.SpecSecretName(j.Object), v1.RegistrySecretName(j.Object)} {
		s, err := store.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.ObjectMeta = bare(&s.ObjectMeta)
		out.Secrets = append(out.Secrets, s)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: j.Object + keptSuffix, Namespace: c.Namespace, Labels: map[string]string{v1.LabelFramework: j.Object}},
		Data: map[string][]byte{keptKey: data}}
	_, err = store.Create(ctx, s, metav1.CreateOptions{FieldManager: "paictl"})
	if apierrors.IsAlreadyExists(err) { // an earlier attempt created it
		_, err = store.Update(ctx, s, metav1.UpdateOptions{FieldManager: "paictl"})
	}
	return out, err
}

// bare returns the parts of an object's metadata that a new object may have.
func bare(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations}
}

// kept reads the job that keep stored, or returns nil.
func (c *Client) kept(ctx context.Context, object string) (*render.Objects, error) {
	s, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, object+keptSuffix, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for an interrupted retry: %w", err)
	}
	out := &render.Objects{}
	if err := json.Unmarshal(s.Data[keptKey], out); err != nil || out.Framework == nil {
		return nil, nil //nolint:nilerr // there is nothing to restore
	}
	return out, nil
}

// keptOf reads the job that keep stored, if f is that job and has already been restored. Otherwise, it returns nil.
func (c *Client) keptOf(ctx context.Context, f *v1.Framework) (*render.Objects, error) {
	kept, err := c.kept(ctx, f.Name)
	if kept == nil || err != nil {
		return nil, err
	}
	equal, err := c.same(ctx, f, kept)
	if !equal || err != nil {
		return nil, err
	}
	return kept, nil
}

// bringBack creates the job again and removes the stored copy.
func (c *Client) bringBack(ctx context.Context, o *render.Objects) error {
	made, err := c.Frameworks.Create(ctx, o.Framework, false)
	if apierrors.IsAlreadyExists(err) {
		made, err = c.Frameworks.Get(ctx, o.Framework.Name)
		equal := false
		if err == nil {
			equal, err = c.same(ctx, made, o)
		}
		if err == nil && !equal {
			err = conflict(Of(made))
		}
	}
	if err != nil {
		return c.Explain(fmt.Errorf("create the job again: %w", err))
	}
	if err := c.secrets(ctx, made, o.Secrets); err != nil {
		return hint.Wrap(c.Explain(err), "repeat the command: it continues where it stopped")
	}
	err = c.Client.CoreV1().Secrets(c.Namespace).Delete(ctx, o.Framework.Name+keptSuffix, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return c.Explain(fmt.Errorf("remove the saved copy: %w", err))
	}
	return nil
}
