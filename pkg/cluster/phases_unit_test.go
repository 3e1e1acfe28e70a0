package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/nodelabels"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
)

// testSpec is a cluster without machines behind it.
func testSpec(t testing.TB, masters, workers int) *Spec {
	t.Helper()
	quick := "ssh-username: root\ndns: 10.9.0.53\nmachines:\n"
	for i := range masters + workers {
		name, role := fmt.Sprintf("m%d", i+1), "master"
		if i >= masters {
			name, role = fmt.Sprintf("w%d", i-masters+1), "worker"
		}
		quick += fmt.Sprintf("  - {hostip: 10.9.%d.%d, hostname: %s, roles: [%s]}\n", i/250, i%250+1, name, role)
	}
	s, err := NewSpec(configure(t, t.TempDir(), quick), newBundle(t))
	require.NoError(t, err)
	return s
}

func TestLabelsAndTaintsOfANode(t *testing.T) {
	node := func(labels, owned string, taints ...string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{nodelabels.Annotation: owned}}}
		for _, kv := range strings.Fields(labels) {
			k, v, _ := strings.Cut(kv, "=")
			n.Labels[k] = v
		}
		for _, taint := range taints {
			rest, effect, _ := strings.Cut(taint, ":")
			k, v, _ := strings.Cut(rest, "=")
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffect(effect)})
		}
		return n
	}
	for _, c := range []struct {
		name   string
		labels map[string]string
		taints []string
		have   corev1.Node
		want   []string // commands; empty if the node is as wanted
	}{
		{"a new node gets everything", map[string]string{"a": "1", "b": ""}, []string{"k=v:NoSchedule"}, corev1.Node{},
			[]string{"label --overwrite 'a=1' 'b='", "taint --overwrite 'k=v:NoSchedule'", "annotate --overwrite 'paictl.openpai.org/owned=a,b,k=v:NoSchedule'"}},
		{"nothing is wanted of a new node", nil, nil, corev1.Node{}, nil},
		{"all is there", map[string]string{"a": "1"}, []string{"k:NoSchedule"}, node("a=1 other=x", "a,k:NoSchedule", "k:NoSchedule", "other:NoExecute"), nil},
		{"key=:Effect and key:Effect are one taint", nil, []string{"k=:NoSchedule"}, node("", "k=:NoSchedule", "k:NoSchedule"), nil},
		{"what paictl set once and nobody wants goes", nil, nil, node("a=1 other=x", "a,k=v:NoSchedule", "k=v:NoSchedule"),
			[]string{"label --overwrite 'a-'", "taint --overwrite 'k:NoSchedule-'", "annotate --overwrite 'paictl.openpai.org/owned='"}},
		{"somebody else's stays", nil, nil, node("other=x", "", "other:NoExecute"), nil},
		{"a taint that is gone already is not removed again", nil, nil, node("", "k:NoSchedule"),
			[]string{"annotate --overwrite 'paictl.openpai.org/owned='"}},
		{"a taint's new value replaces the old", nil, []string{"k=2:NoSchedule"}, node("", "k=1:NoSchedule", "k=1:NoSchedule"),
			[]string{"taint --overwrite 'k=2:NoSchedule'", "annotate --overwrite 'paictl.openpai.org/owned=k=2:NoSchedule'"}},
		{"a taint's new effect needs the old one gone", nil, []string{"k:NoExecute"}, node("", "k:NoSchedule", "k:NoSchedule"),
			[]string{"taint --overwrite 'k:NoExecute' 'k:NoSchedule-'", "annotate --overwrite 'paictl.openpai.org/owned=k:NoExecute'"}},
		{"only the record differs", map[string]string{"a": "1"}, nil, node("a=1", ""), []string{"annotate --overwrite 'paictl.openpai.org/owned=a'"}},
		{"somebody changed our label", map[string]string{"a": "1"}, nil, node("a=2", "a"),
			[]string{"label --overwrite 'a=1'", "annotate --overwrite 'paictl.openpai.org/owned=a'"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := (&labels{}).compare(&Node{Labels: c.labels, Taints: c.taints}, c.have)
			assert.Equal(t, len(c.want) == 0, x.untouched)
			if !x.untouched {
				assert.Equal(t, c.want, x.commands())
			}
		})
	}
}

func TestTheRecordOfLabelsIsWrittenLast(t *testing.T) {
	got := relabelScript(map[string][]string{"annotate --overwrite z": {"w1", "w2"}, "taint --overwrite y": {"w1"}, "label --overwrite x": {"w2"}})
	assert.Equal(t, "self label node 'w2' --overwrite x >&2\nself taint node 'w1' --overwrite y >&2\nself annotate node 'w1' 'w2' --overwrite z >&2\n", got)
}

