package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/diagnose/support/redact"
	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/templates"
	"github.com/openpai/paictl/test/tier"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// Planted secrets, each in a different place.
const (
	sshPassword   = "Xq7-ssh+pass/word"
	folderToken   = "folder-token-9f3A"
	secretValue   = "Kv/secret+value=88"
	multiLine     = "first-line-of-secret-A1\nsecond-line-of-secret-B2"
	podVariable   = "pod-variable-C3c3"
	jobVariable   = "job-variable-D4d4"
	filledSecret  = "filled-in-E5e5"
	dockerSecret  = "docker-pass-F6f6"
	commentSecret = "old-password-G7g7"
)

func planted() []string {
	return append([]string{sshPassword, folderToken, secretValue, podVariable, jobVariable, filledSecret, dockerSecret, commentSecret}, strings.Split(multiLine, "\n")...)
}

func disguises(s string) []string {
	j, _ := json.Marshal(s)
	return []string{s, string(j), url.QueryEscape(s), base64.StdEncoding.EncodeToString([]byte(s)), base64.StdEncoding.EncodeToString([]byte("user:" + s)),
		base64.URLEncoding.EncodeToString([]byte("x" + s + "yz"))}
}

// everywhere returns text with all planted secrets in all disguises, and with some secrets of other programs.
func everywhere() string {
	var b strings.Builder
	for _, s := range planted() {
		for _, d := range disguises(s) {
			fmt.Fprintf(&b, "2026-01-01 trouble with %s here\n", d)
		}
	}
	b.WriteString("GET https://ann:url-secret-H8@example.com/ Authorization: Bearer bearer-secret-I9\n")
	b.WriteString("-----BEGIN RSA PRIVATE KEY-----\nTUlJcHJpdmF0ZS1rZXktSjEw\n-----END RSA PRIVATE KEY-----\n")
	return b.String()
}

