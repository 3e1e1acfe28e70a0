package job

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

func TestInTheClusterTheProgramsAreAskedDirectlyAndATokenThatChangedIsReadAgain(t *testing.T) {
	var token atomic.Value
	token.Store("first")
	guard := func(header string, refusal any, answer any) *httptest.Server {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Header.Get(header) != token.Load() {
				w.WriteHeader(http.StatusForbidden)
				_ = json.NewEncoder(w).Encode(refusal)
				return
			}
			_ = json.NewEncoder(w).Encode(answer)
		}))
		t.Cleanup(srv.Close)
		return srv
	}
	controller := guard(api.TokenHeader, api.Error{Code: "Forbidden", Message: "no"}, api.JobDetail{Job: api.Job{Name: "train"}})
	scheduler := guard(access.TokenHeader, "no", schedulerapi.VirtualClusters{Items: []schedulerapi.VirtualCluster{{Name: "vision"}}})
	secret := func(value string) *corev1.Secret { // which both have
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: api.TokenSecret, Namespace: kube.SystemNamespace}, Data: map[string][]byte{api.TokenKey: []byte(value)}}
	}
	client := fake.NewClientset(secret("first"))
	c, err := NewAt(&kube.Cluster{Client: client, Config: &rest.Config{Host: "http://nowhere.invalid"}}, Options{HistoryURL: controller.URL, SchedulerURL: scheduler.URL})
	require.NoError(t, err)
	ask := func() {
		t.Helper()
		j, err := c.History.Job(t.Context(), "f")
		require.NoError(t, err)
		assert.Equal(t, "train", j.Name)
	}
	all, err := c.Scheduler.VirtualClusters(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "vision", all.Items[0].Name)
	ask()
	token.Store("second")
	_, err = client.CoreV1().Secrets(kube.SystemNamespace).Update(t.Context(), secret("second"), metav1.UpdateOptions{})
	require.NoError(t, err)
	c.History.http.Transport.(*withToken).read = time.Now().Add(-2 * readAgain) // simulates that the last read was some time ago
	ask()

	controller.Close()
	_, err = c.History.Job(t.Context(), "f")
	require.ErrorIs(t, err, ErrNoController)
	require.ErrorIs(t, err, ErrAway)
	assert.True(t, IsUnavailable(err))
}
