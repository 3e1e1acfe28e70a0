package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Outcome is the result of a submission.
type Outcome string

// The outcomes of a submission.
const (
	// Submitted means that the job is new. Completed means that an earlier submission of the same job was interrupted, and that this submission made
	// the missing objects. Repeated means that the same job was already submitted completely, and has not finished.
	Submitted Outcome = "submitted"
	Completed Outcome = "completed"
	Repeated  Outcome = "repeated"
	// Ended means that a job of that name has ended, and SkipEnded is set.
	Ended Outcome = "ended"
	// Checked means that a dry run found no mistakes.
	Checked Outcome = "checked"
)

// SubmitOptions specify how a job is submitted.
type SubmitOptions struct {
	// DryRun makes the API server check the job without storing it.
	DryRun bool
	// Replace makes Submit remove a job of that name that has ended.
	Replace bool
	// SkipEnded makes Submit do nothing if a job with that name has ended.
	SkipEnded bool
	// After are jobs that the new job waits for, in addition to the jobs in its job file.
	After []protocol.After
	// Planned are jobs that would be submitted before this job. A dry run doesn't find them in the cluster.
	Planned []string
	// Sure makes a submission fail with an UnavailableError if the history can't be searched for the name.
	Sure bool
	// MaySee, if not nil, returns an error for a job that the submitter may not know, so that the new job can't wait for that job.
	MaySee func(*Job) error
	// ClonedFrom is the original of a cloned job, or nil.
	ClonedFrom *v1.ClonedFrom
	// Key identifies a submission that is sent again because its response was lost. With Key, Submit finds the job that the lost submission made,
	// even if that job has finished.
	Key string
}

// Submit creates a job: first the Framework, then the Secrets, which the Framework owns. Submit may be killed at any point and repeated: a repeated
// Submit creates missing objects, but doesn't create an object twice.
func (c *Client) Submit(ctx context.Context, o *render.Objects, opts SubmitOptions) (Outcome, error) {
	user, name := o.Framework.Labels[v1.LabelUser], o.Framework.Annotations[v1.AnnotationJobName]
	if opts.Key != "" {
		metav1.SetMetaDataAnnotation(&o.Framework.ObjectMeta, v1.AnnotationSubmission, opts.Key)
	}
	if opts.ClonedFrom != nil {
		text, err := opts.ClonedFrom.Text()
		if err != nil {
			return "", err
		}
		metav1.SetMetaDataAnnotation(&o.Framework.ObjectMeta, v1.AnnotationClonedFrom, text)
	}
	if err := c.after(ctx, o, opts); err != nil { // before an existing job with the name is removed
		return "", err
	}
	if err := c.checkName(ctx, o, opts); errors.Is(err, errSkip) {
		return Ended, nil
	} else if err != nil {
		return "", err
	}
	made, err := c.Frameworks.Create(ctx, o.Framework, opts.DryRun)
	switch {
	case err == nil && opts.DryRun:
		return Checked, nil
	case err == nil:
		if err := c.secrets(ctx, made, o.Secrets); err != nil {
			return "", c.undo(ctx, made, err)
		}
		return Submitted, nil
	case !apierrors.IsAlreadyExists(err):
		return "", c.Explain(fmt.Errorf("submit %s/%s: %w", user, name, err))
	case opts.DryRun:
		return Checked, nil // checkName has compared the two
	}
	there, err := c.Frameworks.Get(ctx, o.Framework.Name)
	if err != nil {
		return "", c.Explain(fmt.Errorf("look at the job of that name: %w", err))
	}
	outcome, err := c.complete(ctx, there, o)
	if err == nil && opts.Key != "" && there.Annotations[v1.AnnotationSubmission] == opts.Key {
		return Submitted, nil // the Framework was created by this submission, but the response was lost
	}
	return outcome, err
}

// errSkip is returned if a job of that name has ended and SkipEnded is set.
var errSkip = errors.New("a job of that name has ended")