func folder(t *testing.T, ports ...string) (string, *config.Cluster) {
	t.Helper()
	dir := t.TempDir()
	quick := "ssh-username: root\nssh-password: '" + sshPassword + "'\ndns: 10.9.0.53\nmachines:\n" +
		"  - {hostip: 10.9.0.1, hostname: m1, roles: [master]}\n  - {hostip: 10.9.0.2, hostname: w1, roles: [worker]}\n  - {hostip: 10.9.0.3, hostname: w2, roles: [worker]}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "quick-start.yaml"), []byte(quick), 0o600))
	out := filepath.Join(dir, "conf")
	_, err := config.Generate(t.Context(), config.Generation{QuickStart: filepath.Join(dir, "quick-start.yaml"), OutDir: out, Offline: true})
	require.NoError(t, err)
	f, err := os.OpenFile(filepath.Join(out, config.ServicesFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("\n# grafana: {admin-password: " + commentSecret + "}\nmy-addon:\n  api-token: " + folderToken + "\n  chart: {repository: 'https://charts.example.com', name: addon, version: 1.0.0}\n")
	require.NoError(t, errors.Join(err, f.Close()))
	c, err := config.Load(out)
	require.NoError(t, err)
	return out, c
}

func machine(t *testing.T, name string, programs map[string]string) *sshtest.Server {
	t.Helper()
	root := filepath.Join(t.TempDir(), name)
	bin := filepath.Join(root, "bin")
	for _, d := range []string{bin, root + "/etc/kubernetes/pki", root + "/var/lib/paictl", root + "/proc/sys"} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	write := func(path, text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(root+path, []byte(text), mode))
	}
	for path, text := range map[string]string{
		"/etc/os-release": "ID=debian\nVERSION_ID=\"12\"\n", "/etc/resolv.conf": "nameserver 10.9.0.53\n", "/proc/mounts": "/dev/vda1 / ext4 rw 0 0\n",
		"/proc/meminfo": "MemTotal: 16000000 kB\n", "/proc/uptime": "1000.00 900.00\n", "/proc/loadavg": "0.1 0.2 0.3 1/2 3\n", "/proc/swaps": "Filename\n",
		"/proc/cmdline": "root=/dev/vda1 token=" + folderToken + "\n", "/proc/modules": "overlay 1 0 - Live 0x0\n",
		"/var/lib/paictl/journal":      "2026-01-01T00:00:00Z\trun\tbase\tchange /etc/hosts\n" + everywhere(),
		"/etc/kubernetes/admin.conf":   "client-key-data: " + base64.StdEncoding.EncodeToString([]byte("a key that stays K11")) + "\n",
		"/etc/kubernetes/pki/ca.crt":   "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"/etc/kubernetes/pki/ca.key":   "-----BEGIN RSA PRIVATE KEY-----\nbm8ga2V5IGxlYXZlcyBMMTI=\n-----END RSA PRIVATE KEY-----\n",
		"/etc/kubernetes/kubelet.conf": "x",
	} {
		write(path, text, 0o600)
	}
	// Programs that the test doesn't provide behave as if they weren't installed.
	for _, p := range strings.Fields("lsblk df timedatectl chronyc sysctl ip ss dmesg nvidia-smi kubelet containerd kubectl openssl lscpu") {
		write("/bin/"+p, "#!/bin/sh\necho \"sh: 1: "+p+": not found\" >&2\nexit 127\n", 0o755)
	}
	write("/bin/systemctl", "#!/bin/sh\ncase $1 in cat) echo '# unit' ;; is-active) echo active ;; status) echo \"$*: active (running)\" ;; esac\n", 0o755)
	write("/bin/journalctl", "#!/bin/sh\ncat \"$PAICTL_ROOT/journal-text\"\n", 0o755)
	write("/journal-text", "2026-01-01T00:00:00+0000 "+name+" kubelet[1]: begin\n"+everywhere(), 0o600)
	for p, text := range programs {
		write("/bin/"+p, "#!/bin/sh\n"+text, 0o755)
	}
	return sshtest.NewServer(t, sshtest.Config{Name: name, Handler: sshtest.Shell{Root: root, Path: []string{bin}}})
}

type silent struct{}

func (silent) Emit(engine.Event) {}

// reach creates a specification of the three machines of folder, and the options for connecting to these machines.
func reach(t *testing.T, o *Options, c *config.Cluster, servers map[string]*sshtest.Server) *ssh.Counter {
	t.Helper()
	spec, err := engine.NewSpec(c, nil)
	require.NoError(t, err)
	var list []*sshtest.Server
	for _, n := range spec.Nodes {
		n.Target = servers[n.Hostname].Target()
		list = append(list, servers[n.Hostname])
	}
	so := sshtest.Options(t, list...)
	counter := &ssh.Counter{}
	so.Gate, so.Tracer = ssh.DryRunGate{}, counter
	client := sshtest.NewClient(t, so)
	o.Spec, o.Run = spec, engine.Options{Dialer: client, Sink: silent{}, Clock: time.Now, Command: "paictl support-bundle"}
	return counter
}

func options() Options {
	return Options{Name: "bundle", Version: "paictl v0", Command: "paictl support-bundle --job x", Clock: time.Now, SpoolDir: os.TempDir(), Since: time.Hour}
}

func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, h.Mode)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		name, ok := strings.CutPrefix(h.Name, "bundle/")
		require.True(t, ok, h.Name)
		require.NotContains(t, files, name)
		files[name] = string(text)
	}
}

func requireClean(t *testing.T, files map[string]string, secrets ...string) {
	t.Helper()
	for name, text := range files {
		for _, s := range secrets {
			for _, d := range disguises(s) {
				if i := strings.Index(text, strings.Trim(d, `"=`)); i >= 0 {
					t.Fatalf("%s is in %s: …%s", d, name, text[max(i-80, 0):min(i+80, len(text))])
				}
			}
		}
		for _, s := range []string{"url-secret-H8", "bearer-secret-I9", "TUlJcHJpdmF0ZS1rZXktSjEw", "YSBrZXkgdGhhdCBzdGF5cyBLMTE", "bm8ga2V5IGxlYXZlcyBMMTI"} {
			require.NotContains(t, text, s, "in %s", name)
		}
	}
}

