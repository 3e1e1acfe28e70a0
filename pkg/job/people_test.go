package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// This file tests the parts of the package that a server for several users needs.

// unknown is a history that doesn't know any job.
var unknown = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"code":"NotFound","message":"no such job"}`))
})

func TestAnExactNameIsNoNameOfAnObject(t *testing.T) {
	c, _ := onServer(t, jobtest.Services{api.Service: unknown})
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "exact", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	j, err := c.ResolveExact(ctx, "exact", "train")
	require.NoError(t, err)
	assert.Equal(t, "exact/train", j.Title())
	object := v1.ObjectName("exact", "train")
	_, err = c.Resolve(ctx, "mallory", object)
	require.NoError(t, err, "which is what the operators' way in does")
	for _, name := range []string{object, "exact~train", "exact/train", "", "~train", "train~", "tr ain"} {
		_, err := c.ResolveExact(ctx, "mallory", name)
		assert.True(t, IsNotFound(err), "%q: %v", name, err)
	}
	_, err = c.ResolveExact(ctx, "", object)
	assert.True(t, IsNotFound(err))

	// The object has the name of the job, but its label says that it belongs to another user.
	f, err := c.Frameworks.Get(ctx, object)
	require.NoError(t, err)
	f.Labels[v1.LabelUser] = "other"
	_, err = c.Frameworks.Patch(ctx, object, "application/merge-patch+json", map[string]any{"metadata": map[string]any{"labels": f.Labels}})
	require.NoError(t, err)
	_, err = c.ResolveExact(ctx, "exact", "train")
	assert.True(t, IsNotFound(err))
	_, err = c.Submit(ctx, objects(t, "exact", "train", "echo"), SubmitOptions{})
	conflict, ok := errors.AsType[*ConflictError](err)
	require.True(t, ok, err)
	assert.Equal(t, Waiting, conflict.Phase)
}

func TestASubmissionThatIsSentAgainFindsWhatItMade(t *testing.T) {
	c, cluster := onServer(t, jobtest.Services{api.Service: unknown})
	ctx := t.Context()
	submit := func(key, command string, o SubmitOptions) (Outcome, error) {
		o.Key = key
		return c.Submit(ctx, objects(t, "resent", "train", command), o)
	}
	outcome, err := submit("k1", "echo", SubmitOptions{})
	require.NoError(t, err)
	assert.Equal(t, Submitted, outcome)
	jobtest.SetStatus(t, cluster, v1.ObjectName("resent", "train"), completedStatus())
	for _, o := range []SubmitOptions{{}, {Replace: true}, {SkipEnded: true}} {
		outcome, err = submit("k1", "echo", o)
		require.NoError(t, err, "%+v", o)
		assert.Equal(t, Submitted, outcome, "it has ended meanwhile, and was this submission's")
	}
	for key, command := range map[string]string{"k2": "echo", "": "echo", "k1": "date"} {
		_, err = submit(key, command, SubmitOptions{})
		_, ok := errors.AsType[*ConflictError](err)
		assert.True(t, ok, "%s %s: %v", key, command, err)
	}
}

func TestANameIsTakenOnlyWhereTheHistorySaysSo(t *testing.T) {
	away := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"code":"Unavailable","message":"not yet"}`))
	})
	c, _ := onServer(t, jobtest.Services{api.Service: away})
	_, err := c.Submit(t.Context(), objects(t, "sure", "train", "echo"), SubmitOptions{Sure: true})
	_, ok := errors.AsType[*UnavailableError](err)
	require.True(t, ok, err)
	assert.True(t, IsUnavailable(err))
	_, err = c.Submit(t.Context(), objects(t, "sure", "train", "echo"), SubmitOptions{})
	require.NoError(t, err, "as an operator does")
}

func TestAJobWaitsOnlyForThoseThatOneMayKnowOf(t *testing.T) {
	c, _ := onServer(t, jobtest.Services{api.Service: unknown})
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "hidden", "first", "echo"), SubmitOptions{})
	require.NoError(t, err)
	see := func(j *Job) error {
		if j.User == "hidden" {
			return errors.New("secret reason")
		}
		return nil
	}
	after := func(name string) error {
		_, err := c.Submit(ctx, objects(t, "seer", "second", "echo"), SubmitOptions{After: []protocol.After{{Job: name}}, MaySee: see})
		return err
	}
	hiddenOne, noOne := after("hidden/first"), after("hidden/none")
	require.EqualError(t, hiddenOne, `find the job to start after: user hidden has no job "first"`)
	require.EqualError(t, noOne, `find the job to start after: user hidden has no job "none"`)
	assert.True(t, IsNotFound(hiddenOne))
}

