package services

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/config/store"
)

// data creates the volume of prometheus like the storage chart. data creates a claim, a volume on w1, and the Job that created the volume's folder.
func (l *lab) data() {
	l.t.Helper()
	ctx := l.t.Context()
	_, err := l.client.CoreV1().PersistentVolumeClaims("pai-system").Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus-data", Namespace: "pai-system", Labels: map[string]string{labelInstance: "prometheus", labelPartOf: "paictl"}},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pai-prometheus-data-1", Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}}},
	}, metav1.CreateOptions{})
	require.NoError(l.t, err)
	labels := map[string]string{labelPartOf: "paictl", labelInstance: "storage", labelService: "prometheus", labelVolume: "pai-prometheus-data-1"}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pai-prometheus-data-1", Labels: labels}}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "pai-system", Name: "prometheus-data"}
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: "/data/prometheus/prometheus-data"}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"w1"}}},
	}}}}
	_, err = l.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	require.NoError(l.t, err)
	prepare := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "pai-volume-1", Namespace: "pai-system", Labels: labels}}
	prepare.Spec.Template.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: "w1"}, RestartPolicy: corev1.RestartPolicyOnFailure,
		Containers: []corev1.Container{{Name: "prepare", Image: "pai-volume:v1", Args: []string{"prepare", "--root=/host", "--owner=65534", "--mode=2770", "/data/prometheus/prometheus-data"}}},
	}
	_, err = l.client.BatchV1().Jobs("pai-system").Create(ctx, prepare, metav1.CreateOptions{})
	require.NoError(l.t, err)
}

// runJobs finishes each new Job with the given condition. The result lists the created Jobs.
func (l *lab) runJobs(condition batchv1.JobConditionType) *[]batchv1.Job {
	made := &[]batchv1.Job{}
	l.client.PrependReactor("create", "jobs", func(a clienttesting.Action) (bool, runtime.Object, error) {
		job := a.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, Reason: "Why", Message: "because"}}
		*made = append(*made, *job)
		return false, nil, nil
	})
	return made
}

func (l *lab) delete(confirm func(context.Context, Deletion) error, only ...string) error {
	o := l.options(only...)
	o.Confirm, o.WithDependents = confirm, true
	return l.Delete(l.t.Context(), o)
}

func (l *lab) left() (claims, volumes, jobs int) {
	c, err := l.client.CoreV1().PersistentVolumeClaims("").List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	v, err := l.client.CoreV1().PersistentVolumes().List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	j, err := l.client.BatchV1().Jobs("").List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	return len(c.Items), len(v.Items), len(j.Items)
}

func TestDeleteRemovesTheDataAndTheFoldersBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		l.data()
		made := l.runJobs(batchv1.JobComplete)
		var asked Deletion
		require.NoError(t, l.delete(func(_ context.Context, d Deletion) error { asked = d; return nil }, "prometheus"))
		assert.Equal(t, "lab", asked.ClusterID)
		assert.Equal(t, []string{"grafana", "prometheus"}, asked.Services)
		require.Len(t, asked.Volumes, 1)
		assert.Equal(t, "claim pai-system/prometheus-data, 10Gi, with the folder /data/prometheus/prometheus-data on w1", asked.Volumes[0].String())
		require.Len(t, *made, 1)
		pod := (*made)[0].Spec.Template.Spec
		assert.Equal(t, []string{"remove", "--root=/host", "/data/prometheus/prometheus-data"}, pod.Containers[0].Args)
		assert.Equal(t, "pai-volume:v1", pod.Containers[0].Image)
		assert.Equal(t, map[string]string{corev1.LabelHostname: "w1"}, pod.NodeSelector)
		claims, volumes, jobs := l.left()
		assert.Zero(t, claims+volumes+jobs, "also the Job that made the folder: a later start makes it anew")
		assert.Equal(t, []string{"uninstall grafana", "uninstall prometheus"}, l.releases.changes())
	})
}

func TestStopKeepsTheData(t *testing.T) {
	l := started(t)
	l.data()
	require.NoError(t, l.stop())
	claims, volumes, _ := l.left()
	assert.Equal(t, 2, claims+volumes)
}

func (l *lab) loses(services ...string) {
	l.Load = func(context.Context) (*Desired, error) {
		d, fs := desired(l.t, "", ""), testCharts()
		maps.DeleteFunc(fs, func(name string, _ *fstest.MapFile) bool {
			return slices.Contains(services, strings.Split(name, "/")[1])
		})
		d.Catalogue = catalogueOf(l.t, fs)
		return d, nil
	}
}