func TestResourcesAreComparedWithWhatAHostAnswers(t *testing.T) {
	body, sha := []byte("a\nb\n"), strings.Repeat("0", 64)
	res := resources{
		modules:   []module{{name: "overlay"}},
		sysctls:   map[string]string{"net.ipv4.ip_forward": "1"},
		files:     []file{{path: "/etc/x", mode: 0o644, body: body}, {path: "/etc/s", mode: 0o600, body: body, secret: true}},
		blocks:    []block{{path: "/etc/hosts", body: body}},
		artifacts: []artifact{{path: "/bin/x", mode: 0o755, src: bundle.Artifact{Name: "x", Version: "v2", SHA256: sha}}},
		units:     []unit{{name: "x.service", reads: []string{"/bin/x"}}, {name: "y.service", reads: []string{"/etc/x"}, later: true}},
	}
	whole := "module\toverlay\tloaded\nsysctl\tnet.ipv4.ip_forward\t1\nfile\t/etc/x\t644\t" + hash(body) + "\nfile\t/etc/s\t600\t" + hash(body) + "\n" +
		"block\t/etc/hosts\t" + encoded(body) + "\nart\t/bin/x\t755\t" + sha + "\nunit\tx.service\tenabled\tactive\tfresh\nunit\ty.service\tenabled\tactive\tfresh\n"
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"all is as it shall be", "", "", nil},
		{"a module is not loaded", "overlay\tloaded", "overlay\tabsent", []string{"load module overlay"}},
		{"a setting differs", "ip_forward\t1", "ip_forward\t0", []string{"set sysctl net.ipv4.ip_forward 0 -> 1"}},
		{"a file is missing, and its unit runs", "file\t/etc/x\t644\t" + hash(body), "file\t/etc/x\tabsent", []string{"create /etc/x 644", "restart y.service its files change"}},
		{"a file has another mode", "/etc/s\t600", "/etc/s\t644", []string{"update /etc/s mode 644 -> 600"}},
		{"a block has other lines", encoded(body), encoded([]byte("a\n")), []string{"update /etc/hosts the block of paictl"}},
		{"a program is another one", "755\t" + sha, "755\t" + strings.Repeat("1", 64), []string{"update /bin/x x v2", "restart x.service its files change"}},
		{"a unit is disabled", "x.service\tenabled", "x.service\tdisabled", []string{"enable x.service"}},
		{"a unit is stopped", "x.service\tenabled\tactive", "x.service\tenabled\tfailed", []string{"start x.service"}},
		{"a unit runs from old files", "x.service\tenabled\tactive\tfresh", "x.service\tenabled\tactive\tstale", []string{"restart x.service its files have changed"}},
		{"a unit that something else starts may be stopped", "y.service\tenabled\tactive", "y.service\tenabled\tinactive", nil},
		{"but shall start from the files that are there", "y.service\tenabled\tactive\tfresh", "y.service\tenabled\tinactive\tstale", []string{"enable y.service its files change before it starts"}},
		{"the host says half a line", "unit\tx.service\tenabled\tactive\tfresh", "unit\tx.service", []string{"enable x.service"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, whole, c.old)
			a := sectionsOf([]byte("@@ p\n" + strings.Replace(whole, c.old, c.new, 1)))["p"]
			var got []string
			cs := res.diff(a)
			for _, x := range cs {
				got = append(got, strings.TrimSpace(x.Action+" "+x.Target+" "+x.Detail))
			}
			assert.Equal(t, c.want, got)
			for _, x := range cs {
				assert.Contains(t, res.script(cs), shell.Quote(strings.TrimPrefix(strings.TrimPrefix(x.Target, "module "), "sysctl ")), "each change is in the script")
			}
			assert.Equal(t, len(cs), strings.Count("\n"+res.script(cs), "\np_"), "and nothing else")
		})
	}
	assert.Empty(t, res.script(nil))
	secretDiff := res.diff(sectionsOf([]byte("@@ p\n" + strings.Replace(whole, "600\t"+hash(body), "600\t"+sha+"\t"+encoded([]byte("old")), 1)))["p"])
	require.Len(t, secretDiff, 1)
	assert.Empty(t, secretDiff[0].Diff, "a secret file is never shown")
}