func TestARetryIsHeldToWhatIsAllowedNow(t *testing.T) {
	c, cluster := onServer(t, jobtest.Services{api.Service: unknown})
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "held", "train", "echo"), SubmitOptions{})
	require.NoError(t, err)
	object := v1.ObjectName("held", "train")
	var asked []Use
	no := errors.New("no longer granted")
	o := RetryOptions{Allow: func(u Use) error {
		asked = append(asked, u)
		return no
	}}
	for _, ended := range []bool{false, true} {
		if ended {
			jobtest.SetStatus(t, cluster, object, completedStatus())
		}
		before, err := c.Frameworks.Get(ctx, object)
		require.NoError(t, err)
		j, err := c.ResolveExact(ctx, "held", "train")
		require.NoError(t, err)
		_, err = c.Retry(ctx, j, o)
		require.ErrorIs(t, err, no)
		f, err := c.Frameworks.Get(ctx, object)
		require.NoError(t, err)
		assert.Equal(t, before.UID, f.UID, "it is not touched")
		assert.Equal(t, before.Annotations, f.Annotations)
	}
	require.Len(t, asked, 2)
	assert.Equal(t, "held", asked[0].User)
	assert.Equal(t, asked[0], asked[1])
}

// While a job that mounts a whole storage is in the cluster, the storage may change to one folder per user, or to read-only.
func TestAJobThatMountsMoreThanANewOneWouldIsNeitherRetriedNorGrown(t *testing.T) {
	c, cluster := onServer(t, jobtest.Services{api.Service: unknown})
	ctx, claims := t.Context(), cluster.Client.CoreV1().PersistentVolumeClaims(c.Namespace)
	put := func(labels map[string]string, mode corev1.PersistentVolumeAccessMode) {
		_ = claims.Delete(ctx, "share", metav1.DeleteOptions{})
		_, err := cluster.Client.CoreV1().RESTClient().Patch(types.MergePatchType).Namespace(c.Namespace).Resource("persistentvolumeclaims").Name("share").Body([]byte(`{"metadata":{"finalizers":null}}`)).DoRaw(ctx)
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		_, err = claims.Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "share", Labels: labels}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	o := objects(t, "mounts", "train", "echo")
	o.Framework.Annotations[v1.AnnotationGang] = "false"
	role := &o.Framework.Spec.TaskRoles[0]
	pod := &role.Task.Pod.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "s", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "share"}}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "s", MountPath: "/share"})
	put(nil, corev1.ReadWriteMany)
	_, err := c.Submit(ctx, o, SubmitOptions{})
	require.NoError(t, err)
	get := func() *Job {
		j, err := c.ResolveExact(ctx, "mounts", "train")
		require.NoError(t, err)
		return j
	}
	grow := func() error {
		_, err := c.Scale(ctx, get(), "", int(role.TaskNumber)+1, ScaleOptions{})
		return err
	}
	retry := func() error {
		_, err := c.Retry(ctx, get(), RetryOptions{})
		return err
	}
	for _, now := range []struct {
		what   string
		labels map[string]string
		mode   corev1.PersistentVolumeAccessMode
	}{
		{"jobs see only the folder of their user there now", map[string]string{labelShare: "false"}, corev1.ReadWriteMany}, {"jobs only read there now", nil, corev1.ReadOnlyMany},
	} {
		put(now.labels, now.mode)
		require.ErrorContains(t, grow(), now.what)
		require.ErrorContains(t, retry(), now.what)
	}
	put(nil, corev1.ReadWriteMany)
	require.NoError(t, retry())
	require.NoError(t, grow())
	put(nil, corev1.ReadOnlyMany)
	_, err = c.Scale(ctx, get(), "", int(role.TaskNumber), ScaleOptions{})
	require.NoError(t, err, "it may always become smaller")
	jobtest.SetStatus(t, cluster, v1.ObjectName("mounts", "train"), completedStatus())
	require.ErrorContains(t, retry(), "jobs only read there now", "of a job that has ended, too")
}

func TestARetryWaitsOnlyForJobsThatTheOwnerMayKnowOf(t *testing.T) {
	c, cluster := onServer(t, jobtest.Services{api.Service: unknown})
	ctx := t.Context()
	_, err := c.Submit(ctx, objects(t, "closed", "first", "echo"), SubmitOptions{})
	require.NoError(t, err)
	_, err = c.Submit(ctx, objects(t, "once", "second", "echo"), SubmitOptions{After: []protocol.After{{Job: "closed/first"}}})
	require.NoError(t, err)
	jobtest.SetStatus(t, cluster, v1.ObjectName("once", "second"), completedStatus())
	j, err := c.ResolveExact(ctx, "once", "second")
	require.NoError(t, err)
	short, cancel := context.WithTimeout(ctx, 20*time.Second) // otherwise it would wait for the removal
	defer cancel()
	_, err = c.Retry(short, j, RetryOptions{MaySee: func(*Job) error { return errors.New("secret reason") }})
	require.EqualError(t, err, `find the job to start after: user closed has no job "first"`)
	f, err := c.Frameworks.Get(ctx, j.Object)
	require.NoError(t, err)
	assert.Equal(t, j.framework.UID, f.UID, "it is not touched")
}

