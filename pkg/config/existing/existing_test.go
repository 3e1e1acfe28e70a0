package existing

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

func configMap(namespace, name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: text}}
}

func kubeletNode(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo.KubeletVersion = "v1.30.1"
	return n
}

func TestWhatTheAPITellsIsTakenOver(t *testing.T) {
	const kubeadm = "clusterName: lab\nnetworking:\n  dnsDomain: lab.local\n  podSubnet: 10.244.0.0/16\n  serviceSubnet: 10.96.0.0/12\n"
	const corefile = ".:53 {\n    errors\n    kubernetes corp.example.org in-addr.arpa ip6.arpa {\n       pods insecure\n    }\n}\n"
	services := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"172.20.0.0/16"}}}
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    config.Existing
	}{
		"nothing but nodes":   {nil, config.Existing{Name: "entry"}},
		"kubeadm's own words": {[]runtime.Object{configMap("kube-system", "kubeadm-config", "ClusterConfiguration", kubeadm), services}, config.Existing{Name: "lab", ServiceRange: "10.96.0.0/12", PodCIDR: "10.244.0.0/16", DNSDomain: "lab.local"}},
		"kubeadm's words are none": {[]runtime.Object{configMap("kube-system", "kubeadm-config", "ClusterConfiguration", "\t{"), services},
			config.Existing{Name: "entry", ServiceRange: "172.20.0.0/16"}},
		"CoreDNS names the domain":         {[]runtime.Object{configMap("kube-system", "coredns", "Corefile", corefile)}, config.Existing{Name: "entry", DNSDomain: "corp.example.org"}},
		"CoreDNS without Kubernetes":       {[]runtime.Object{configMap("kube-system", "coredns", "Corefile", ".:53 {\n}\n")}, config.Existing{Name: "entry"}},
		"a configuration is already there": {[]runtime.Object{configMap("pai-system", "pai-configuration", "x", "")}, config.Existing{Name: "entry", Configured: true}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(append(c.objects, kubeletNode("a"))...)
			raw := api.NewConfig()
			raw.Contexts["ctx"] = &api.Context{Cluster: "entry"}
			got, err := Read(t.Context(), &kube.Cluster{Client: client, Context: "ctx", Server: "https://10.0.0.1:6443", Raw: *raw})
			require.NoError(t, err)
			assert.Len(t, got.Nodes, 1)
			assert.NotEmpty(t, got.Version)
			assert.Equal(t, "https://10.0.0.1:6443", got.Server)
			got.Nodes, got.Version, got.Server = nil, "", ""
			assert.Equal(t, c.want, got)
		})
	}
}

// serve starts an API server that responds only to the paths in answers. It rejects all other requests as forbidden.
func serve(t *testing.T, answers map[string]string) *kube.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path+"?"+r.URL.Query().Get("continue")]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"nodes is forbidden","code":403}`
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	raw := api.NewConfig()
	raw.Clusters["lab"] = &api.Cluster{Server: server.URL}
	raw.Contexts["lab"] = &api.Context{Cluster: "lab"}
	raw.CurrentContext = "lab"
	file := t.TempDir() + "/kubeconfig"
	require.NoError(t, clientcmd.WriteToFile(*raw, file))
	c, err := kube.Open(kube.Options{Kubeconfig: file})
	require.NoError(t, err)
	return c
}

func page(next string, names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"status":{"nodeInfo":{"kubeletVersion":"v1.30.1"}}}`, name))
	}
	return fmt.Sprintf(`{"kind":"NodeList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

func TestReadingNodesIsEnough(t *testing.T) {
	c := serve(t, map[string]string{"/api/v1/nodes?": page("more", "a", "b"), "/api/v1/nodes?more": page("", "c")})
	got, err := Read(t.Context(), c)
	require.NoError(t, err)
	assert.Len(t, got.Nodes, 3, "pages are put together")
	assert.Equal(t, "v1.30.1", got.Version, "the kubelets tell, where the server does not")
	assert.False(t, got.Configured)
}

func TestWithoutNodesTheErrorSaysWhatToDo(t *testing.T) {
	_, err := Read(t.Context(), serve(t, nil))
	require.ErrorContains(t, err, "list the nodes: ")
	assert.Contains(t, hint.Of(err), "administrator")
}

func TestARealAPIIsRead(t *testing.T) {
	c := kubetest.Start(t)
	n := kubeletNode("existing-1")
	n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	n.Status = corev1.NodeStatus{
		Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi")},
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
		NodeInfo:  corev1.NodeSystemInfo{OSImage: "Debian GNU/Linux 12 (bookworm)", Architecture: "amd64"},
	}
	made, err := c.Client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
	require.NoError(t, err)
	made.Status = n.Status
	_, err = c.Client.CoreV1().Nodes().UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	e, err := Read(t.Context(), c)
	require.NoError(t, err)
	g, err := config.GenerateExisting(e, config.Generation{OutDir: "c", DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, "machines: 1, masters: 1; hardware: 1 × cpu-8c-32g", g.Summary())
	assert.Regexp(t, `^v1\.\d+\.\d+`, g.Cluster.Kubernetes.Kubernetes.Version)
	assert.NotEmpty(t, g.Cluster.Kubernetes.Kubernetes.ServiceClusterIPRange, "the server tells its range of services")
}