func plant(t *testing.T, c *kube.Cluster) {
	t.Helper()
	core := c.Client.CoreV1()
	for _, ns := range []string{kube.SystemNamespace, kube.JobNamespace} {
		_, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = core.ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	framework := v1.ObjectName("ann", "train")
	docker := fmt.Sprintf(`{"auths":{"registry.example.com":{"username":"ann","password":%q,"auth":%q}}}`, dockerSecret, base64.StdEncoding.EncodeToString([]byte("ann:"+dockerSecret)))
	spec := `{"version":1,"job":"train","roles":[{"name":"worker","command":"python train.py --key ` + filledSecret + ` --epochs 10"}]}`
	for _, s := range []corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "opener", Namespace: kube.SystemNamespace}, Data: map[string][]byte{"password": []byte(secretValue), "file": []byte(multiLine)}},
		{ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: kube.JobNamespace}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(docker)}},
		{ObjectMeta: metav1.ObjectMeta{Name: v1.SpecSecretName(framework), Namespace: kube.JobNamespace, Labels: map[string]string{v1.LabelFramework: framework}}, Data: map[string][]byte{v1.SpecKey: []byte(spec)}},
		{ObjectMeta: metav1.ObjectMeta{Name: "variable", Namespace: kube.SystemNamespace}, StringData: map[string]string{"token": podVariable, "secret": jobVariable}},
		{ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.grafana.v2", Namespace: kube.SystemNamespace, Labels: map[string]string{"owner": "helm", "name": "grafana", "version": "2", "status": "deployed"}}, Type: "helm.sh/release.v1", Data: map[string][]byte{"release": []byte("x")}},
	} {
		_, err := core.Secrets(s.Namespace).Create(t.Context(), &s, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for ns, name := range map[string]string{kube.SystemNamespace: "grafana-0", kube.JobNamespace: framework + "-worker-0"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Annotations: map[string]string{"note": everywhere(), annotationApplied: everywhere()}},
			Spec: corev1.PodSpec{NodeName: "w1", Containers: []corev1.Container{{Name: "main", Image: "x",
				Env: []corev1.EnvVar{{Name: "API_TOKEN", Value: podVariable}, {Name: "PLAIN", Value: "visible-value"}, {Name: "TEXT", Value: everywhere()}}}}}}
		if ns == kube.JobNamespace {
			pod.Labels = map[string]string{v1.LabelFramework: framework}
			pod.Spec.Containers[0].Env[1].Value = "private-value-M13"
		}
		made, err := core.Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		made.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		_, err = core.Pods(ns).UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err)
		_, err = core.Events(ns).Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: ns}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: name},
			Reason: "Failed", Message: everywhere()[:900]}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// plantJob creates a job. Its command contains a secret that was filled in, and its environment contains another secret.
func plantJob(t *testing.T, c *kube.Cluster) {
	t.Helper()
	s := k8sruntime.NewScheme()
	require.NoError(t, v1.AddToScheme(s))
	api, err := client.New(c.Config, client.Options{Scheme: s})
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(templates.JobDefinition, &crd.Object))
	require.NoError(t, api.Create(t.Context(), crd))
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "busybox", Env: []corev1.EnvVar{{Name: "PLAIN", Value: "private-value-M13"}}}}}}
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: v1.ObjectName("ann", "train"), Namespace: kube.JobNamespace, Annotations: map[string]string{
		v1.AnnotationConfig: "name: train\ntaskRoles:\n  worker:\n    commands: [python train.py --key <% $secrets.key %> --epochs 10]\nsecrets: {key: '******'}\n"}},
		Spec: v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{{Name: "worker", TaskNumber: 1, Task: v1.Task{Pod: pod}}}}}
	require.Eventually(t, func() bool { return api.Create(t.Context(), f) == nil }, time.Minute, 50*time.Millisecond)
}

