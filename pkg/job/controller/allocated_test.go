package controller

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	amount "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/archive"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

func TestWhatAPodHoldsIsWhatTheSchedulerGaveIt(t *testing.T) {
	bound := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		indices, spec, priority string
		plugin                  int64
		want                    *v1.TaskGPUs
	}{
		"nothing":                   {},
		"cells with a guarantee":    {indices: "0,3", spec: "{virtualCluster: a, priority: 10, leafCellType: any, leafCellNumber: 2}", want: &v1.TaskGPUs{Count: 2, Type: "H100"}},
		"cells without one":         {indices: "5", spec: "{virtualCluster: a, priority: -1, leafCellNumber: 1}", want: &v1.TaskGPUs{Count: 1, Type: "H100", Opportunistic: true}},
		"a request with a mistake":  {indices: "5", spec: "{", priority: "oppo", want: &v1.TaskGPUs{Count: 1, Type: "H100", Opportunistic: true}},
		"GPUs of the device plugin": {plugin: 4, want: &v1.TaskGPUs{Count: 4, Type: "H100"}},
	} {
		t.Run(name, func(t *testing.T) {
			template := app(corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{resourceGPU: *amount.NewQuantity(c.plugin, amount.DecimalSI)}}})
			template.Annotations = map[string]string{annotation.SpecKey: c.spec}
			f, _, _ := jobOf(1, template)
			f.Annotations[v1.AnnotationPriority] = c.priority
			r := &reconciler{cache: &caches{}, now: time.Now}
			var err error
			r.cache, err = newCaches(nil, "jobs")
			require.NoError(t, err)
			node, err := slimNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Annotations: map[string]string{
				api.DevicesAnnotation: `{"devices":[{"index":0,"healthy":false},{"index":1,"healthy":true,"model":"H100"}]}`}}})
			require.NoError(t, err)
			require.NoError(t, r.cache.nodes.GetIndexer().Add(node))
			slim := slimPod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{v1.LabelTaskRole: "worker"}, Annotations: map[string]string{annotation.IsolationKey: c.indices}},
				Spec:       corev1.PodSpec{NodeName: "gpu-1"},
				Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: bound}}},
			})
			if c.want != nil {
				c.want.Since = bound
			}
			got, known := r.allocated(f, slim)
			assert.True(t, known)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestAPodWhoseNodeIsNotKnownYetIsAskedForAgain(t *testing.T) {
	f, _, _ := jobOf(1, app(corev1.Container{}))
	cache, err := newCaches(nil, "jobs")
	require.NoError(t, err)
	now := time.Now()
	r := &reconciler{cache: cache, began: now, now: func() time.Time { return now }}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotation.IsolationKey: "0"}}, Spec: corev1.PodSpec{NodeName: "gpu-1"}}
	_, known := r.allocated(f, p)
	assert.False(t, known)
	now = now.Add(2 * nodesWait)
	got, known := r.allocated(f, p)
	assert.True(t, known, "nothing waits for nodes for ever")
	assert.Equal(t, int32(1), got.Count)
}

// counting is an archive that counts how often holds are written.
type counting struct {
	archive.Store
	n    int
	fail error
}

func (c *counting) SaveHolds(context.Context, *v1.Framework) error { c.n++; return c.fail }

func TestWhatAJobHoldsIsWrittenAtOnceAndThenNowAndAgain(t *testing.T) {
	f, st, task := jobOf(1, app(corev1.Container{}))
	st.AttemptStatus.TaskRoleStatuses[0].TaskStatuses = []*v1.TaskStatus{task}
	m, err := newMetrics(nil)
	require.NoError(t, err)
	store := &counting{}
	now := time.Now()
	r := &reconciler{o: Options{Store: store, Log: logr.Discard()}, metrics: m, now: func() time.Time { return now }}
	e := &entry{status: st}
	ask := func() time.Duration { return r.account(t.Context(), f, e) }

	assert.Zero(t, ask())
	assert.Zero(t, store.n, "it holds none")
	task.AttemptStatus.GPUs = &v1.TaskGPUs{Count: 1, Since: metav1.NewTime(now)}
	store.fail = context.DeadlineExceeded
	assert.Equal(t, accountSoon, ask(), "a failure delays nothing else")
	store.fail = nil
	assert.Equal(t, accountEvery, ask())
	assert.Equal(t, 2, store.n)
	now = now.Add(time.Minute)
	assert.Equal(t, accountEvery-time.Minute, ask())
	assert.Equal(t, 2, store.n)
	now = now.Add(-time.Hour)
	assert.Equal(t, accountEvery, ask(), "a clock that was set back doesn't stop it")
	assert.Equal(t, 3, store.n)
	ended := metav1.NewTime(now)
	task.AttemptStatus.CompletionTime = &ended
	assert.Equal(t, accountSoon, ask())
	now = now.Add(accountSoon)
	assert.Zero(t, ask(), "there is nothing left to write")
	assert.Equal(t, 4, store.n)
	assert.Zero(t, ask())
	assert.Equal(t, 4, store.n)
}
