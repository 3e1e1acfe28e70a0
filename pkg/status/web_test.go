package status

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube"
)

// The API server's proxy removes passwords, so requests to programs that need a password are sent to their pods.
func TestWhatWantsAPasswordIsReachedByItsPod(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	core := w.Client.CoreV1()
	_, err := core.Secrets(kube.SystemNamespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: access.Secret}, StringData: map[string]string{access.KeyPassword: "hunter2"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = core.Secrets(kube.SystemNamespace).Delete(context.WithoutCancel(t.Context()), access.Secret, metav1.DeleteOptions{})
	})
	labels := map[string]string{"app": "test-prometheus"}
	_, err = core.Services(kube.SystemNamespace).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: servicePrometheus}, Spec: corev1.ServiceSpec{Selector: labels,
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = core.Services(kube.SystemNamespace).Delete(context.WithoutCancel(t.Context()), servicePrometheus, metav1.DeleteOptions{})
	})

	var asked atomic.Int32
	kubelet := &jobtest.Kubelet{Port: func(number string, conn io.ReadWriter) error {
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return nil //nolint:nilerr // the client has gone
			}
			asked.Add(1)
			_, password, _ := r.BasicAuth()
			text, _ := json.Marshal(map[string]string{"port": number, "path": r.URL.Path, "password": password, "query": r.URL.Query().Get("query")})
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(text))+"\r\n\r\n"+string(text))
		}
	}}
	h, err := jobtest.Handler(w.Config, nil)
	require.NoError(t, err)
	d := newDoor(t, kubelet.Before(h))
	client := web.New(through(t, d.address, ""))
	_, err = client.Get(t.Context(), servicePrometheus, "/api/v1/query", nil)
	require.ErrorContains(t, err, "none of the pods of prometheus is ready")

	_, err = core.ServiceAccounts(kube.SystemNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil {
		require.ErrorContains(t, err, "already exists")
	}
	p, err := core.Pods(kube.SystemNamespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "prometheus-0", Labels: labels}, Spec: corev1.PodSpec{NodeName: "n", AutomountServiceAccountToken: new(false),
		Containers: []corev1.Container{{Name: "p", Image: "i", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 9090}}}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { w.remove(p) })
	p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err = core.Pods(kube.SystemNamespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	require.NoError(t, err)
	for range 2 {
		body, err := client.Get(t.Context(), servicePrometheus, "/api/v1/query", map[string][]string{"query": {"up"}})
		require.NoError(t, err)
		text, err := io.ReadAll(body)
		require.NoError(t, err)
		require.NoError(t, body.Close())
		assert.JSONEq(t, `{"port":"9090","path":"/api/v1/query","password":"hunter2","query":"up"}`, string(text))
	}
	assert.Equal(t, int32(2), asked.Load())
	_, err = client.Get(t.Context(), serviceAlerts, "/", nil)
	var none *web.NoneError
	require.ErrorAs(t, err, &none)
}
