package services

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/services/release"
)

// annotationRestarted is an annotation of "kubectl rollout restart". Helm doesn't change this annotation.
const annotationRestarted = "kubectl.kubernetes.io/restartedAt"

// renew restarts a service's workloads. The workloads replace their pods according to their update strategies.
func (r *run) renew(ctx context.Context, s *catalogue.Service, out *release.Outcome) error {
	all, err := workloads(out.Manifest, s.Namespace)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{annotationRestarted: r.Clock().UTC().Format(time.RFC3339)},
	}}}})
	if err != nil {
		return fmt.Errorf("renew %s: %w", s.Name, err)
	}
	for _, w := range all {
		if err := r.patchWorkload(ctx, w, body); err != nil {
			return fmt.Errorf("renew the pods of %s %s: %w", w.kind, w.name, err)
		}
	}
	if len(all) > 0 {
		out.Action = ActionRestarted
		r.count(s.Name, 1)
	}
	return nil
}

func (r *run) patchWorkload(ctx context.Context, w workload, body []byte) error {
	apps := r.Client.AppsV1()
	var err error
	switch w.kind {
	case kindDeployment:
		_, err = apps.Deployments(w.namespace).Patch(ctx, w.name, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	case kindStatefulSet:
		_, err = apps.StatefulSets(w.namespace).Patch(ctx, w.name, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	case kindDaemonSet:
		_, err = apps.DaemonSets(w.namespace).Patch(ctx, w.name, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	}
	return err
}
