package alerthandler

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
)

// ofJob returns a handler with a job, and with a policy that requeues the job.
func ofJob(t *testing.T) (*Handler, *jobv1.Framework) {
	t.Helper()
	h := ofActions(time.Time{})
	h.o.JobNamespace = "pai-jobs"
	h.o.Policies = &policy.Config{Limits: policy.Limits{RequeuesPerHour: 1, RequeuesPerHourPerVirtualCluster: 1, RequeuesPerJob: 3}, Policies: []policy.Policy{{Name: "broken", Steps: []policy.Step{{Do: v1.OperationRequeueJob}}}}}
	job := &jobv1.Framework{TypeMeta: metav1.TypeMeta{APIVersion: jobv1.GroupVersion.String(), Kind: jobv1.Kind}, ObjectMeta: metav1.ObjectMeta{Name: "o1", Namespace: "pai-jobs", UID: "u1"}, Spec: jobv1.FrameworkSpec{ExecutionType: jobv1.ExecutionStart}}
	h.jobs = watch.New(watch.Options[*jobv1.Framework, *jobFacts]{Name: "jobs", Keep: keepJob})
	require.NoError(t, h.jobs.Add(job))
	return h, job
}

// The API server rejects a requeue. The handler repeats the requeue with growing pauses. Finally the Action fails, so that another Action can requeue
// the job.
func TestARequeueThatIsRefusedEnds(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	h, job := ofJob(t)
	h.o.Now, h.tries = func() time.Time { return now }, tries{}
	a := requeueAction(now)
	a.Annotations[AnnotationLastAlert] = annotation(now.Add(time.Hour))
	a.CreationTimestamp, a.Spec.NotAfter = metav1.NewTime(now), metav1.NewTime(now.Add(time.Hour))
	a.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind}
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1.Actions: "ActionList"}, toObject(t, a), toObject(t, job))
	h.objects = objects
	var answer error = apierrors.NewForbidden(frameworks.GroupResource(), "o1", errors.New("the policy denied it"))
	patches := 0
	objects.PrependReactor("patch", frameworks.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		return true, nil, answer
	})
	look := func() *v1.Action {
		u, err := objects.Resource(v1.Actions).Get(t.Context(), a.Name, metav1.GetOptions{})
		require.NoError(t, err)
		seen, err := keepAction(u)
		require.NoError(t, err)
		if seen.Status.Phase.Final() {
			return seen
		}
		_, _ = h.advance(t.Context(), seen, []*v1.Action{seen}, now)
		return seen
	}
	for range 15 * 60 {
		look()
		now = now.Add(time.Second)
	}
	seen := look()
	require.Equal(t, v1.PhaseFailed, seen.Status.Phase)
	require.Equal(t, `it couldn't requeue ann/train within 10m0s: frameworks.frameworkcontroller.microsoft.com "o1" is forbidden: the policy denied it`, seen.Status.Message)
	require.Equal(t, 10*time.Minute, seen.Status.EndTime.Sub(seen.Status.StartTime.Time))
	require.Equal(t, 13, patches, "after 5, 10, 20, 40 seconds, and then each minute")
	require.Empty(t, h.tries)
	other := requeueAction(now)
	other.Name = "other"
	require.Empty(t, restarting(other, []*v1.Action{seen, other}))
}

func toObject(t *testing.T, o any) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: object}
}

// Only responses of the API server count as rejections. After a conflict, the next decision uses the current state of the target, and doesn't wait.
func TestRefusedEffects(t *testing.T) {
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	all := tries{}
	all.note("a", errors.New("connection refused"), now)
	require.Empty(t, all)
	all.note("a", errMoved, now)
	require.Equal(t, tries{"a": {why: errMoved.Error(), since: now}}, all)
	invalid := apierrors.NewBadRequest("no")
	for _, seconds := range []time.Duration{5, 10, 20, 40, 60, 60, 60, 60, 60, 60, 60} {
		all.note("a", invalid, now)
		require.Equal(t, now.Add(seconds*time.Second), all["a"].next)
		require.Equal(t, "no", all["a"].why)
	}
	all.note("a", invalid, now.Add(time.Hour))
	require.Equal(t, now, all["a"].since)
	all.note("a", errors.New("connection refused"), now)
	require.Empty(t, all, "the answer is an old one")
	all.note("a", invalid, now)
	all.note("a", nil, now)
	require.Empty(t, all)
}
