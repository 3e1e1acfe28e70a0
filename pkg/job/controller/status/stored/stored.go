// Package stored reads Frameworks with all their tasks from the API, or from a cache of the API.
// In: a client of controller-runtime. Out: Frameworks with all tasks.
//
// It is separate from package status, because paictl uses that package and doesn't depend on controller-runtime.
package stored

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// Load reads a Framework with all its tasks. If the Framework doesn't exist, the error satisfies apierrors.IsNotFound.
func Load(ctx context.Context, c client.Reader, namespace, name string) (*v1.Framework, error) {
	f := &v1.Framework{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, f); err != nil {
		return nil, fmt.Errorf("read Framework %s: %w", name, err)
	}
	_, _, err := Complete(ctx, c, f)
	return f, err
}

// Complete adds the tasks to a Framework that was read without them from a list or a cache. It changes the Framework, so the Framework must not
// be shared. Tasks of lost chunks are missing; see status.Fill.
func Complete(ctx context.Context, c client.Reader, f *v1.Framework) (*status.Layout, []status.Lost, error) {
	if f.Status == nil || f.Status.AttemptStatus.TaskChunks == 0 {
		layout, _ := status.Fill(f, nil)
		return layout, nil, nil
	}
	list := &corev1.ConfigMapList{}
	if err := c.List(ctx, list, client.InNamespace(f.Namespace), client.MatchingLabels{v1.LabelFramework: f.Name, status.LabelPart: status.PartTasks}); err != nil {
		return nil, nil, fmt.Errorf("read the tasks of Framework %s: %w", f.Name, err)
	}
	chunks := make([]*corev1.ConfigMap, len(list.Items))
	for i := range list.Items {
		chunks[i] = &list.Items[i]
	}
	layout, lost := status.Fill(f, chunks)
	return layout, lost, nil
}
