package release

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

func load(t testing.TB, files map[string]string) *chart.Chart {
	t.Helper()
	var buffered []*loader.BufferedFile
	if _, ok := files["Chart.yaml"]; !ok {
		buffered = append(buffered, &loader.BufferedFile{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: demo\nversion: 0.1.0\nappVersion: \"1\"\n")})
	}
	for name, text := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: []byte(text)})
	}
	c, err := loader.LoadFiles(buffered)
	require.NoError(t, err)
	return c
}

// demoFiles returns the files of a chart with an object of each relevant kind.
func demoFiles() map[string]string {
	return map[string]string{
		"values.yaml": "greeting: hello\nreplicas: 1\nextra: false\nmemory: 64Mi\n",
		"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: demo}
data: {greeting: {{ .Values.greeting | quote }}}
`,
		"templates/secret.yaml": `apiVersion: v1
kind: Secret
metadata: {name: demo-credentials}
stringData: {password: {{ .Values.password | default "none" | quote }}}
`,
		"templates/data.yaml": `apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: demo-data
  annotations: {helm.sh/resource-policy: keep}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`,
		"templates/service.yaml": `apiVersion: v1
kind: Service
metadata: {name: demo}
spec:
  selector: {app: demo}
  ports: [{port: 80}]
`,
		"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: demo, labels: {app: demo}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: demo}}
  template:
    metadata: {labels: {app: demo}}
    spec:
      containers:
        - name: demo
          image: example.org/demo:1
          resources: {limits: {memory: {{ .Values.memory }}, cpu: "1000m"}}
          {{- with .Values.env }}
          env: {{ toYaml . | nindent 12 }}
          {{- end }}
`,
		"templates/extra.yaml": `{{ if .Values.extra }}apiVersion: v1
kind: ConfigMap
metadata: {name: demo-extra}
data: {a: b}
{{ end }}`,
	}
}

type world struct {
	*testing.T
	cluster   *kube.Cluster
	client    kubernetes.Interface
	manager   Manager
	namespace string
}

// newWorld creates a separate namespace on a real API server.
func newWorld(t *testing.T) world {
	t.Helper()
	c := kubetest.Start(t)
	name := "r-" + strings.ToLower(strings.NewReplacer("_", "-", "/", "-").Replace(strings.TrimPrefix(t.Name(), "Test")))
	name = strings.Trim(name[:min(len(name), 50)], "-")
	_, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	return world{t, c, c.Client, manager(t, c), name}
}

func manager(t testing.TB, c *kube.Cluster) Manager {
	t.Helper()
	m, err := NewHelm(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return m
}

func (w world) demo(values map[string]any) Request {
	return Request{Name: "demo", Namespace: w.namespace, Chart: load(w.T, demoFiles()), Values: values}
}

func (w world) apply(r Request) Outcome {
	w.Helper()
	out, err := w.manager.Apply(w.Context(), r)
	require.NoError(w, err)
	return out
}

// end returns the objects of the namespace in a comparable form.
func (w world) end() map[string]any {
	w.Helper()
	out := map[string]any{}
	ctx := w.Context()
	maps, err := w.client.CoreV1().ConfigMaps(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w, err)
	for _, m := range maps.Items {
		out["configmap/"+m.Name] = m.Data
	}
	deployments, err := w.client.AppsV1().Deployments(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w, err)
	for _, d := range deployments.Items {
		out["deployment/"+d.Name] = d.Spec
	}
	services, err := w.client.CoreV1().Services(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w, err)
	for _, s := range services.Items {
		out["service/"+s.Name] = s.Spec.Ports
	}
	claims, err := w.client.CoreV1().PersistentVolumeClaims(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w, err)
	for _, c := range claims.Items {
		out["claim/"+c.Name] = c.Spec.Resources
	}
	secrets, err := w.client.CoreV1().Secrets(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w, err)
	for _, s := range secrets.Items {
		if s.Type != "helm.sh/release.v1" {
			out["secret/"+s.Name] = s.Data
		}
	}
	r, err := w.manager.Get(ctx, w.namespace, "demo")
	require.NoError(w, err)
	if r != nil {
		out["status"] = r.Status
	}
	return out
}

// breaking returns a connection whose requests fail after the k-th mutating request, like those of a killed program. breaking also returns a function
// that counts the mutating requests.
func breaking(c *kube.Cluster, k int32) (*kube.Cluster, func() int32) {
	var count atomic.Int32
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodGet && !strings.Contains(req.URL.RawQuery, "dryRun=All") {
				if count.Add(1) > k {
					return nil, context.Canceled
				}
			} else if count.Load() > k {
				return nil, context.Canceled
			}
			return next.RoundTrip(req)
		})
	})
	out := *c
	out.Config = config
	return &out, count.Load
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
