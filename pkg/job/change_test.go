package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
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