func TestDataOfAServiceThatWasStoppedAndTakenOutCanBeDeleted(t *testing.T) {
	for name, prepare := range map[string]func(l *lab){
		"a claim and its volume": func(*lab) {},
		"a volume whose claim is gone": func(l *lab) {
			require.NoError(t, l.client.CoreV1().PersistentVolumeClaims("pai-system").Delete(t.Context(), "prometheus-data", metav1.DeleteOptions{}))
		},
		"a claim whose volume is gone": func(l *lab) {
			require.NoError(t, l.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pai-prometheus-data-1", metav1.DeleteOptions{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := started(t)
				l.data()
				l.runJobs(batchv1.JobComplete)
				require.NoError(t, l.stop("prometheus", "grafana"))
				l.loses("grafana", "prometheus")
				prepare(l)
				var asked Deletion
				require.NoError(t, l.delete(func(_ context.Context, d Deletion) error { asked = d; return nil }, "prometheus"))
				assert.Equal(t, []string{"prometheus"}, asked.Services)
				claims, volumes, _ := l.left()
				assert.Zero(t, claims+volumes)
				require.ErrorContains(t, l.delete(nil, "prometheus"), `there is no service "prometheus"`)
			})
		})
	}
}

func TestDataOfOthersNamesNoService(t *testing.T) {
	l := started(t)
	foreign := map[string]string{labelService: "theirs", labelInstance: "theirs"}
	ours := map[string]string{labelInstance: "theirs", labelPartOf: "paictl"}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: foreign}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "pai-system", Name: "theirs"}
	_, err := l.client.CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{})
	require.NoError(t, err)
	for ns, labels := range map[string]map[string]string{"pai-system": foreign, "pai-jobs": ours} {
		_, err := l.client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: ns, Labels: labels}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.ErrorContains(t, l.delete(nil, "theirs"), `there is no service "theirs"`)
	require.NoError(t, l.delete(nil))
	claims, volumes, _ := l.left()
	assert.Equal(t, 3, claims+volumes)
}

func TestDataOfAStoppedServiceCanBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		l.data()
		l.runJobs(batchv1.JobComplete)
		require.NoError(t, l.stop())
		l.releases.forget()
		require.NoError(t, l.delete(nil))
		assert.Empty(t, l.releases.changes())
		claims, volumes, _ := l.left()
		assert.Zero(t, claims+volumes)
	})
}

func TestNothingIsDeletedUnlessItIsConfirmed(t *testing.T) {
	l := started(t)
	l.data()
	l.client.ClearActions()
	no := errors.New("not confirmed")
	require.ErrorIs(t, l.delete(func(context.Context, Deletion) error { return no }), no)
	assert.Empty(t, l.releases.changes())
	assert.Empty(t, l.writes())
}

func TestADeleteWithABrokenConfigurationAsksForTheClusterID(t *testing.T) {
	for name, tc := range map[string]struct {
		now  store.Revision
		err  error
		want string
	}{
		"a configuration that is broken": {store.Revision{Number: 5, ClusterID: "lab"}, nil, "lab"},
		"no configuration":               {store.Revision{}, store.ErrNone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := started(t)
			l.Load = func(context.Context) (*Desired, error) { return nil, errors.New("the configuration has 1 problem") }
			l.Current = func(context.Context) (store.Revision, error) { return tc.now, tc.err }
			var asked Deletion
			require.NoError(t, l.delete(func(_ context.Context, d Deletion) error { asked = d; return nil }))
			assert.Equal(t, tc.want, asked.ClusterID)
		})
	}
}

func TestAFolderThatCannotBeRemovedKeepsItsVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		l.data()
		l.runJobs(batchv1.JobFailed)
		err := l.delete(nil, "prometheus")
		var partial *PartialError
		require.ErrorAs(t, err, &partial)
		assert.Equal(t, "remove the folder /data/prometheus/prometheus-data on w1: the job pai-volume-remove-pai-prometheus-data-1 failed: why: because", partial.Failed[0].Error)
		assert.Contains(t, partial.Failed[0].Hint, "remove the folder yourself")
		claims, volumes, _ := l.left()
		assert.Equal(t, 2, claims+volumes, "the next delete finds it again")
	})
}

func TestWithoutAnImageForItAFolderIsNotForgotten(t *testing.T) {
	l := started(t)
	l.data()
	require.NoError(t, l.client.BatchV1().Jobs("pai-system").Delete(t.Context(), "pai-volume-1", metav1.DeleteOptions{}))
	err := l.delete(nil, "prometheus")
	var partial *PartialError
	require.ErrorAs(t, err, &partial)
	assert.Contains(t, partial.Failed[0].Error, "there is no Job that could remove the folder")
}

