package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/version"
)

// node returns a node that is ready and has 4 processors and 16 GiB of memory. The functions in change modify the node.
func node(name, address string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16384000Ki")}
	n.Status.NodeInfo = corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux", OSImage: "Ubuntu 22.04.4 LTS"}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func labels(pairs ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for i := 0; i < len(pairs); i += 2 {
			n.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func taints(texts ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for _, text := range texts {
			rest, effect, _ := strings.Cut(text, ":")
			key, value, _ := strings.Cut(rest, "=")
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
}

func capacity(resourceName, count string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Capacity[corev1.ResourceName(resourceName)] = resource.MustParse(count) }
}

func podCIDR(cidr string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.PodCIDR = cidr }
}

func system(image string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.OSImage = image }
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

var (
	controlPlane      = labels("node-role.kubernetes.io/control-plane", "")
	controlPlaneTaint = taints("node-role.kubernetes.io/control-plane:NoSchedule")
	a100              = func(n *corev1.Node) {
		capacity("nvidia.com/gpu", "8")(n)
		labels("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB")(n)
	}
	existingClusterTest = map[string]Existing{
		"kubeadm": {
			Name: "kubernetes", Version: "v1.36.3", Server: "https://10.0.0.1:6443", ServiceRange: "10.96.0.0/12", PodCIDR: "10.244.0.0/16,fd00::/48", DNSDomain: "lab.local",
			Nodes: []corev1.Node{
				node("w2", "10.0.0.12", a100), node("w1", "10.0.0.11", a100, taints("dedicated=team-a:NoSchedule", "node.kubernetes.io/unreachable:NoExecute")),
				node("m1", "10.0.0.1", controlPlane, controlPlaneTaint),
			},
		},
		"managed-cloud": {
			Name: "arn:aws:eks:eu-west-1:123456789012:cluster/lab_1", Version: "v1.31.2-eks-7f9249a", Server: "https://ABC.gr7.eu-west-1.eks.amazonaws.com", ServiceRange: "172.20.0.0/16",
			Nodes: []corev1.Node{
				node("ip-192-168-1-5.eu-west-1.compute.internal", "192.168.1.5", system("Amazon Linux 2023.6.20241010"), a100, taints("nvidia.com/gpu=present:NoSchedule")),
				node("ip-192-168-1-6.eu-west-1.compute.internal", "192.168.1.6", system("Amazon Linux 2023.6.20241010"), notReady),
				node("ip-192-168-1-7.eu-west-1.compute.internal", "192.168.1.7", system("Amazon Linux 2023.6.20241010")),
				node("fargate-ip-192-168-9-9", "192.168.9.9", labels("eks.amazonaws.com/compute-type", "fargate")),
				node("win", "192.168.1.8", func(n *corev1.Node) { n.Status.NodeInfo.OperatingSystem = "windows" }),
			},
		},
		"k3s": {
			Name: "default", Version: "v1.30.2+k3s1", Server: "https://127.0.0.1:6443",
			Nodes: []corev1.Node{
				node("server", "10.1.0.1", labels("node-role.kubernetes.io/control-plane", "true", "node-role.kubernetes.io/master", "true", "node-role.kubernetes.io/etcd", "true"), podCIDR("10.42.0.0/24"), system("K3s dev")),
				node("agent", "10.1.0.2", podCIDR("10.42.1.0/24"), system("Debian GNU/Linux 12 (bookworm)")),
			},
		},
	}
)