// kubelet makes the API server request the logs of machine w1 from a handler.
func kubelet(t *testing.T, c *kube.Cluster, serve http.HandlerFunc) {
	t.Helper()
	server := httptest.NewTLSServer(serve)
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	node, err := c.Client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	_, err = c.Client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestNoPlantedSecretLeavesTheCluster(t *testing.T) {
	c := kubetest.Start(t)
	plant(t, c)
	plantJob(t, c)
	var mu sync.Mutex
	var asked []string
	kubelet(t, c, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.String())
		mu.Unlock()
		_, _ = io.WriteString(w, "2026-01-01T00:00:00Z the log of "+r.URL.Path+"\n"+everywhere())
	})
	dir, conf := folder(t)
	held := store.New(c.Client)
	held.SecretPaths = catalogue.SecretPaths
	files := map[string][]byte{}
	for _, name := range config.Files() {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		files[name] = text
	}
	d, err := held.Draft(t.Context(), store.Candidate{Dir: dir, Files: files})
	require.NoError(t, err)
	_, err = held.Push(t.Context(), d, store.Entry{By: "ann@desk", Message: "first, with " + folderToken})
	require.NoError(t, err)

	o := options()
	o.Folder, o.Config, o.Cluster = dir, conf, c
	o.Command += " " + sshPassword
	trips := reach(t, &o, conf, map[string]*sshtest.Server{
		"m1": machine(t, "m1", map[string]string{"dmesg": "echo 'kernel says " + podVariable + "'\n"}), "w1": machine(t, "w1", nil), "w2": machine(t, "w2", nil)})
	var out bytes.Buffer
	ix, err := Write(t.Context(), &out, o)
	require.NoError(t, err)
	for _, m := range []string{"m1", "w1", "w2"} {
		assert.Equal(t, 1, trips.Host(m).RoundTrips, m)
	}
	got := unpack(t, out.Bytes())
	requireClean(t, got, planted()...)
	for name, want := range map[string]string{
		"configuration/folder/layout.yaml":                 `password: "********"`,
		"configuration/folder/services-configuration.yaml": `api-token: "********"`,
		"configuration/cluster/layout.yaml":                `password: "********"`,
		"configuration/history.txt":                        "ann@desk",
		"configuration/effective.yaml":                     "# layout.yaml:",
		"machines/m1/kubelet-journal.txt":                  "kubelet[1]: begin",
		"machines/m1/kernel-log.txt":                       "kernel says [redacted:kubernetes-secret]",
		"machines/w1/paictl-journal.txt":                   "change /etc/hosts",
		"machines/w1/etc-kubernetes.txt":                   "ca.key",
		"machines/w2/os.txt":                               "VERSION_ID",
		"machines/status.json":                             `"host": "w2"`,
		"kubernetes/pai-system/pods.txt":                   "grafana-0",
		"kubernetes/pai-system/pods.json":                  "visible-value",
		"kubernetes/pai-system/secrets.txt":                "file,password",
		"kubernetes/pai-jobs/pods.json":                    "[redacted:environment]",
		"kubernetes/pai-jobs/frameworks.json":              "train.py --key",
		"kubernetes/pai-jobs/events.txt":                   "Failed",
		"kubernetes/cluster/nodes.txt":                     "w1",
		"services/helm-revisions-pai-system.txt":           "grafana   2",
		"logs/pai-system/grafana-0/main.log":               "the log of",
		"logs/pai-system/grafana-0/main.previous.log":      "the log of",
		"index.html": `<a href="machines/m1/kubelet-journal.txt">kubelet-journal.txt</a>`,
		"index.json": `"redacted"`,
	} {
		assert.Contains(t, got[name], want, name)
	}
	all := strings.Join(asked, "\n")
	assert.Contains(t, all, "sinceSeconds=3600")
	assert.NotContains(t, all, kube.JobNamespace, "whose logs are their users'")
	assert.NotContains(t, got["kubernetes/pai-jobs/pods.json"], "private-value-M13")
	assert.NotContains(t, got["kubernetes/pai-jobs/frameworks.json"], "private-value-M13")
	assert.Equal(t, "paictl support-bundle --job x [redacted:configuration]", ix.Command)
	for name, text := range got {
		if strings.HasSuffix(name, ".json") {
			assert.True(t, json.Valid([]byte(text)), "%s is still JSON", name)
		}
	}

	if dir := os.Getenv("PAICTL_TEST_KEEP"); dir != "" { // for a look at it
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bundle.tar.gz"), out.Bytes(), 0o600))
	}

	// The environment and the logs of a named job are included, without secrets.
	o.Jobs, o.Without = []Job{{"ann", "train"}}, []string{PartMachines}
	out.Reset()
	ix, err = Write(t.Context(), &out, o)
	require.NoError(t, err)
	got = unpack(t, out.Bytes())
	requireClean(t, got, planted()...)
	assert.Contains(t, got["kubernetes/pai-jobs/pods.json"], "private-value-M13")
	assert.Contains(t, got["logs/pai-jobs/"+v1.ObjectName("ann", "train")+"-worker-0/main.log"], "the log of")
	assert.Contains(t, ix.Missing, Missing{"machines", "left out with --without"})
}