func TestWhatADeleteRemovesIsSaidBefore(t *testing.T) {
	for _, tc := range []struct {
		name string
		v    Volume
		want string
	}{
		{"a folder of paictl's", Volume{Namespace: "n", Claim: "c", Size: "1Gi", PersistentVolume: "p", Folder: "/d", Node: "w1", Owned: true}, "claim n/c, 1Gi, with the folder /d on w1"},
		{"a folder of the operator's", Volume{Namespace: "n", Claim: "c", PersistentVolume: "p", Folder: "/d", Node: "w1"}, "claim n/c; the folder /d on w1 stays"},
		{"a share", Volume{Namespace: "n", Claim: "c", PersistentVolume: "p", Share: "nas:/x"}, "claim n/c; the data on nas:/x stays"},
		{"a volume made on demand", Volume{Namespace: "n", Claim: "c", PersistentVolume: "p", Dynamic: true}, "claim n/c, with its volume"},
		{"another volume", Volume{Namespace: "n", Claim: "c", PersistentVolume: "p"}, "claim n/c; the data in the volume p stays"},
		{"no volume", Volume{Namespace: "n", Claim: "c"}, "claim n/c"},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, tc.v.String()) })
	}
}

func TestVolumesOfTheOperatorAreNotEmptied(t *testing.T) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Labels: map[string]string{labelPartOf: "paictl", labelInstance: "storage"}}}
	pv.Spec.Local = &corev1.LocalVolumeSource{Path: "/mnt/datasets"}
	v := Volume{Service: "storage"}
	describeVolume(&v, pv)
	assert.False(t, v.Owned)
}

func TestADeleteOfNothingSaysSo(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.delete(func(context.Context, Deletion) error { return errors.New("nobody needs to be asked") }))
	assert.Zero(t, l.story.summary().Services)
}

func TestAClaimHasTheVolumeThatItIsBoundTo(t *testing.T) {
	waits := func(name string) corev1.PersistentVolume {
		pv := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "n", Name: "data"}
		return pv
	}
	pvs := []corev1.PersistentVolume{waits("a-of-a-later-layout"), waits("b")}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "data"}}
	assert.Equal(t, "a-of-a-later-layout", volumeOf(claim, pvs).Name, "one waits for it")
	claim.Spec.VolumeName = "b"
	assert.Equal(t, "b", volumeOf(claim, pvs).Name)
	claim.Spec.VolumeName = "gone"
	assert.Nil(t, volumeOf(claim, pvs))
}

func TestADeleteLeavesTheVolumesOfOthers(t *testing.T) {
	l := started(t)
	ctx := t.Context()
	_, err := l.client.CoreV1().PersistentVolumeClaims("pai-system").Create(ctx, &corev1.PersistentVolumeClaim{
		// This claim belongs to a third-party chart, so it has no labels of paictl.
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "pai-system", Annotations: map[string]string{annotationRelease: "grafana"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "nas-1"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "nas-1"}}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "nas", VolumeHandle: "1"}
	_, err = l.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, l.delete(nil, "grafana"))
	claims, volumes, _ := l.left()
	assert.Zero(t, claims)
	assert.Equal(t, 1, volumes, "it was said to stay")
}

func TestAJobThatAnEarlierDeleteLeftDoesNotStandForThisOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		l.data()
		left := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "pai-volume-remove-pai-prometheus-data-1", Namespace: "pai-system"}}
		left.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		_, err := l.client.BatchV1().Jobs("pai-system").Create(t.Context(), left, metav1.CreateOptions{})
		require.NoError(t, err)
		l.runJobs(batchv1.JobFailed)
		require.Error(t, l.delete(nil, "prometheus"), "this one failed")
	})
}

func TestAJobOfSomebodyElseDoesNotSayWhatRemovesAFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		l.data()
		foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "team", Labels: map[string]string{labelVolume: "pai-prometheus-data-1"}}}
		foreign.Spec.Template.Spec.Containers = []corev1.Container{{Name: "x", Image: "evil"}}
		_, err := l.client.BatchV1().Jobs("team").Create(t.Context(), foreign, metav1.CreateOptions{})
		require.NoError(t, err)
		made := l.runJobs(batchv1.JobComplete)
		require.NoError(t, l.delete(nil, "prometheus"))
		require.Len(t, *made, 1)
		assert.Equal(t, "pai-volume:v1", (*made)[0].Spec.Template.Spec.Containers[0].Image)
	})
}

func TestAServiceThatWasStartedWhileADeleteAskedIsStoppedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		l.data()
		l.runJobs(batchv1.JobComplete)
		require.NoError(t, l.stop("prometheus", "grafana"))
		err := l.delete(func(context.Context, Deletion) error {
			defer l.releases.forget()
			return l.Start(t.Context(), Options{Names: []string{"prometheus"}})
		}, "prometheus")
		require.NoError(t, err)
		assert.Equal(t, []string{"uninstall prometheus"}, l.releases.changes(), "its data has gone")
	})
}

func TestAServiceThatWasDeletedIsNotAStoppedOne(t *testing.T) {
	l := started(t)
	require.NoError(t, l.stop("grafana"))
	require.Equal(t, StateStopped, l.states()["grafana"].State)
	require.NoError(t, l.Delete(t.Context(), l.options("grafana")))
	assert.Equal(t, StateNotInstalled, l.states()["grafana"].State)
}
