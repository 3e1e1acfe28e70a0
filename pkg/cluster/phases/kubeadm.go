package phases

import (
	"bytes"
	_ "embed"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/config"
)

// KubeadmScript defines the shell functions that call kubeadm.
//
//go:embed scripts/kubeadm.sh
var KubeadmScript string

const kubeadmAPI = "kubeadm.k8s.io/v1beta4"

// KubeadmConfig renders the documents for "kubeadm init". When the settings of the control plane change, kubeadm reads them again.
func KubeadmConfig(d *engine.Desired, n *engine.Node) ([]byte, error) {
	docs, err := controlPlaneDocuments(d, n)
	if err != nil {
		return nil, err
	}
	return yamlDocuments(append(docs, KubeletSettings(d))...)
}

// ControlPlaneHash returns a hash of the settings of the control plane and kube-proxy. It excludes the settings of the kubelet, because the phase
// kubelet writes them to each machine.
func ControlPlaneHash(d *engine.Desired, n *engine.Node) (string, error) {
	docs, err := controlPlaneDocuments(d, n)
	if err != nil {
		return "", err
	}
	b, err := yamlDocuments(docs...)
	return engine.Hash(b), err
}

// storedHash returns a hash of the settings in the cluster, which are the same for all machines.
func storedHash(d *engine.Desired) (string, error) {
	cluster, err := ClusterConfiguration(d)
	if err != nil {
		return "", err
	}
	b, err := yamlDocuments(cluster, kubeProxy(d.Spec))
	return engine.Hash(b), err
}

// EtcdData returns the folder with etcd's data on masters.
func EtcdData(s *engine.Spec) string {
	k := s.Config.Kubernetes.Kubernetes
	etcd, _ := k.Extra.Kubeadm["etcd"].(map[string]any)
	local, _ := etcd["local"].(map[string]any)
	if dir, ok := local["dataDir"].(string); ok {
		return dir
	}
	return k.EtcdDataPath
}

func kubeProxy(s *engine.Spec) map[string]any {
	k := s.Config.Kubernetes.Kubernetes
	return merge(map[string]any{
		"apiVersion":  "kubeproxy.config.k8s.io/v1alpha1",
		"kind":        "KubeProxyConfiguration",
		"mode":        "nftables",
		"clusterCIDR": k.PodCIDR,
	}, k.Extra.KubeProxy)
}

func controlPlaneDocuments(d *engine.Desired, n *engine.Node) ([]map[string]any, error) {
	cluster, err := ClusterConfiguration(d)
	if err != nil {
		return nil, err
	}
	k := d.Config.Kubernetes.Kubernetes
	initial := map[string]any{
		"apiVersion":       kubeadmAPI,
		"kind":             "InitConfiguration",
		"localAPIEndpoint": map[string]any{"advertiseAddress": n.HostIP, "bindPort": k.APIServerPort},
		"nodeRegistration": nodeRegistration(n),
		// kubeadm requires a token here, but no machine uses it. A joining machine gets a token from the leader.
		"bootstrapTokens": []any{map[string]any{"ttl": "1m0s", "usages": []any{"signing", "authentication"}, "groups": []any{"system:bootstrappers:kubeadm:default-node-token"}}},
	}
	return []map[string]any{initial, cluster, kubeProxy(d.Spec)}, nil
}

// ClusterConfiguration returns the settings that are the same for all masters.
func ClusterConfiguration(d *engine.Desired) (map[string]any, error) {
	k := d.Config.Kubernetes.Kubernetes
	refs := map[string]string{}
	for _, name := range []string{"kube-apiserver", "etcd", "coredns"} {
		ref, err := d.Image(name)
		if err != nil {
			return nil, err
		}
		refs[name] = ImageRef(d.Spec, ref)
	}
	repository, _ := SplitRef(refs["kube-apiserver"])
	etcdRepository, etcdTag := SplitRef(refs["etcd"])
	dnsRepository, dnsTag := SplitRef(refs["coredns"])
	conf := map[string]any{
		"apiVersion":           kubeadmAPI,
		"kind":                 "ClusterConfiguration",
		"clusterName":          k.ClusterName,
		"kubernetesVersion":    k.Version,
		"controlPlaneEndpoint": d.Endpoint(),
		"imageRepository":      repository,
		"networking": map[string]any{
			"serviceSubnet": k.ServiceClusterIPRange, "podSubnet": k.PodCIDR, "dnsDomain": k.DNSDomain,
		},
		"etcd": map[string]any{"local": map[string]any{
			"dataDir": k.EtcdDataPath, "imageRepository": etcdRepository, "imageTag": etcdTag,
		}},
		"dns":               map[string]any{"imageRepository": dnsRepository, "imageTag": dnsTag},
		"apiServer":         apiServer(d),
		"controllerManager": map[string]any{"extraArgs": Args("profiling", "false")},
		"scheduler":         map[string]any{"extraArgs": Args("profiling", "false")},
	}
	ours := conf["apiServer"].(map[string]any)["certSANs"].([]any)
	merged := merge(conf, k.Extra.Kubeadm)
	// Keep paictl's names beside the operator's names, because machines don't trust their API without paictl's names.
	if api, ok := merged["apiServer"].(map[string]any); ok {
		theirs, _ := api["certSANs"].([]any)
		api["certSANs"] = unique(slices.Concat(ours, theirs))
	}
	return merged, nil
}

