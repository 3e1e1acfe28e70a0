package node

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/node/agent/repair"
	"github.com/openpai/paictl/pkg/scheduler/api"
)

func nodeWith(name, gpus string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if gpus != "" {
		n.Annotations = map[string]string{api.DevicesAnnotation: gpus}
	}
	return n
}

// serve starts an API server that returns the given nodes, and sets KUBECONFIG to use this server.
func serve(t *testing.T, nodes ...corev1.Node) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/nodes" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404}`)
			return
		}
		_ = json.NewEncoder(w).Encode(corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: nodes})
	}))
	t.Cleanup(api.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: test, contexts: [{name: test, context: {cluster: test, user: test}}], users: [{name: test, user: {}}], clusters: [{name: test, cluster: {server: "`+api.URL+`"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", file)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
}

// list runs "paictl node gpu list" with the given arguments.
func list(t *testing.T, args ...string) (out string, err error) {
	f := cmdutil.New("v1")
	var stdout bytes.Buffer
	f.IO.Out = &stdout
	cmd := NewCmdGPUList(f)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), err
}

func TestGPUsOfAllNodesAreListed(t *testing.T) {
	serve(t, nodeWith("a", `{"devices":[{"index":0,"healthy":true,"model":"A100"},{"index":1,"healthy":false,"model":"A100","reason":"XID 79"}]}`),
		nodeWith("b", ""), nodeWith("c", `{"devices":[{"index":0,"healthy":true,"ignored":"XID 74"}]}`))
	out, err := list(t)
	require.NoError(t, err)
	assert.Equal(t, "NODE   GPU   MODEL   STATE     REASON\na      0     A100    healthy\na      1     A100    sick      XID 79\nc      0             ignored   XID 74\n", out)
	out, err = list(t, "a", "--sick", "-o", "json")
	require.NoError(t, err)
	assert.JSONEq(t, `[{"node":"a","gpu":1,"model":"A100","state":"sick","reason":"XID 79"}]`, out)
	out, err = list(t, "b", "-o", "json")
	require.NoError(t, err)
	assert.JSONEq(t, `[]`, out)
	_, err = list(t, "d")
	require.ErrorContains(t, err, "no node d")

	serve(t, nodeWith("a", "{"))
	_, err = list(t)
	require.ErrorContains(t, err, "node a: the annotation paictl.openpai.org/gpus: ")
}

func TestInstancesAreShownWithTheirGPU(t *testing.T) {
	split, err := api.ReadDevices(nodeWith("a", `{"parts":2,"mig":"3g.40gb","devices":[{"index":0,"healthy":true,"model":"A100","instance":"MIG-0"},{"index":1,"healthy":true,"model":"A100","instance":"MIG-1"},
			{"index":2,"healthy":false,"model":"A100","reason":"it waits"},{"index":3,"healthy":false,"model":"A100","reason":"it waits"}]}`).Annotations)
	require.NoError(t, err)
	whole, err := api.ReadDevices(nodeWith("b", `{"devices":[{"index":0,"healthy":true,"model":"A100"}]}`).Annotations)
	require.NoError(t, err)
	rows := append(split.GPUs("a"), whole.GPUs("b")...)
	require.Len(t, rows, 3)
	assert.Equal(t, []string{"MIG-0", "MIG-1"}, rows[0].Instances)
	table := gpuTable(rows)
	assert.Equal(t, []string{"NODE", "GPU", "MODEL", "INSTANCES", "STATE", "REASON"}, table.Header)
	assert.Equal(t, [][]string{{"a", "0", "A100", "2 x 3g.40gb", "healthy", ""}, {"a", "1", "A100", "0 x 3g.40gb", "sick", "it waits"}, {"b", "0", "A100", "", "healthy", ""}}, table.Rows)
}

func TestAnAnswerIsAwaited(t *testing.T) {
	n := nodeWith("a", "{}")
	client := fake.NewClientset(&n)
	opts := &GPURepairOptions{Node: "a", Timeout: time.Hour}
	o := repair.Request{ID: "1", GPU: 3, Action: repair.Reset, At: time.Now()}
	require.NoError(t, repair.Add(t.Context(), client, "a", o))
	read := func() *corev1.Node {
		n, err := client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		return n
	}
	require.NoError(t, repair.WriteAnswers(t.Context(), client, read(), []repair.Answer{{ID: "0"}, {ID: "1", Done: true, Message: "it was reset"}}))
	a, err := awaitAnswer(t.Context(), client, opts, o)
	require.NoError(t, err)
	assert.Equal(t, "it was reset", a.Message)

	other := o
	other.ID = "2"
	require.NoError(t, repair.Add(t.Context(), client, "a", other))
	require.NoError(t, repair.WriteAnswers(t.Context(), client, read(), nil))
	_, err = awaitAnswer(t.Context(), client, opts, o)
	require.ErrorContains(t, err, "another order for the GPU has replaced")
	opts.Timeout = time.Millisecond
	_, err = awaitAnswer(t.Context(), client, opts, other)
	require.ErrorContains(t, err, "the agent of a hasn't answered for 1ms")
}