func TestExistingClustersAreDescribedAsTheGoldenFilesSay(t *testing.T) {
	for name, e := range existingClusterTest {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "c")
			g, err := GenerateExisting(e, Generation{OutDir: out})
			require.NoError(t, err)
			var text strings.Builder
			for _, file := range Files() {
				fmt.Fprintf(&text, "==> %s <==\n%s\n", file, strings.ReplaceAll(string(g.Files[file]), version.Tag(), "TAG"))
			}
			fmt.Fprintf(&text, "==> summary <==\n%s\n%s\n==> warnings <==\n", g.Summary(), g.NextSteps())
			require.NoError(t, g.Warnings.Write(&text))
			golden(t, filepath.Join("existing", name+".txt"), []byte(strings.ReplaceAll(text.String(), out, "DIR")))
			c, warnings, err := LoadValid(out)
			require.NoError(t, err)
			assert.Empty(t, warnings)
			assert.False(t, c.IsManaged())
			assert.Equal(t, g.Cluster.Layout, c.Layout, "what is written is what was meant")
		})
	}
}

func machines(c *Cluster) []string {
	var out []string
	for _, m := range c.Layout.MachineList {
		line := fmt.Sprintf("%s %s %s %s", m.Hostname, m.HostIP, strings.Join(m.Roles, "+"), m.SKU)
		if len(m.Taints) > 0 {
			line += " " + strings.Join(m.Taints, ",")
		}
		for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
			line += " " + k + "=" + m.Labels[k]
		}
		out = append(out, line)
	}
	return out
}

func rulesOf(fs Findings) []string {
	var out []string
	for _, f := range fs {
		if f.Rule != "network/unknown-range" {
			out = append(out, f.Rule)
		}
	}
	return out
}