// apiServer returns the settings of the API server, such as the encryption of Secrets, the audit log, and the verification of kubelets.
func apiServer(d *engine.Desired) map[string]any {
	sans := []any{}
	for _, n := range d.ControlPlane() {
		sans = append(sans, n.HostIP, n.Hostname)
	}
	for _, name := range d.Config.Kubernetes.Kubernetes.APIServerCertSANs {
		sans = append(sans, name)
	}
	if host, _, err := net.SplitHostPort(d.Endpoint()); err == nil {
		sans = append(sans, host)
	}
	if vip := d.Config.Kubernetes.Kubernetes.APIVIP; vip != "" {
		sans = append(sans, vip)
	}
	// While the API's address changes, machines with a proxy still use the proxy's address.
	if host, _, err := net.SplitHostPort(config.LocalAPI()); err == nil {
		sans = append(sans, host)
	}
	flags := []string{
		"audit-log-maxage", "30", "audit-log-maxbackup", "10", "audit-log-maxsize", "100",
		"audit-log-path", "/var/log/kubernetes/audit.log",
		"audit-policy-file", auditPolicyFile,
		"encryption-provider-config", EncryptionFile,
		"encryption-provider-config-automatic-reload", "true",
		"profiling", "false",
	}
	if !d.Unverified {
		flags = append(flags, "kubelet-certificate-authority", clusterCA)
	}
	return map[string]any{
		"certSANs":  unique(sans),
		"extraArgs": Args(flags...),
		// The API server reads its audit policy only when it starts. The hash of the policy changes the manifest, which restarts the server.
		"extraEnvs": []any{map[string]any{"name": "PAICTL_AUDIT_POLICY", "value": engine.Hash(AuditPolicy)[:16]}},
		"extraVolumes": []any{
			map[string]any{"name": "paictl", "hostPath": confDir, "mountPath": confDir, "readOnly": true, "pathType": "Directory"},
			map[string]any{"name": "audit-log", "hostPath": "/var/log/kubernetes", "mountPath": "/var/log/kubernetes", "pathType": "DirectoryOrCreate"},
		},
	}
}

// nodeRegistration returns the settings for the registration of a node. With the empty list of taints, kubeadm doesn't add its own taints. The phase
// labels sets the taints of the layout's roles.
func nodeRegistration(n *engine.Node) map[string]any {
	return map[string]any{
		"name":             n.Hostname,
		"criSocket":        criSocket,
		"taints":           []any{},
		"imagePullPolicy":  "IfNotPresent",
		"kubeletExtraArgs": Args("node-ip", n.HostIP),
	}
}

// JoinConfig renders the configuration for "kubeadm join". The configuration contains the ticket's secrets.
func JoinConfig(d *engine.Desired, n *engine.Node, t *engine.Ticket) ([]byte, error) {
	conf := map[string]any{
		"apiVersion":       kubeadmAPI,
		"kind":             "JoinConfiguration",
		"nodeRegistration": nodeRegistration(n),
		"discovery": map[string]any{"bootstrapToken": map[string]any{
			"apiServerEndpoint": discovery(d, n, t),
			"token":             t.Token.Reveal(),
			"caCertHashes":      []any{t.CaHash},
		}},
	}
	if n.ControlPlane {
		// kubeadm gives a new etcd member two minutes to start and to catch up. On slow machines, kubeadm would then fail and leave a learner in etcd. The
		// learner would prevent further masters from joining.
		conf["timeouts"] = map[string]any{"etcdAPICall": "5m0s"}
		conf["controlPlane"] = map[string]any{
			"certificateKey":   t.CertificateKey.Reveal(),
			"localAPIEndpoint": map[string]any{"advertiseAddress": n.HostIP, "bindPort": d.Config.Kubernetes.Kubernetes.APIServerPort},
		}
	}
	return yamlDocuments(conf)
}

// discovery returns the address at which a joining machine finds the cluster. This is usually the API's address. If the API's address belongs to the
// joining machine, it is the address of the ticket's issuer, because the joining machine doesn't run an API server yet.
func discovery(d *engine.Desired, n *engine.Node, t *engine.Ticket) string {
	if d.Endpoint() == d.OwnEndpoint(n) {
		return t.Issuer
	}
	return d.Endpoint()
}

// IgnoredChecks returns the kubeadm checks whose failure must not stop kubeadm: those in the operator's configuration, and those that contradict the
// operator's settings for the kubelet.
func IgnoredChecks(s *engine.Spec) string {
	extra := s.Config.Kubernetes.Kubernetes.Extra
	out := slices.Clone(extra.KubeadmIgnorePreflight)
	for setting, check := range map[string]string{"failCgroupV1": "SystemVerification", "failSwapOn": "Swap"} {
		if v, ok := extra.Kubelet[setting].(bool); ok && !v {
			out = append(out, check)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// Args converts pairs of name and value to the format for flags in kubeadm's v1beta4 configuration.
func Args(pairs ...string) []any {
	var out []any
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, map[string]any{"name": pairs[i], "value": pairs[i+1]})
	}
	return out
}

// SplitRef splits an image reference into the repository without the image's name, and the tag.
func SplitRef(ref string) (repository, tag string) {
	name := ref
	if i := strings.LastIndex(ref, ":"); i > strings.LastIndex(ref, "/") {
		name, tag = ref[:i], ref[i+1:]
	}
	return path.Dir(name), tag
}

func unique(in []any) []any {
	seen := map[any]bool{}
	out := []any{}
	for _, v := range in {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

func yamlDocuments(docs ...map[string]any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# Written by paictl; change kubernetes-configuration.yaml instead.\n")
	for i, d := range docs {
		y, err := yaml.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("render %v: %w", d["kind"], err)
		}
		// Omit the separator before the first document, because kubeadm would parse the empty text before it as a document.
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(y)
	}
	return b.Bytes(), nil
}