func TestWhatIsMissingIsNotedAndTheRestGoesOn(t *testing.T) {
	dir, conf := folder(t)
	o := options()
	o.Folder, o.Config, o.ClusterErr = dir, conf, hint.Errorf("get one", "there is no kubeconfig")
	o.Limits.Machine = 3 * time.Second
	hung, off := machine(t, "w1", map[string]string{"df": "exec /bin/sleep 60\n"}), machine(t, "w2", nil)
	off.SetFault(sshtest.Fault{RefuseAuth: true})
	reach(t, &o, conf, map[string]*sshtest.Server{"m1": machine(t, "m1", nil), "w1": hung, "w2": off})
	var out bytes.Buffer
	begun := time.Now()
	ix, err := Write(t.Context(), &out, o)
	require.NoError(t, err)
	assert.Less(t, time.Since(begun), 30*time.Second)
	got := unpack(t, out.Bytes())
	requireClean(t, got, sshPassword, folderToken, commentSecret) // secrets that only the cluster knows aren't known
	assert.Contains(t, got["machines/m1/kubelet-journal.txt"], "kubelet[1]: begin")
	assert.Contains(t, got["machines/w1/mounts.txt"], "/dev/vda1", "what the machine said before it hung")
	why := map[string]string{}
	for _, m := range ix.Missing {
		why[m.What] += m.Why
	}
	assert.Contains(t, why["machines/w1"], "timed out after 3s")
	assert.Contains(t, why["machines/w2"], "authentication refused")
	assert.Contains(t, why["kubernetes"], "there is no kubeconfig -> get one")
	assert.Contains(t, got["index.html"], "there is no kubeconfig -&gt; get one")

	out.Reset()
	o = options()
	o.FolderErr, o.MachinesErr, o.ClusterErr = errors.New("no folder"), errors.New("no machines"), errors.New("no cluster")
	_, err = Write(t.Context(), &out, o)
	require.NoError(t, err, "nothing at all is a bundle, too")
	assert.Contains(t, unpack(t, out.Bytes())["index.html"], "no folder")
}