func TestNodesBecomeMachines(t *testing.T) {
	for name, c := range map[string]struct {
		nodes   []corev1.Node
		masters []string
		want    []string
		rules   []string
	}{
		"one node is both, whatever it is": {
			nodes: []corev1.Node{node("only", "10.0.0.1")},
			want:  []string{"only 10.0.0.1 master+worker cpu-4c-16g"}, rules: []string{"layout/no-control-plane"},
		},
		"one node of a control plane that takes pods is both": {
			nodes: []corev1.Node{node("only", "10.0.0.1", controlPlane)},
			want:  []string{"only 10.0.0.1 master+worker cpu-4c-16g"},
		},
		"one node of a control plane that takes none runs no jobs": {
			nodes: []corev1.Node{node("only", "10.0.0.1", controlPlane, controlPlaneTaint)},
			want:  []string{"only 10.0.0.1 master cpu-4c-16g"}, rules: []string{"layout/no-worker"},
		},
		"a ready node without GPUs is chosen before others": {
			nodes: []corev1.Node{node("a", "10.0.0.1", notReady), node("b", "10.0.0.2", a100), node("c", "10.0.0.3", func(n *corev1.Node) { n.Spec.Unschedulable = true }), node("d", "10.0.0.4")},
			want:  []string{"d 10.0.0.4 master+worker cpu-4c-16g", "a 10.0.0.1 worker cpu-4c-16g", "b 10.0.0.2 worker 8x-a100-sxm4-80gb", "c 10.0.0.3 worker cpu-4c-16g"},
			rules: []string{"layout/no-control-plane"},
		},
		"masters may be named": {
			nodes: []corev1.Node{node("a", "10.0.0.1"), node("b", "10.0.0.2", taints("infra=true:NoSchedule"))}, masters: []string{"b"},
			want: []string{"b 10.0.0.2 master+worker cpu-4c-16g infra=true:NoSchedule", "a 10.0.0.1 worker cpu-4c-16g"},
		},
		"masters that are named come beside the control plane": {
			nodes: []corev1.Node{node("a", "10.0.0.1", controlPlane, controlPlaneTaint), node("b", "10.0.0.2"), node("c", "10.0.0.3")}, masters: []string{"c"},
			want: []string{"a 10.0.0.1 master cpu-4c-16g", "c 10.0.0.3 master+worker cpu-4c-16g", "b 10.0.0.2 worker cpu-4c-16g"},
		},
		"a node that was master stays it": {
			nodes: []corev1.Node{node("a", "10.0.0.1"), node("b", "10.0.0.2", labels("pai-master", "true", "pai-worker", "true", "pai-team", "x", "paictl.openpai.org/y", "z", "team", "t"))},
			want:  []string{"b 10.0.0.2 master+worker cpu-4c-16g pai-team=x paictl.openpai.org/y=z", "a 10.0.0.1 worker cpu-4c-16g"},
		},
		"several kinds of GPU": {
			nodes: []corev1.Node{
				node("a", "10.0.0.1", controlPlane), node("b", "10.0.0.2", a100), node("c", "10.0.0.3", capacity("nvidia.com/gpu", "4")),
				node("d", "10.0.0.4", capacity("nvidia.com/gpu", "1"), labels("cloud.google.com/gke-accelerator", "nvidia-tesla-t4")),
				node("e", "10.0.0.5", capacity("nvidia.com/gpu", "16"), labels("nvidia.com/gpu.product", "NVIDIA-L4-SHARED", "nvidia.com/gpu.count", "4")),
				node("f", "10.0.0.6", capacity("nvidia.com/gpu", "0")),
			},
			want: []string{"a 10.0.0.1 master+worker cpu-4c-16g", "b 10.0.0.2 worker 8x-a100-sxm4-80gb", "c 10.0.0.3 worker 4x-gpu", "d 10.0.0.4 worker 1x-t4", "e 10.0.0.5 worker 4x-l4", "f 10.0.0.6 worker cpu-4c-16g"},
		},
		"GPUs of two vendors": {
			nodes: []corev1.Node{node("a", "10.0.0.1", controlPlane, a100), node("b", "10.0.0.2", capacity("amd.com/gpu", "8"), labels("amd.com/gpu.product-name", "AMD_Instinct_MI300X"))},
			want:  []string{"a 10.0.0.1 master+worker 8x-a100-sxm4-80gb", "b 10.0.0.2 worker 8x-instinct-mi300x"}, rules: []string{"layout/gpu-vendors"},
		},
		"addresses that are shared, absent or of both kinds": {
			nodes: []corev1.Node{
				node("a", "10.0.0.1", controlPlane), node("b", "10.0.0.1"), node("c", "10.0.0.1"), node("d", ""), node("e", "fd00::5"),
				node("f", "fd00::6", func(n *corev1.Node) {
					n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.6"}, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "9.9.9.9"})
				}),
			},
			want:  []string{"a 10.0.0.1 master+worker cpu-4c-16g", "b 10.0.0.1 worker cpu-4c-16g", "c 10.0.0.1 worker cpu-4c-16g", "d  worker cpu-4c-16g", "e fd00::5 worker cpu-4c-16g", "f 10.0.0.6 worker cpu-4c-16g"},
			rules: []string{"layout/duplicate-hostip", "layout/hostip"},
		},
		"a node that says nothing of itself": {
			nodes: []corev1.Node{node("a", "10.0.0.1", func(n *corev1.Node) { n.Status.Capacity, n.Status.NodeInfo = nil, corev1.NodeSystemInfo{} }, controlPlane)},
			want:  []string{"a 10.0.0.1 master+worker cpu-0c-1g"}, rules: []string{"layout/not-discovered"},
		},
		"another architecture and a long name": {
			nodes: []corev1.Node{node(strings.Repeat("n", 70)+".example.org", "10.0.0.1", controlPlane, func(n *corev1.Node) { n.Status.NodeInfo.Architecture = "ppc64le" })},
			want:  []string{strings.Repeat("n", 70) + ".example.org 10.0.0.1 master+worker cpu-4c-16g"},
		},
		"nodes that come and go are left out": {
			nodes: []corev1.Node{node("a", "10.0.0.1", controlPlane), node("b", "10.0.0.2", func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })},
			want:  []string{"a 10.0.0.1 master+worker cpu-4c-16g"}, rules: []string{"layout/left-out"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := GenerateExisting(Existing{Nodes: c.nodes, Masters: c.masters}, Generation{OutDir: "c", DryRun: true})
			require.NoError(t, err)
			assert.Equal(t, c.want, machines(g.Cluster))
			assert.ElementsMatch(t, c.rules, rulesOf(g.Warnings))
		})
	}
}

