package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestACloneRecordsTheJobAndNotOnlyItsName(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := &v1.Framework{}
	f.UID, f.CreationTimestamp = "u1", metav1.NewTime(at.Local())
	f.Labels, f.Annotations = map[string]string{v1.LabelUser: "bob", v1.LabelVC: "speech"}, map[string]string{v1.AnnotationJobName: "train"}
	want := &v1.ClonedFrom{User: "bob", Name: "train", UID: "u1", VirtualCluster: "speech", Submitted: at}
	assert.Equal(t, want, Of(f).AsParent())
	past := Past(&api.JobDetail{Job: api.Job{User: "bob", Name: "train", UID: "u1", VirtualCluster: "speech", Submitted: at}})
	assert.Equal(t, want, past.AsParent())

	text, err := want.Text()
	require.NoError(t, err)
	copied := &v1.Framework{}
	copied.Annotations = map[string]string{v1.AnnotationClonedFrom: text}
	assert.Equal(t, want, Of(copied).ClonedFrom())
	assert.Equal(t, want, liveDetail(Of(copied), nil, nil).ClonedFrom)
	gone := Past(&api.JobDetail{ClonedFrom: want})
	assert.Equal(t, want, gone.ClonedFrom())
	assert.Equal(t, want, archivedDetail(gone).ClonedFrom)
	for _, forged := range []string{"", "null", "[]", `{"user":"bob"}`, `{"user":"bob","name":"train"}`, string(make([]byte, 5<<10))} {
		assert.Nil(t, v1.ReadClonedFrom(forged), forged)
	}
}

func TestADiffHasTheChangedLinesOfBothJobFiles(t *testing.T) {
	before := &Job{User: "bob", Name: "train", Config: "name: train\na: 1\nb: 2\nc: 3\nd: 4\ne: 5\nlr: 0.1\n"}
	after := &Job{User: "ann", Name: "train-2", Config: "name: train-2\na: 1\nb: 2\nc: 3\nd: 4\ne: 5\nlr: 0.01"}
	text, err := Diff(before, after)
	require.NoError(t, err)
	assert.Equal(t, "--- bob/train\n+++ ann/train-2\n@@ -1,7 +1,7 @@\n-name: train\n+name: train-2\n a: 1\n b: 2\n c: 3\n d: 4\n e: 5\n-lr: 0.1\n+lr: 0.01\n", text)
	text, err = Diff(before, before)
	require.NoError(t, err)
	assert.Empty(t, text)
	_, err = Diff(&Job{User: "bob", Name: "other"}, after)
	assert.ErrorContains(t, err, "bob/other has no job file")
}
