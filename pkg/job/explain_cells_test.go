package job

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

func TestTheSchedulerSaysWhichCellsMachinesHave(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		assert.Equal(t, schedulerapi.PathNodes, r.URL.Path)
		_, _ = w.Write([]byte(`{"items":[{"name":"g1","configured":[0,1]},{"name":"c1","configured":[]}]}`))
	}))
	defer server.Close()
	scheduler, err := vc.NewSchedulerAt(fake.NewClientset(), server.URL)
	require.NoError(t, err)
	c := &Client{Scheduler: scheduler}
	e := &evidence{Detail: liveDetail(Of(framework(withTasks(v1.AttemptPreparing))), nil, nil), gang: &schedulerapi.Why{Explanation: &cell.Explanation{}}}
	assert.Nil(t, c.readCells(t.Context(), e))
	assert.Zero(t, asked, "it matters only to a job that some machines can't run")
	dataOn("g1")(e)
	assert.Equal(t, map[string]kind{"g1": onGPUs, "c1": onCPUs}, c.readCells(t.Context(), e))
}

func TestASubmissionKnowsWhetherMachinesWithGPUsAreReserved(t *testing.T) {
	for text, want := range map[string]bool{cellsOfBothKinds: false, cellsOfBothKinds + "reserveGPUMachines: true\n": true} {
		client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kube.SystemNamespace, Name: schedulerconfig.ConfigMap}, Data: map[string]string{schedulerconfig.ConfigMapKey: text}})
		c := &Client{Cluster: &kube.Cluster{Client: client}}
		var out render.Cluster
		_, err := c.hardware(t.Context(), &out)
		require.NoError(t, err)
		assert.Equal(t, want, out.ReserveGPUMachines)
	}
}