func TestRolesTolerateWhatTheControlPlaneRefuses(t *testing.T) {
	g, err := GenerateExisting(Existing{Nodes: []corev1.Node{
		node("a", "10.0.0.1", controlPlane, controlPlaneTaint, taints("node.kubernetes.io/not-ready:NoExecute")),
		node("b", "10.0.0.2", controlPlane, taints("CriticalAddonsOnly=true:NoExecute")),
		node("c", "10.0.0.3"),
	}}, Generation{OutDir: "c", DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"CriticalAddonsOnly=true:NoExecute", "node-role.kubernetes.io/control-plane:NoSchedule"}, g.Cluster.Roles.Roles["master"].Taints)
	assert.Empty(t, g.Cluster.ControlPlane(), "nothing of the control plane is paictl's")
	assert.Equal(t, []string{"master"}, g.Cluster.Layout.MachineList[1].Roles)
}

func TestWithoutAPlaceForServicesNothingIsWritten(t *testing.T) {
	out := filepath.Join(t.TempDir(), "c")
	for want, e := range map[string]Existing{
		"the cluster has no node on which services could run": {},
		`the cluster has no node "x" that could run services`: {Nodes: []corev1.Node{node("a", "10.0.0.1")}, Masters: []string{"x"}},
	} {
		_, err := GenerateExisting(e, Generation{OutDir: out})
		require.ErrorContains(t, err, want)
		assert.NotEmpty(t, hint.Of(err))
		assert.NoDirExists(t, out)
	}
}

func TestFiveThousandNodesAreOneReport(t *testing.T) {
	var nodes []corev1.Node
	for i := range 5000 {
		nodes = append(nodes, node(fmt.Sprintf("n%04d", i), fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&127), a100))
	}
	out := filepath.Join(t.TempDir(), "c")
	g, err := GenerateExisting(Existing{Nodes: nodes, PodCIDR: "10.244.0.0/24"}, Generation{OutDir: out})
	require.NoError(t, err)
	assert.Equal(t, "machines: 5000, masters: 1; hardware: 5000 × 8x-a100-sxm4-80gb", g.Summary())
	assert.LessOrEqual(t, len(g.Warnings), 3, "shared addresses are one finding")
	c, _, err := LoadValid(out)
	require.NoError(t, err)
	assert.Len(t, c.Layout.MachineList, 5000)
}

func TestSystemsAreNamedInOneWord(t *testing.T) {
	for image, want := range map[string]string{
		"Ubuntu 22.04.4 LTS": "ubuntu22.04", "Debian GNU/Linux 12 (bookworm)": "debian12", "Amazon Linux 2": "amzn2", "Amazon Linux 2023.6.20241010": "amzn2023",
		"Container-Optimized OS from Google": "cos", "Bottlerocket OS 1.19.4 (aws-k8s-1.29)": "bottlerocket1.19.4", "Talos (v1.7.0)": "talos1.7.0",
		"Red Hat Enterprise Linux 9.4 (Plow)": "rhel9.4", "SUSE Linux Enterprise Server 15 SP5": "sles15", "Rocky Linux 9.3 (Blue Onyx)": "rocky9.3",
		"Flatcar Container Linux by Kinvolk 3815.2.0 (Oklo)": "flatcar3815.2.0", "CBL-Mariner/Linux": "mariner", "": "unknown",
	} {
		assert.Equal(t, want, nodeFacts(node("a", "10.0.0.1", system(image))).OS(), image)
	}
}