// checkName checks whether an existing job already has the name. The same job is fine if it has not finished, or if it was submitted with the same
// key.
func (c *Client) checkName(ctx context.Context, o *render.Objects, opts SubmitOptions) error {
	f := o.Framework
	j, err := c.brief(ctx, f.Labels[v1.LabelUser], f.Annotations[v1.AnnotationJobName], f.Name)
	missing, gone := errors.AsType[*NotFoundError](err)
	switch {
	case gone && opts.Sure && missing.Unsure != nil:
		return hint.Wrap(&UnavailableError{fmt.Errorf("check whether the name %s was used: %w", missing.Name, missing.Unsure)}, "try again in a moment")
	case gone:
		return nil
	case err != nil:
		return err
	}
	again := opts.Key != "" && j.Live && j.framework.Annotations[v1.AnnotationSubmission] == opts.Key
	running := j.Live && !Phase(api.StateOf(j.framework)).Done()
	if running || again {
		equal, err := c.same(ctx, j.framework, o)
		if err != nil {
			return c.Explain(err)
		}
		if equal {
			return nil
		}
	}
	switch {
	case opts.SkipEnded && !opts.Replace && !running:
		return errSkip
	case !opts.Replace || running:
		return conflict(j)
	case !j.Live || opts.DryRun:
		return nil
	}
	return c.Remove(ctx, j)
}

// same reports whether an existing job has the same job file, secrets and code as a new job.
func (c *Client) same(ctx context.Context, there *v1.Framework, o *render.Objects) (bool, error) {
	if there.Labels[v1.LabelUser] != o.Framework.Labels[v1.LabelUser] {
		return false, nil // names of objects are checksums
	}
	for _, key := range []string{v1.AnnotationJobName, v1.AnnotationConfigHash, v1.AnnotationCode} {
		if there.Annotations[key] != o.Framework.Annotations[key] {
			return false, nil
		}
	}
	if there.Annotations[v1.AnnotationConfigHash] == "" || !sameAfter(there, o.Framework) {
		return false, nil
	}
	held, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, v1.SpecSecretName(there.Name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(held, there) {
		return true, nil // its submission was interrupted before its secrets were stored
	}
	if err != nil {
		return false, fmt.Errorf("compare the job with the one of that name: %w", err)
	}
	for _, s := range o.Secrets {
		if s.Name == held.Name {
			a, b := held.Data[v1.FingerprintKey], s.Data[v1.FingerprintKey]
			return len(a) == 0 || len(b) == 0 || bytes.Equal(a, b), nil // older ones don't have a fingerprint
		}
	}
	return true, nil
}

// conflict returns an error that names the existing job with the name.
func conflict(j *Job) error {
	e := &ConflictError{User: j.User, Name: j.Name, Phase: j.State}
	if !j.Live {
		when := ""
		if at := j.archived.Completed; at != nil {
			when = " on " + at.Local().Format(time.DateOnly)
		}
		e.text = fmt.Sprintf("user %s already had a job %s, which %s%s", j.User, j.Name, endedPhase(j).Verb(), when)
		return hint.Wrap(e, "give this job another name, or submit it with --replace; the old one stays in the history, which keeps its name until paictl job delete "+j.Title()+" --history")
	}
	switch s := api.StateOf(j.framework); {
	case j.framework.DeletionTimestamp != nil:
		e.text = fmt.Sprintf("user %s still has a job %s, which is being deleted: its name is taken until its tasks stop and the history has it", j.User, j.Name)
		return hint.Wrap(e, "submit this one with --replace in a moment, or give it another name")
	case Phase(s).Done():
		e.text = fmt.Sprintf("user %s already has a job %s, which %s", j.User, j.Name, Phase(s).Verb())
		return hint.Wrap(e, "give this job another name, or submit it with --replace; to run the old one again: paictl job retry "+j.Title())
	case s == api.Stopping:
		e.text = fmt.Sprintf("user %s already has a job %s, which is stopping", j.User, j.Name)
		return hint.Wrap(e, "wait for its end, then submit this one with --replace: paictl job wait "+j.Title())
	}
	e.text = fmt.Sprintf("user %s has another job %s, which has not finished", j.User, j.Name)
	return hint.Wrap(e, "give this job another name, or stop the other one first: paictl job stop "+j.Title())
}

// complete creates the objects that an earlier submission of the same job didn't create.
func (c *Client) complete(ctx context.Context, there *v1.Framework, o *render.Objects) (Outcome, error) {
	equal, err := c.same(ctx, there, o)
	if err != nil {
		return "", c.Explain(err)
	}
	if !equal || there.DeletionTimestamp != nil {
		return "", conflict(Of(there))
	}
	outcome := Repeated
	for _, s := range o.Secrets {
		held, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && !metav1.IsControlledBy(held, there):
			outcome = Completed
		case err != nil:
			return "", c.Explain(fmt.Errorf("look for the objects of the first submission: %w", err))
		}
	}
	if outcome == Repeated {
		return Repeated, nil
	}
	if err := c.secrets(ctx, there, o.Secrets); err != nil {
		return "", c.Explain(err)
	}
	return Completed, nil
}

