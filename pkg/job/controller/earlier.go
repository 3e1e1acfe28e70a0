package controller

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// earlier holds, by Framework, the pods that another process made and that are still missing from the cache. They are requested once for all
// Frameworks. With a request for each Framework, the API server would scan all pods each time, which is too much after a restart with thousands
// of jobs.
type earlier struct {
	mu   sync.Mutex
	pods map[string][]*corev1.Pod // nil until they are requested
}

// before returns the pods of a Framework that another process made and that the cache may not have yet. It isn't used for a Framework if this
// process has made pods of that Framework.
func (r *reconciler) before(ctx context.Context, framework string) ([]*corev1.Pod, error) {
	r.earlier.mu.Lock()
	defer r.earlier.mu.Unlock()
	if r.earlier.pods == nil {
		pods, err := r.missing(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the pods of all jobs: %w", err)
		}
		r.earlier.pods = pods
	}
	return r.earlier.pods[framework], nil
}

// missing lists the metadata of all pods page by page, and reads the pods that the cache doesn't have.
func (r *reconciler) missing(ctx context.Context) (map[string][]*corev1.Pod, error) {
	out := map[string][]*corev1.Pod{}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		return l, r.api.List(ctx, l, client.InNamespace(r.o.Namespace), client.HasLabels{v1.LabelFramework},
			&client.ListOptions{Raw: &o, Limit: o.Limit, Continue: o.Continue})
	}
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		m, ok := o.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("the API server answers with %T", o)
		}
		if p := r.cache.pod(m.Name); p != nil && p.UID == m.UID {
			return nil
		}
		p, err := r.lookup(ctx, m.Name)
		if err != nil {
			return err
		}
		if p != nil && p.UID == m.UID {
			framework := m.Labels[v1.LabelFramework]
			out[framework] = append(out[framework], slimPod(p))
		}
		return nil
	})
	return out, err
}
