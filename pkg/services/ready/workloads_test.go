package ready

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestARolloutIsReadyOnlyInItsNewestRevision(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*appsv1.Deployment, *appsv1.ReplicaSet)
		ready  bool
	}{
		"all rolled out":                        {func(*appsv1.Deployment, *appsv1.ReplicaSet) {}, true},
		"the controller hasn't seen the change": {func(d *appsv1.Deployment, _ *appsv1.ReplicaSet) { d.Generation = 2 }, false},
		"the new pod isn't made yet":            {func(d *appsv1.Deployment, _ *appsv1.ReplicaSet) { d.Status.UpdatedReplicas = 0 }, false},
		"the old pod is still there":            {func(d *appsv1.Deployment, _ *appsv1.ReplicaSet) { d.Status.Replicas = 2 }, false},
		"the new pod isn't available":           {func(d *appsv1.Deployment, _ *appsv1.ReplicaSet) { d.Status.AvailableReplicas = 0 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := deployment(1)
			c.change(d, r)
			got, _ := stateOf(t.Context(), theDeployment, world(d, r, pod("p", r, kindReplicaSet), node("a", corev1.ConditionTrue)), told{})
			assert.Equal(t, c.ready, got.Ready)
		})
	}

	t.Run("pods of the old revision count for nothing", func(t *testing.T) {
		d, old := deployment(1)
		d.Annotations[revisionAnnotation] = "2"
		d.Status.UpdatedReplicas = 0
		got, _ := stateOf(t.Context(), theDeployment, world(d, old, pod("p", old, kindReplicaSet), node("a", corev1.ConditionTrue)), told{})
		assert.Equal(t, State{Pods: 1, ReadyPods: 0}, got)
	})
}

func TestADaemonSetNeedsOnlyNodesThatAnswer(t *testing.T) {
	targets := []target{{kind: kindDaemonSet, namespace: ns, name: "node-exporter"}}
	up, down := node("a", corev1.ConditionTrue), node("b", corev1.ConditionUnknown)
	t.Run("a powered-off node is named and not waited for", func(t *testing.T) {
		d, r := daemonSet(2)
		away := daemon(d, "b")
		setCondition(away, corev1.PodReady, corev1.ConditionFalse, "")
		got, _ := stateOf(t.Context(), targets, world(d, r, up, down, daemon(d, "a"), away), told{})
		assert.True(t, got.Ready)
		assert.Equal(t, 2, got.Pods)
		assert.Equal(t, 1, got.ReadyPods)
		if assert.Len(t, got.Problems, 1) {
			assert.Equal(t, "node/b", got.Problems[0].Object)
			assert.False(t, got.Problems[0].Final)
		}
	})
	t.Run("a node that was off from the start", func(t *testing.T) {
		d, r := daemonSet(2)
		away := daemon(d, "")
		away.Name, away.Status = "new", corev1.PodStatus{Phase: corev1.PodPending}
		away.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}}},
		}}}
		got, _ := stateOf(t.Context(), targets, world(d, r, up, down, daemon(d, "a"), away), told{})
		assert.True(t, got.Ready)
	})
	t.Run("a pod that isn't made yet is waited for", func(t *testing.T) {
		d, r := daemonSet(2)
		got, _ := stateOf(t.Context(), targets, world(d, r, up, node("b", corev1.ConditionTrue), daemon(d, "a")), told{})
		assert.Equal(t, State{Pods: 2, ReadyPods: 1, Since: got.Since}, got)
	})
	t.Run("a pod of the old revision is waited for", func(t *testing.T) {
		d, r := daemonSet(1)
		old := daemon(d, "a")
		old.Labels[appsv1.ControllerRevisionHashLabelKey] = "one"
		got, _ := stateOf(t.Context(), targets, world(d, r, up, old), told{})
		assert.Equal(t, State{Pods: 1}, got)
	})
	t.Run("no node matches", func(t *testing.T) {
		d, r := daemonSet(0)
		got, _ := stateOf(t.Context(), targets, world(d, r, up), told{})
		assert.False(t, got.Ready)
		if assert.Len(t, got.Problems, 1) {
			p := got.Problems[0]
			assert.Equal(t, "no node has the label pai-worker=true, or those that do have a taint or are cordoned", p.Message)
			assert.True(t, p.Final)
			assert.Contains(t, p.Hint, "layout.yaml")
		}
	})
	t.Run("one cause on many nodes is told once", func(t *testing.T) {
		d, r := daemonSet(3)
		objects := []runtime.Object{d, r}
		for _, n := range []string{"a", "b", "c"} {
			objects = append(objects, node(n, corev1.ConditionTrue), broken(daemon(d, n), waiting("InvalidImageName", "")))
		}
		got, _ := stateOf(t.Context(), targets, world(objects...), told{})
		if assert.Len(t, got.Problems, 1) {
			assert.True(t, strings.HasSuffix(got.Problems[0].Message, " (and 2 objects more)"), got.Problems[0].Message)
		}
	})
}

