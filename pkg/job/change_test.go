package job

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

func TestAScaledJobHasTheLimitsOfASubmission(t *testing.T) {
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelUser: "ann"}, Annotations: map[string]string{v1.AnnotationJobName: "train", v1.AnnotationGang: "false"}},
		Spec: v1.FrameworkSpec{TaskRoles: []v1.TaskRole{{Name: "a", TaskNumber: 1}, {Name: "b", TaskNumber: 100}}}}
	_, err := (&Client{}).Scale(t.Context(), Of(f), "a", protocol.MaxTasks, ScaleOptions{})
	require.EqualError(t, err, "ann/train would have 10100 tasks, but the limit of one job is 10000")
	_, err = (&Client{}).Scale(t.Context(), Of(f), "a", -1, ScaleOptions{})
	require.EqualError(t, err, "a role can't have -1 tasks")
	require.NoError(t, scalable(f, 0, protocol.MaxTasks-100))
}

func TestANameThatIsTakenSaysUntilWhen(t *testing.T) {
	now := metav1.NewTime(time.Unix(0, 0))
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now, Labels: map[string]string{v1.LabelUser: "ann"}, Annotations: map[string]string{v1.AnnotationJobName: "train"}}}
	err := conflict(Of(f))
	require.ErrorContains(t, err, "which is being deleted: its name is taken until its tasks stop")
	assert.Contains(t, hint.Of(err), "--replace")
	err = conflict(Past(&api.JobDetail{Job: api.Job{User: "ann", Name: "train", State: api.Succeeded}}))
	require.ErrorContains(t, err, "user ann already had a job train, which has succeeded")
	assert.Contains(t, hint.Of(err), "which keeps its name until paictl job delete ann/train --history")
}

// New tasks of a growing job may find fewer resources than the job found when it was submitted.
func TestTasksOfAJobThatGrowsAreCheckedAsThoseOfASubmission(t *testing.T) {
	const text = "protocolVersion: 2\nname: wide\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\n" +
		"taskRoles: {w: {instances: 2, dockerImage: i, resourcePerInstance: {cpu: 9, memoryMB: 64, gpu: 4}, commands: [echo]}}\nextras: {gangAllocation: false}\n" +
		"secrets: {key: \"" + protocol.Masked + "\"}\n"
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelUser: "ann", v1.LabelVC: "default"},
		Annotations: map[string]string{v1.AnnotationJobName: "wide", v1.AnnotationGang: "false", v1.AnnotationConfig: text}},
		Spec: v1.FrameworkSpec{TaskRoles: []v1.TaskRole{{Name: "w", TaskNumber: 2}}}}
	c := &Client{Namespace: kube.JobNamespace, Now: time.Now}
	offers := func(owned int) func(context.Context) (*Facts, error) {
		return func(context.Context) (*Facts, error) {
			return &Facts{Cluster: render.Cluster{SchedulerName: "pai-scheduler", SKUs: map[string]render.SKU{"A100": {GPU: 1, MilliCPU: 2000, MemoryMB: 1 << 10, PerNode: 8}},
				VirtualClusters: map[string]render.VirtualCluster{"default": {Cells: map[string]int{"A100": owned}}}}}, nil
		}
	}
	found, err := c.fitting(t.Context(), f, 0, 300, offers(8))
	require.NoError(t, err, "tasks without a gang need not run at the same time")
	require.Len(t, found, 1)
	assert.Contains(t, found[0].Message, "a task of w asks for 4 GPUs and takes 5")

	_, err = c.Scale(t.Context(), Of(f), "w", 3, ScaleOptions{Facts: offers(4)})
	require.EqualError(t, err, "ann/wide can't have 3 tasks: the job needs 5 GPUs at the same time, but the virtual cluster default owns 4")
	assert.Contains(t, hint.Of(err), "request less")
	f.Annotations[v1.AnnotationConfig] = "none"
	found, err = c.fitting(t.Context(), f, 0, 3, offers(4))
	require.NoError(t, err, "its file was accepted once")
	assert.Empty(t, found)
}
