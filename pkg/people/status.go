package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// signInEvery is the precision of the stored time of the last sign-in. It avoids many writes for programs that sign in every minute.
const signInEvery = 10 * time.Minute

// NoteSignIn stores the time of a person's sign-in, unless a time within the last signInEvery is already stored.
func (d *Directory) NoteSignIn(ctx context.Context, p *Person, at time.Time) error {
	if last := p.User.Status.LastSignIn; last != nil && at.Sub(last.Time) < signInEvery {
		return nil
	}
	return d.patchStatus(ctx, p.User.Name, map[string]any{"lastSignIn": metav1.NewTime(at.UTC().Truncate(time.Second))})
}

func (d *Directory) patchStatus(ctx context.Context, object string, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	written, err := d.api.Resource(v1.Users).Patch(ctx, object, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		d.users.Put(written)
	}
	return explain(err)
}

// WriteConditions writes the reason to the status of each ignored User, and removes the reason from Users that are no longer ignored. Only one
// replica calls it.
func (d *Directory) WriteConditions(ctx context.Context) error {
	s := d.snapshot()
	var failed []error
	for object, why := range s.ignored {
		u, err := d.api.Resource(v1.Users).Get(ctx, object, metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // a Group has no status
			continue
		}
		if err != nil {
			return explain(err)
		}
		var have struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		if text, err := u.MarshalJSON(); err == nil {
			_ = json.Unmarshal(text, &have) // invalid text is overwritten
		}
		failed = append(failed, d.setValid(ctx, object, u.GetGeneration(), have.Status.Conditions, why))
	}
	for object, u := range d.users.All() {
		if s.ignored[object] == "" && meta.IsStatusConditionFalse(u.Status.Conditions, v1.ConditionValid) {
			failed = append(failed, d.setValid(ctx, object, u.Generation, u.Status.Conditions, ""))
		}
	}
	return errors.Join(failed...)
}

// setValid writes the condition Valid if it has changed.
func (d *Directory) setValid(ctx context.Context, object string, generation int64, have []metav1.Condition, why string) error {
	c := metav1.Condition{Type: v1.ConditionValid, Status: metav1.ConditionTrue, Reason: "Counts", Message: "", ObservedGeneration: generation}
	if why != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Ignored", why
	}
	if !meta.SetStatusCondition(&have, c) {
		return nil
	}
	if err := d.patchStatus(ctx, object, map[string]any{"conditions": have}); err != nil {
		return fmt.Errorf("write the status of the User %s: %w", object, err)
	}
	return nil
}
