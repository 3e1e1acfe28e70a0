package rules

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// stored holds the rules of a cluster.
type stored struct {
	*kube.Cluster
	object *corev1.ConfigMap // nil if the cluster uses the built-in rules
}

func open(ctx context.Context, o kube.Options) (*stored, error) {
	c, err := kube.Open(o)
	if err != nil {
		return nil, err
	}
	h := &stored{Cluster: c}
	cm, err := c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, api.RulesConfigMap, metav1.GetOptions{})
	switch {
	case err == nil:
		h.object = cm
	case !apierrors.IsNotFound(err):
		return nil, c.Explain(fmt.Errorf("read the failure rules: %w", err))
	}
	return h, nil
}

// text returns the name and the text of the cluster's rules. Without stored rules, these are the built-in rules.
func (h *stored) text() (string, []byte) {
	if h.object == nil {
		return rules.File, rules.BuiltinText()
	}
	return "rules of the cluster", []byte(h.object.Data[rules.Key])
}

// put stores the text of a file that was already checked. It doesn't overwrite a change that another user has made since the rules were read.
func (h *stored) put(ctx context.Context, text []byte, dryRun bool) error {
	maps := h.Client.CoreV1().ConfigMaps(kube.SystemNamespace)
	all := dry(dryRun)
	var err error
	if h.object == nil {
		_, err = maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: api.RulesConfigMap, Namespace: kube.SystemNamespace, Labels: map[string]string{
				"app.kubernetes.io/name": api.RulesConfigMap, "app.kubernetes.io/managed-by": "paictl"}},
			Data: map[string]string{rules.Key: string(text)},
		}, metav1.CreateOptions{DryRun: all, FieldManager: "paictl"})
	} else {
		next := h.object.DeepCopy()
		next.Data, next.BinaryData = map[string]string{rules.Key: string(text)}, nil
		_, err = maps.Update(ctx, next, metav1.UpdateOptions{DryRun: all, FieldManager: "paictl"})
	}
	return h.explain(err)
}

// remove deletes the stored rules, so that the built-in rules are used again.
func (h *stored) remove(ctx context.Context, dryRun bool) error {
	if h.object == nil {
		return nil
	}
	return h.explain(h.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Delete(ctx, api.RulesConfigMap, metav1.DeleteOptions{
		DryRun: dry(dryRun), Preconditions: &metav1.Preconditions{UID: &h.object.UID, ResourceVersion: &h.object.ResourceVersion}}))
}

func dry(yes bool) []string {
	if yes {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (h *stored) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return hint.Errorf("look at it with: paictl rules diff; then push again", "someone else has changed the failure rules in the meantime")
	case apierrors.IsNotFound(err):
		return hint.Wrap(fmt.Errorf("the cluster has no namespace %s", kube.SystemNamespace), "start the platform with: paictl service start")
	}
	return h.Explain(fmt.Errorf("write the failure rules: %w", err))
}