func TestMergePutsTheOperatorsSettingsOverOurs(t *testing.T) {
	a := map[string]any{"x": 1, "m": map[string]any{"a": 1, "b": map[string]any{"c": 1}}, "l": []any{1, 2}}
	b := map[string]any{"y": 2, "m": map[string]any{"b": map[string]any{"d": 2}, "a": 9}, "l": []any{3}}
	got := merge(a, b)
	assert.Equal(t, map[string]any{"x": 1, "y": 2, "m": map[string]any{"a": 9, "b": map[string]any{"c": 1, "d": 2}}, "l": []any{3}}, got)
	assert.Equal(t, map[string]any{"c": 1}, a["m"].(map[string]any)["b"], "the first is not changed")
	assert.Equal(t, map[string]any{"m": "text"}, merge(map[string]any{"m": map[string]any{"a": 1}}, map[string]any{"m": "text"}))
	assert.Equal(t, a, merge(a, nil))

	ours := map[string]any{"extraArgs": args("profiling", "false", "audit-log-path", "/var/log/audit.log")}
	theirs := map[string]any{"extraArgs": args("profiling", "true", "feature-gates", "A=true", "feature-gates", "B=true")}
	assert.Equal(t, map[string]any{"extraArgs": args("audit-log-path", "/var/log/audit.log", "profiling", "true", "feature-gates", "A=true", "feature-gates", "B=true")},
		merge(ours, theirs), "one flag of the operator's does not switch the audit log off")
	assert.Equal(t, args("profiling", "false", "audit-log-path", "/var/log/audit.log"), ours["extraArgs"])
}

func TestImagesHaveTheNamesThatTheConfigurationGivesThem(t *testing.T) {
	s := &Spec{Config: &config.Cluster{}}
	s.Config.Kubernetes.Kubernetes.DockerRegistry = "mirror.example/k8s"
	s.Config.Services.Cluster.DockerRegistry = config.DockerRegistry{Domain: "harbor.example", Namespace: "pai"}
	for ref, want := range map[string]string{
		"registry.k8s.io/pause:3.10":                                    "mirror.example/k8s/pause:3.10",
		"registry.k8s.io/coredns/coredns:v1":                            "mirror.example/k8s/coredns/coredns:v1",
		"registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.19.0": "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.19.0",
		"docker.io/openpai/pai-watchdog:v1":                             "harbor.example/pai/pai-watchdog:v1",
		"quay.io/prometheus/prometheus:v3.15.0":                         "quay.io/prometheus/prometheus:v3.15.0",
	} {
		assert.Equal(t, want, s.imageRef(ref))
	}
}

func TestAReferenceIsSplitIntoRepositoryAndTag(t *testing.T) {
	for ref, want := range map[string][2]string{
		"registry.k8s.io/etcd:3.6.1-0":              {"registry.k8s.io", "3.6.1-0"},
		"registry.k8s.io/coredns/coredns:v1.12.1":   {"registry.k8s.io/coredns", "v1.12.1"},
		"localhost:5000/k8s/etcd:3":                 {"localhost:5000/k8s", "3"},
		"localhost:5000/etcd":                       {"localhost:5000", ""},
		"harbor.example.org/a/b/kube-apiserver:v1.": {"harbor.example.org/a/b", "v1."},
	} {
		repository, tag := splitRef(ref)
		assert.Equal(t, want, [2]string{repository, tag}, ref)
	}
}

func TestConfigurationsAreRenderedAsTheyAlwaysWere(t *testing.T) {
	s := testSpec(t, 3, 1)
	k := &s.Config.Kubernetes.Kubernetes
	k.APIEndpoint, k.LoadBalanceIP, k.APIServerCertSANs = "", "10.9.0.100", []string{"pai.example.org", "10.9.0.1"}
	k.Extra.Kubelet = map[string]any{"maxPods": 200, "failSwapOn": false}
	k.Extra.KubeProxy = map[string]any{"mode": "iptables"}
	k.Extra.Kubeadm = map[string]any{"scheduler": map[string]any{"extraArgs": args("v", "4")}}
	k.Extra.Containerd = map[string]any{"debug": map[string]any{"level": "debug"}}
	conf, err := s.fresh().kubeadmConfig(s.Nodes[0])
	require.NoError(t, err)
	golden(t, "kubeadm.yaml", string(conf))
	joined, err := s.fresh().joinConfig(s.Nodes[1], &ticket{token: "abcdef.0123456789abcdef", caHash: "sha256:aa", certificateKey: "bb"})
	require.NoError(t, err)
	golden(t, "join-master.yaml", string(joined))
	joined, err = s.fresh().joinConfig(s.Nodes[3], &ticket{token: "abcdef.0123456789abcdef", caHash: "sha256:aa"})
	require.NoError(t, err)
	golden(t, "join-worker.yaml", string(joined))
	conf, err = (&containerd{want: s.fresh()}).config()
	require.NoError(t, err)
	golden(t, "containerd.toml", string(conf))
	conf, err = (&network{want: s.fresh()}).manifest()
	require.NoError(t, err)
	golden(t, "flannel.yaml", string(conf))
	assert.Equal(t, "Swap", s.ignoredChecks())
	assert.True(t, filepath.IsAbs(s.Bundle.Dir()))
}