func TestWhatAJobUsesIsReadFromWhatRuns(t *testing.T) {
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostNetwork: true, Volumes: []corev1.Volume{
		{Name: "b", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "team"}}},
		{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelUser: "ann", v1.LabelVC: "vision", v1.LabelGroup: "lab"}, Annotations: map[string]string{v1.AnnotationPriority: "crit"}},
		Spec: v1.FrameworkSpec{TaskRoles: []v1.TaskRole{{Name: "a", Task: v1.Task{Pod: pod}}, {Name: "b", Task: v1.Task{Pod: pod}}}}}
	assert.Equal(t, Use{User: "ann", Group: "lab", VirtualCluster: "vision", Priority: "crit", Storages: []string{"data", "team"}, HostNetwork: true}, UseOf(f))
}

func TestNamesThatOneMayNotKnowAreNotTold(t *testing.T) {
	mine := NameOf(func(user, name string) string {
		if user == "ann" {
			return user + "/" + name
		}
		return ""
	})
	w := &Why{Job: "ann/train", Sentence: "It waits behind bob~secret-project/worker and ann~other/main.", Remedy: []string{"stop bob/secret-project, or ask"},
		Facts: []Fact{{"held by", "bob/secret-project (4 GPUs), ann/other (1 GPU)"}, {"image", "registry.example.com/bob/secret-project:1"}},
		Log:   []string{"bob/secret-project"}, others: []string{"bob/secret-project", "ann/other"}}
	mine.why(w, &Job{User: "ann", Name: "train"})
	assert.Equal(t, "It waits behind another job and ann~other/main.", w.Sentence)
	assert.Equal(t, []string{"stop another job, or ask"}, w.Remedy)
	assert.Equal(t, "another job (4 GPUs), ann/other (1 GPU)", w.Facts[0].Text)
	assert.Equal(t, "registry.example.com/bob/secret-project:1", w.Facts[1].Text, "the name of an image is no job's")
	assert.Equal(t, []string{"bob/secret-project"}, w.Log, "a program's own lines are left alone")

	list := &WaitingList{Total: 2, Items: []WaitingGang{
		{Job: "bob/secret-project", Queued: schedulerapi.Queued{VC: "vision", Group: "bob~secret-project/worker", User: "bob", Reason: "bob has his quota"}},
		{Job: "ann/train", Queued: schedulerapi.Queued{VC: "vision", Group: "ann~train/worker", User: "ann", Reason: "waits for bob~secret-project/worker"}}}}
	list.Items = mine.Waiting(list.Items)
	text, err := json.Marshal(list)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "secret")
	assert.NotContains(t, string(text), "bob")
	assert.Contains(t, string(text), "ann~train/worker")
	assert.Equal(t, "waits for another job", list.Items[1].Reason)
	assert.Equal(t, list.Items, NameOf(nil).Waiting(list.Items))
}

func TestHoldersAreKnownByName(t *testing.T) {
	e := &evidence{Detail: &Detail{job: &Job{}}, gang: &schedulerapi.Why{Explanation: &cell.Explanation{Holders: []cell.Holder{{Gang: "bob~x/worker", GPUs: 1}}}}}
	w := &Why{}
	e.queued(w)
	assert.Equal(t, []string{"bob/x"}, w.others)
}

func TestAJobCrossesAsJSON(t *testing.T) {
	f := objects(t, "json", "train", "echo").Framework
	f.UID = "u1"
	text, err := json.Marshal(Of(f))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter2")
	j := &Job{}
	require.NoError(t, json.Unmarshal(text, j))
	assert.Equal(t, "json/train", j.Title())
	assert.True(t, j.Live)
	assert.False(t, j.Ended())
	assert.Equal(t, []string{"Worker_1"}, j.RoleNames())
	assert.NotEmpty(t, j.RoleObject("Worker_1"))
	copied, secrets, err := Clone(j, "copy")
	require.NoError(t, err)
	assert.True(t, secrets)
	assert.Contains(t, string(copied), "name: copy")

	d := liveDetail(Of(f), nil, nil)
	d.Tasks = []Task{{Phase: Running}, {Phase: Waiting}}
	text, err = json.Marshal(d)
	require.NoError(t, err)
	back := &Detail{}
	require.NoError(t, json.Unmarshal(text, back))
	begun, total := back.Progress()
	assert.Equal(t, "1 of 2", fmt.Sprintf("%d of %d", begun, total))
}
