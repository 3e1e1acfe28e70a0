package job

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
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

func TestASubmissionWritesTheRecordOfItsParent(t *testing.T) {
	made := &v1.Framework{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			assert.NoError(t, json.NewDecoder(r.Body).Decode(made))
			_ = json.NewEncoder(w).Encode(made)
		case r.URL.Path == "/v1/jobs/f":
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(api.Error{Code: "NotFound", Message: "no job"})
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404})
		}
	}))
	t.Cleanup(srv.Close)
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: api.TokenSecret, Namespace: kube.SystemNamespace}, Data: map[string][]byte{api.TokenKey: []byte("x")}}
	c, err := NewAt(&kube.Cluster{Client: fake.NewClientset(token), Config: &rest.Config{Host: srv.URL}}, Options{HistoryURL: srv.URL})
	require.NoError(t, err)
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "f", Labels: map[string]string{v1.LabelUser: "ann"}, Annotations: map[string]string{v1.AnnotationJobName: "train-2"}}}
	from := &v1.ClonedFrom{User: "bob", Name: "train", UID: "u1"}
	_, err = c.Submit(t.Context(), &render.Objects{Framework: f}, SubmitOptions{DryRun: true, ClonedFrom: from})
	require.NoError(t, err)
	assert.Equal(t, from, Of(made).ClonedFrom())
}