func TestAnAPIThatIsDownIsAskedOnce(t *testing.T) {
	var listener net.ListenConfig
	l, err := listener.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close() // it accepts connections and doesn't respond
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
clusters: [{name: x, cluster: {server: "http://%s"}}], users: [{name: x, user: {token: %s}}]}`, l.Addr(), folderToken), 0o600))
	o := options()
	o.Cluster, err = kube.Open(kube.Options{Kubeconfig: file})
	require.NoError(t, err)
	o.FolderErr, o.MachinesErr = errors.New("no folder"), errors.New("no machines")
	o.Limits.Part = 3 * time.Second
	var out bytes.Buffer
	begun := time.Now()
	ix, err := Write(t.Context(), &out, o)
	require.NoError(t, err)
	assert.Less(t, time.Since(begun), 10*time.Second)
	why := map[string]string{}
	for _, m := range ix.Missing {
		why[m.What] = m.Why
	}
	assert.Contains(t, why["kubernetes"], "no answer within 1s")
	assert.Contains(t, why["logs"], "no answer within 1s")
}

func TestALongSectionOfAMachineLosesItsMiddle(t *testing.T) {
	mark := "@@M"
	whole := sections([]byte("\n@@M begin a.txt 6 6\none\ntwo\n@@M end 0\n\n@@M begin b.txt 10 10\none\ntwthree\n@@M \n"), mark)
	require.Len(t, whole, 2)
	assert.Equal(t, "0", whole[0].code)
	assert.Equal(t, "one\ntwo", string(whole[0].text))
	cut := sections([]byte("\n@@M begin a.txt 10 20\none\ntwo\nth"+"xx\nfour\n\n@@M end 0\n"), mark)
	require.Len(t, cut, 1)
	var b bytes.Buffer
	cut[0].cut = 10
	require.NoError(t, cut[0].write(&b))
	assert.Equal(t, "one\ntwo\n[cut: the middle is left out here]\nfour\n\n", b.String())
}

func TestALogKeepsItsBeginningAndItsEnd(t *testing.T) {
	for _, n := range []int{1, 7, 100, 5000} {
		var b bytes.Buffer
		ends := &bothEnds{w: &b, head: 100, tail: 200}
		var all strings.Builder
		for i := range 200 {
			fmt.Fprintf(&all, "line %03d\n", i)
		}
		for rest := all.String(); rest != ""; {
			m := min(n, len(rest))
			_, err := ends.Write([]byte(rest[:m]))
			require.NoError(t, err)
			rest = rest[m:]
		}
		require.NoError(t, ends.Close())
		assert.True(t, strings.HasPrefix(b.String(), "line 000\n"))
		assert.True(t, strings.HasSuffix(b.String(), "line 198\nline 199\n"))
		assert.Contains(t, b.String(), "bytes are left out here]\nline 1", n)
		assert.Less(t, b.Len(), 400)
		b.Reset()
		short := &bothEnds{w: &b, head: 100, tail: 200}
		_, err := short.Write([]byte(all.String()[:250]))
		require.NoError(t, errors.Join(err, short.Close()))
		assert.Equal(t, all.String()[:250], b.String())
	}
}

func archiveFor(t *testing.T, w io.Writer, max int64) (*archive, *error) {
	t.Helper()
	o := options()
	o.MaxSize, o.SpoolDir = max, t.TempDir()
	var broken error
	var none redact.Builder
	return newArchive(w, &o, none.Set(), func(err error) { broken = err }), &broken
}

func TestTheArchiveStaysBelowItsLimit(t *testing.T) {
	var out bytes.Buffer
	a, _ := archiveFor(t, &out, reserve+3<<20)
	noise := make([]byte, 1<<20)
	for i := range noise { // hardly to be compressed
		noise[i] = byte(i*i>>3) ^ byte(i>>9*7)
	}
	for i := range 10 {
		a.add(fmt.Sprintf("logs/%d.log", i), "noise", func(w io.Writer) error { _, err := w.Write(noise); return err })
	}
	ix, err := a.finish(Index{})
	require.NoError(t, err)
	assert.NotEmpty(t, ix.Files)
	assert.NotEmpty(t, ix.Missing)
	assert.Contains(t, ix.Missing[0].Why, "larger than --max-size")
	assert.LessOrEqual(t, out.Len(), reserve+3<<20)
	left, err := os.ReadDir(a.spool)
	require.NoError(t, err)
	assert.Empty(t, left, "temporary files have no names")
}

func TestAFullDiskIsSaidClearly(t *testing.T) {
	a, broken := archiveFor(t, fullDisk{}, 1<<30)
	a.add("x", "", func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
		return err
	})
	_, err := a.finish(Index{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorIs(t, *broken, syscall.ENOSPC)
	assert.Contains(t, hint.Of(err), "free space")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
}

func TestMemoryDoesNotGrowWithALog(t *testing.T) {
	tier.More(t, "it writes 280 MB")
	a, _ := archiveFor(t, io.Discard, 1<<40)
	line := []byte(strings.Repeat("a line of a log, as there are many of them\n", 100))
	peak := uint64(0)
	for i := range 4 {
		a.log(fmt.Sprintf("logs/%d.log", i), "", 1<<20, 1<<20, func(w io.Writer) error {
			for n := range 16000 { // 69 MB
				if _, err := w.Write(line); err != nil {
					return err
				}
				if n%4000 == 0 {
					var m runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapAlloc)
				}
			}
			return nil
		})
	}
	assert.Less(t, peak, uint64(64<<20))
	require.Len(t, a.index.Files, 4)
	assert.Greater(t, a.index.Files[0].Cut, int64(60<<20))
}

func TestACancelledBundleEndsAtOnce(t *testing.T) {
	dir, conf := folder(t)
	o := options()
	o.Folder, o.Config, o.ClusterErr = dir, conf, errors.New("none")
	hung := machine(t, "w1", map[string]string{"df": "exec /bin/sleep 60\n"})
	reach(t, &o, conf, map[string]*sshtest.Server{"m1": machine(t, "m1", nil), "w1": hung, "w2": machine(t, "w2", nil)})
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(part, _ string) {
		if part == "machines/m1" {
			cancel()
		}
	}
	begun := time.Now()
	_, err := Write(ctx, io.Discard, o)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Less(t, time.Since(begun), 20*time.Second)
}

func TestNamesInTheArchiveLeadNowhereElse(t *testing.T) {
	a, _ := archiveFor(t, io.Discard, 1<<30)
	for in, want := range map[string]string{"machines/../../etc/x": "machines/etc/x", "a//b\n.txt": "a/b-.txt", "a/é.log": "a/-.log"} {
		assert.Equal(t, want, a.unique(in))
	}
	assert.Equal(t, "a/b--2.txt", a.unique("a/b\n.txt"))
}