func TestNetworksAreReadOrGuessedOrLeftOpen(t *testing.T) {
	for name, c := range map[string]struct {
		existing           Existing
		pods, services, ip string
		port               int
	}{
		"nothing is told":             {Existing{}, "", "", "", 0},
		"the first IPv4 range counts": {Existing{PodCIDR: "fd00::/48, 10.1.2.3/16", ServiceRange: "fd01::/108"}, "10.1.0.0/16", "fd01::/108", "", 0},
		"garbage is nothing":          {Existing{PodCIDR: "x", ServiceRange: ",", Server: "://"}, "", "", "", 0},
		"ranges of nodes":             {Existing{Nodes: []corev1.Node{node("a", "1.1.1.1", podCIDR("10.42.0.0/24")), node("b", "1.1.1.2", podCIDR("10.42.7.0/24"))}}, "10.42.0.0/16", "", "", 0},
		"ranges of nodes far apart":   {Existing{Nodes: []corev1.Node{node("a", "1.1.1.1", podCIDR("10.42.0.0/24")), node("b", "1.1.1.2", podCIDR("10.45.7.0/24"))}}, "10.40.0.0/13", "", "", 0},
		"ranges without a pattern":    {Existing{Nodes: []corev1.Node{node("a", "1.1.1.1", podCIDR("10.42.0.0/24")), node("b", "1.1.1.2", podCIDR("172.16.7.0/24"))}}, "", "", "", 0},
		"a node without a range":      {Existing{Nodes: []corev1.Node{node("a", "1.1.1.1", podCIDR("10.42.0.0/24")), node("b", "1.1.1.2")}}, "", "", "", 0},
		"an API by address":           {Existing{Server: "https://10.0.0.9"}, "", "", "10.0.0.9", 443},
		"an API by IPv6 address":      {Existing{Server: "https://[fd00::1]:6443"}, "", "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if c.existing.Nodes == nil {
				c.existing.Nodes = []corev1.Node{node("a", "1.1.1.1")}
			}
			g, err := GenerateExisting(c.existing, Generation{OutDir: "c", DryRun: true})
			require.NoError(t, err)
			k := g.Cluster.Kubernetes.Kubernetes
			assert.Equal(t, []any{c.pods, c.services, c.ip, c.port}, []any{k.PodCIDR, k.ServiceClusterIPRange, k.LoadBalanceIP, k.APIServerPort})
		})
	}
}

func TestSettingsThatAnExistingClusterIgnoresAreWarnedAbout(t *testing.T) {
	files := goodFiles()
	files[KubernetesFile] = "kubernetes: {managed: false, version: v1.30.2+k3s1, bundle: b, cluster-dns: [127.0.0.1], pod-cidr: 10.0.0.0/16, extra: {}}\n"
	findings, err := ValidateDir(folder(t, files))
	require.NoError(t, err)
	assert.Equal(t, []string{"kubernetes/not-managed", "kubernetes/not-managed", "kubernetes/not-managed"}, rulesOf(findings))
	require.NoError(t, findings.Err())
}

func TestRulesOfExistingClusters(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no master":       {"roles: [master]", "roles: [worker]", "layout/no-master"},
		"no address":      {"hostip: 10.0.0.2", "hostip: 10.0.0", "layout/hostip"},
		"no host name":    {"hostname: w1", "hostname: W1", "layout/hostname"},
		"no range":        {"managed: false", "managed: false, pod-cidr: x", "network/cidr"},
		"no domain":       {"managed: false", "managed: false, dns-domain: a_b", "kubernetes/dns-domain"},
		"no cluster name": {"managed: false", "managed: false, cluster-name: A", "kubernetes/cluster-name"},
	} {
		t.Run(name, func(t *testing.T) {
			files := goodFiles()
			files[KubernetesFile] = "kubernetes: {managed: false}\n"
			for file, text := range files {
				files[file] = strings.Replace(text, c.old, c.new, 1)
			}
			findings, err := ValidateDir(folder(t, files))
			require.NoError(t, err)
			assert.Equal(t, []string{c.want}, rulesOf(findings.Errors()))
		})
	}
}