func TestAStatefulSetRollsOutInOrder(t *testing.T) {
	targets := []target{{kind: kindStatefulSet, namespace: ns, name: "prometheus"}}
	up := node("a", corev1.ConditionTrue)
	t.Run("all in the newest revision", func(t *testing.T) {
		d := statefulSet(1)
		got, _ := stateOf(t.Context(), targets, world(d, up, member(d, "prometheus-0", "two")), told{})
		assert.True(t, got.Ready)
		assert.Equal(t, 1, got.ReadyPods)
	})
	t.Run("the old pod isn't the new one", func(t *testing.T) {
		d := statefulSet(1)
		d.Status.UpdatedReplicas = 0
		got, _ := stateOf(t.Context(), targets, world(d, up, member(d, "prometheus-0", "one")), told{})
		assert.Equal(t, State{Pods: 1}, got)
	})
	t.Run("a broken pod of the old revision blocks the new one", func(t *testing.T) {
		d := statefulSet(1)
		d.Status.UpdatedReplicas, d.Status.ReadyReplicas = 0, 0
		got, _ := stateOf(t.Context(), targets, world(d, up, broken(member(d, "prometheus-0", "one"), waiting("InvalidImageName", ""))), told{})
		if assert.Len(t, got.Problems, 1) {
			assert.Contains(t, got.Problems[0].Message, "it belongs to the old revision")
			assert.Contains(t, got.Problems[0].Hint, "kubectl -n pai-system delete pod prometheus-0")
		}
	})
	t.Run("with OnDelete the old revision is what is wanted", func(t *testing.T) {
		d := statefulSet(1)
		d.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		d.Status.UpdatedReplicas = 0
		got, _ := stateOf(t.Context(), targets, world(d, up, member(d, "prometheus-0", "one")), told{})
		assert.True(t, got.Ready)
	})
}

func TestJobsClaimsAndVolumes(t *testing.T) {
	class, later := "pai-local", storagev1.VolumeBindingWaitForFirstConsumer
	claim := func(phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metaOf("data", nil, "")}
		c.Spec.StorageClassName, c.Status.Phase = &class, phase
		return c
	}
	volume := func(phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metaOf("v", nil, "")}
		v.Namespace, v.Status.Phase = "", phase
		return v
	}
	sc := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}}
	lazy := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, VolumeBindingMode: &later}
	theJob := target{kind: kindJob, namespace: ns, name: "format"}
	theClaim, theVolume := target{kind: kindClaim, namespace: ns, name: "data"}, target{kind: kindVolume, name: "v"}
	failed := job(batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"})
	dead := pod("format-x", failed, kindJob)
	dead.Status.Phase = corev1.PodFailed
	dead.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: ended(3, "Error")}

	for name, c := range map[string]struct {
		target target
		world  *snapshot
		ready  bool
		want   string // reason: message
		final  bool
		log    []string
	}{
		"a job that is done":              {target: theJob, world: world(job(batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})), ready: true},
		"a job that cleaned up after":     {target: target{kind: kindJob, namespace: ns, name: "format", passing: true}, world: world(), ready: true},
		"a job that was deleted":          {target: theJob, world: world(), want: "Missing: it is missing", final: true},
		"a job that failed":               {target: theJob, world: world(failed, dead), final: true, log: []string{"boom"}, want: "JobFailed: it failed: backoff limit exceeded: Job has reached the specified backoff limit; container main ended with exit code 3"},
		"a claim that is bound":           {target: theClaim, world: world(claim(corev1.ClaimBound)), ready: true},
		"a claim that waits for its pod":  {target: theClaim, world: world(claim(corev1.ClaimPending), lazy), ready: true},
		"a claim without its class":       {target: theClaim, world: world(claim(corev1.ClaimPending)), want: "VolumeUnbound: storage class pai-local does not exist", final: true},
		"a claim that nobody serves yet":  {target: theClaim, world: world(claim(corev1.ClaimPending), sc), want: "VolumeUnbound: no volume of storage class pai-local has been bound to it yet"},
		"a claim whose volume is gone":    {target: theClaim, world: world(claim(corev1.ClaimLost), sc), want: "VolumeLost: its volume  is gone, including its data", final: true},
		"a volume that is free":           {target: theVolume, world: world(volume(corev1.VolumeAvailable)), ready: true},
		"a volume that can't be recycled": {target: theVolume, world: world(volume(corev1.VolumeFailed)), want: "VolumeFailed: its volume can't be reclaimed:", final: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := stateOf(t.Context(), []target{c.target}, c.world, told{lines: []string{"boom"}})
			assert.Equal(t, c.ready, got.Ready)
			if c.want == "" {
				assert.Empty(t, got.Problems)
				return
			}
			if assert.Len(t, got.Problems, 1) {
				p := got.Problems[0]
				assert.Equal(t, strings.Join(strings.Fields(c.want), " "), p.Reason+": "+p.Message)
				assert.Equal(t, c.final, p.Final)
				assert.Equal(t, c.log, p.Log)
				assert.NotEmpty(t, p.Hint)
			}
		})
	}
}

func TestWhatAWorkingServiceHasBehindItIsNoProblem(t *testing.T) {
	d, r := deployment(1)
	evicted := pod("old", r, kindReplicaSet)
	evicted.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
	got, _ := stateOf(t.Context(), theDeployment, world(d, r, evicted, pod("p", r, kindReplicaSet), node("a", corev1.ConditionTrue)), told{})
	assert.Equal(t, State{Ready: true, Pods: 1, ReadyPods: 1, Since: start.Add(-30 * time.Second)}, State{Ready: got.Ready, Pods: got.Pods, ReadyPods: got.ReadyPods, Problems: got.Problems, Since: got.Since.UTC()})
}