// secrets creates the Secrets of a job that don't exist yet.
func (c *Client) secrets(ctx context.Context, owner *v1.Framework, secrets []*corev1.Secret) error {
	store := c.Client.CoreV1().Secrets(c.Namespace)
	for _, s := range secrets {
		s = s.DeepCopy()
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1.GroupVersion.WithKind(v1.Kind))}
		_, err := store.Create(ctx, s, metav1.CreateOptions{FieldManager: "paictl"})
		if apierrors.IsAlreadyExists(err) {
			held, getErr := store.Get(ctx, s.Name, metav1.GetOptions{})
			if getErr == nil && metav1.IsControlledBy(held, owner) {
				continue
			}
			if getErr == nil {
				// The Secret belongs to an earlier job of that name. That job is gone, but Kubernetes hasn't removed the Secret yet.
				getErr = store.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &held.UID}})
			}
			if getErr != nil && !apierrors.IsNotFound(getErr) {
				return fmt.Errorf("replace a Secret of an earlier job: %w", getErr)
			}
			_, err = store.Create(ctx, s, metav1.CreateOptions{FieldManager: "paictl"})
		}
		if err != nil {
			return fmt.Errorf("store the job's commands: %w", err)
		}
	}
	return nil
}

// undo removes a Framework whose Secrets the API server rejects, so that its name is free again. If the connection is lost, undo fails, but the user
// can repeat the submission to complete the job.
func (c *Client) undo(ctx context.Context, made *v1.Framework, cause error) error {
	status := apierrors.APIStatus(nil)
	if !errors.As(cause, &status) {
		return hint.Wrap(c.Explain(cause), "submit it again: that completes it")
	}
	if err := c.Frameworks.Delete(ctx, made.Name, made.UID); err != nil && !apierrors.IsNotFound(err) {
		return c.Explain(errors.Join(cause, fmt.Errorf("remove the job again: %w", err)))
	}
	return c.Explain(cause)
}

// Remove deletes a job's Framework and waits until it is gone, so that its name is free. The controller keeps the Framework until its pods have ended
// and the job is in the history.
func (c *Client) Remove(ctx context.Context, j *Job) error {
	if err := c.Delete(ctx, j); err != nil {
		return err
	}
	for pause := removePause; ; pause = min(2*pause, removeLongest) {
		if gone, err := c.Deleted(ctx, j); gone || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return hint.Wrap(fmt.Errorf("%s is still being deleted: %w", j.Title(), context.Cause(ctx)), remedyController)
		case <-timer.C:
		}
	}
}

// removePause is the first pause between two checks for a deleted job. The pauses grow up to removeLongest.
const (
	removePause   = 200 * time.Millisecond
	removeLongest = 3 * time.Second
)

// Delete requests the removal of a job's Framework.
func (c *Client) Delete(ctx context.Context, j *Job) error {
	if err := c.Frameworks.Delete(ctx, j.Object, j.framework.UID); err != nil && !apierrors.IsNotFound(err) {
		return c.Explain(fmt.Errorf("delete %s: %w", j.Title(), err))
	}
	return nil
}

// Deleted reports whether a job's Framework no longer exists. Its name is then free, or another job has taken it.
func (c *Client) Deleted(ctx context.Context, j *Job) (bool, error) {
	f, err := c.Frameworks.Get(ctx, j.Object)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(f.UID) != j.UID:
		return true, nil
	case err != nil:
		return false, c.Explain(fmt.Errorf("check whether %s still exists: %w", j.Title(), err))
	}
	return false, nil
}
