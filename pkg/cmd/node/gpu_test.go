package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/agent/order"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

func nodeWith(name, gpus string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if gpus != "" {
		n.Annotations = map[string]string{api.DevicesAnnotation: gpus}
	}
	return n
}

func TestRowsOfGPUs(t *testing.T) {
	nodes := []corev1.Node{
		nodeWith("a", `{"devices":[{"index":0,"healthy":true,"model":"A100"},{"index":1,"healthy":false,"model":"A100","reason":"XID 79"}]}`),
		nodeWith("b", ""), nodeWith("c", `{"devices":[{"index":0,"healthy":true,"ignored":"XID 74"}]}`),
	}
	all, err := gpuRows(nodes, nil, false)
	require.NoError(t, err)
	assert.Equal(t, []gpuRow{{Node: "a", Model: "A100", State: "healthy"}, {Node: "a", GPU: 1, Model: "A100", State: "sick", Reason: "XID 79"}, {Node: "c", State: "ignored", Reason: "XID 74"}}, all)
	assert.Equal(t, []string{"NODE", "GPU", "MODEL", "STATE", "REASON"}, gpuTable(all).Header)
	sick, err := gpuRows(nodes, []string{"a"}, true)
	require.NoError(t, err)
	assert.Equal(t, all[1:2], sick)
	_, err = gpuRows([]corev1.Node{nodeWith("a", "{")}, nil, false)
	require.ErrorContains(t, err, "annotation paictl.openpai.org/gpus of node a")
}

func TestInstancesAreShownWithTheirGPU(t *testing.T) {
	rows, err := gpuRows([]corev1.Node{
		nodeWith("a", `{"parts":2,"mig":"3g.40gb","devices":[{"index":0,"healthy":true,"model":"A100","instance":"MIG-0"},{"index":1,"healthy":true,"model":"A100","instance":"MIG-1"},
			{"index":2,"healthy":false,"model":"A100","reason":"it waits"},{"index":3,"healthy":false,"model":"A100","reason":"it waits"}]}`),
		nodeWith("b", `{"devices":[{"index":0,"healthy":true,"model":"A100"}]}`),
	}, nil, false)
	require.NoError(t, err)
	require.Len(t, rows, 3)
	assert.Equal(t, []string{"MIG-0", "MIG-1"}, rows[0].Instances)
	table := gpuTable(rows)
	assert.Equal(t, []string{"NODE", "GPU", "MODEL", "INSTANCES", "STATE", "REASON"}, table.Header)
	assert.Equal(t, [][]string{{"a", "0", "A100", "2 x 3g.40gb", "healthy", ""}, {"a", "1", "A100", "0 x 3g.40gb", "sick", "it waits"}, {"b", "0", "A100", "", "healthy", ""}}, table.Rows)
}

func TestAnAnswerIsAwaited(t *testing.T) {
	n := nodeWith("a", "{}")
	client := fake.NewClientset(&n)
	opts := &GPUOrderOptions{Node: "a", Timeout: time.Hour}
	o := order.Order{ID: "1", GPU: 3, Action: order.Reset, At: time.Now()}
	require.NoError(t, order.Give(t.Context(), client, "a", o))
	read := func() *corev1.Node {
		n, err := client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		return n
	}
	require.NoError(t, order.Tell(t.Context(), client, read(), []order.Answer{{ID: "0"}, {ID: "1", Done: true, Message: "it was reset"}}))
	a, err := awaitAnswer(t.Context(), client, opts, o)
	require.NoError(t, err)
	assert.Equal(t, "it was reset", a.Message)

	other := o
	other.ID = "2"
	require.NoError(t, order.Give(t.Context(), client, "a", other))
	require.NoError(t, order.Tell(t.Context(), client, read(), nil))
	_, err = awaitAnswer(t.Context(), client, opts, o)
	require.ErrorContains(t, err, "another order for the GPU has replaced")
	opts.Timeout = time.Millisecond
	_, err = awaitAnswer(t.Context(), client, opts, other)
	require.ErrorContains(t, err, "the agent of a hasn't answered for 1ms")
}
