package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kubeproxyv1alpha1 "k8s.io/kube-proxy/config/v1alpha1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

var (
	sysctlName = regexp.MustCompile(`^[a-z0-9_*-]+([./][a-zA-Z0-9_*:@-]+)+$`)
	ignoreName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
)

// The sections of extra whose settings have a type.
const (
	extraKubelet   = "kubelet"
	extraKubeProxy = "kube-proxy"
	extraKubeadm   = "kubeadm"
)

func (k *checker) checkExtra() {
	e, r, p := k.c.Kubernetes.Kubernetes.Extra, k.extra, k.extraAt
	for _, name := range sortedKeys(e.Sysctl) {
		if !sysctlName.MatchString(name) {
			r.fail(p.With("sysctl", name), "extra/sysctl", fmt.Sprintf("%q is not the name of a kernel setting", name), "write it as sysctl -a does, such as net.core.somaxconn")
		}
		if strings.ContainsAny(e.Sysctl[name], "\n\r") {
			r.fail(p.With("sysctl", name), "extra/sysctl", "the value has more than one line", "write one value")
		}
	}
	for i, name := range e.KubeadmIgnorePreflight {
		if !ignoreName.MatchString(name) {
			r.fail(p.With("kubeadm-ignore-preflight-errors", i), "extra/kubeadm-check", fmt.Sprintf("%q is not the name of a check", name), "write it as kubeadm does, such as Swap")
		}
	}
	for _, s := range []struct {
		name     string
		settings map[string]any
		t        reflect.Type
		enums    map[string][]string
	}{
		{extraKubelet, e.Kubelet, reflect.TypeFor[kubeletv1beta1.KubeletConfiguration](), kubeletEnums()},
		{extraKubeProxy, e.KubeProxy, reflect.TypeFor[kubeproxyv1alpha1.KubeProxyConfiguration](), kubeProxyEnums()},
		{extraKubeadm, e.Kubeadm, reflect.TypeFor[kubeadmCluster](), kubeadmEnums()},
	} {
		if s.settings == nil {
			continue
		}
		c := &typed{enums: s.enums, fail: r.fail}
		c.value(s.settings, s.t, p.With(s.name), "")
		k.checkOwned(s.name, s.settings)
	}
	k.checkKubeletAmounts()
	k.checkFlags()
	k.checkVolumes()
	k.checkPorts()
}

// The functions below return the words that string fields accept. The types list these words only in their comments. The programs check them only
// at their start, after the machines were changed.

func kubeletEnums() map[string][]string {
	return map[string][]string{
		"cgroupDriver":                              {"systemd", "cgroupfs"},
		"cpuManagerPolicy":                          {"none", "static"},
		"memoryManagerPolicy":                       {"None", "Static"},
		"topologyManagerPolicy":                     {"none", "best-effort", "restricted", "single-numa-node"},
		"topologyManagerScope":                      {"container", "pod"},
		"hairpinMode":                               {"promiscuous-bridge", "hairpin-veth", "none"},
		"configMapAndSecretChangeDetectionStrategy": {"Get", "Cache", "Watch"},
		"imagePullCredentialsVerificationPolicy":    {"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"},
		"memorySwap.swapBehavior":                   {"NoSwap", "LimitedSwap"},
		"authorization.mode":                        {"Webhook", "AlwaysAllow"},
		"enforceNodeAllocatable[]":                  {"none", "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible"},
		"logging.format":                            {"text", "json"},
		"tlsMinVersion":                             {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"},
	}
}

func kubeProxyEnums() map[string][]string {
	return map[string][]string{
		"mode":            {"nftables", "iptables", "ipvs"},
		"detectLocalMode": {"ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"},
		"logging.format":  {"text", "json"},
	}
}

func kubeadmEnums() map[string][]string {
	enums := map[string][]string{"encryptionAlgorithm": {"RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384"}}
	for _, c := range []string{"apiServer", "controllerManager", "scheduler"} {
		enums[c+".extraVolumes[].pathType"] = []string{"", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"}
	}
	return enums
}

// owned describes a field that paictl sets itself, or a value that would break the cluster.
type owned struct {
	field string
	is    func(v any) bool // nil: any value
	why   string           // continues "FIELD: "
	fix   string
	warns bool
}

func isTrue(v any) bool  { return v == true }
func isFalse(v any) bool { return v == false }
func isText(s string) func(any) bool {
	return func(v any) bool { return v == s }
}

func setBy(field, fix string) owned {
	return owned{field: field, why: field + " is set by paictl from the rest of the configuration", fix: fix}
}

func instead(field string) string { return "set kubernetes." + field + " in this file instead" }

func ownedKubelet() []owned {
	reach := "remove it: the API server and Prometheus reach the kubelet this way"
	return []owned{
		setBy("apiVersion", "remove it"), setBy("kind", "remove it"),
		setBy("clusterDNS", instead("service-cluster-ip-range")+"; the address of cluster DNS is its tenth"),
		setBy("clusterDomain", instead("dns-domain")),
		setBy("staticPodPath", "remove it: kubeadm writes the control plane to /etc/kubernetes/manifests"),
		setBy("containerRuntimeEndpoint", "remove it: paictl installs containerd"),
		setBy("imageServiceEndpoint", "remove it: paictl installs containerd"),
		setBy("registerWithTaints", "write taints in layout.yaml or k8s-role-definition.yaml"),
		setBy("podCIDR", instead("pod-cidr")),
		{field: "authentication.anonymous.enabled", is: isTrue, why: "anyone on the network could run commands in all pods", fix: "remove it"},
		{field: "authentication.webhook.enabled", is: isFalse, why: "no service could read the kubelet's metrics", fix: reach},
		{field: "authentication.x509.clientCAFile", why: "kubeadm sets it to the cluster's certificate authority", fix: reach},
		{field: "authorization.mode", is: isText("AlwaysAllow"), why: "everyone who gets access could run commands in all pods", fix: "remove it"},
		{field: "enableServer", is: isFalse, why: "logs, exec and metrics would not work", fix: reach},
		{field: "registerNode", is: isFalse, why: "the machine would never become a node", fix: "remove it"},
		{field: "rotateCertificates", is: isFalse, why: "the machine would leave the cluster when its certificate expires, after a year", fix: "remove it"},
		{field: "runOnce", is: isTrue, why: "the kubelet refuses it", fix: "remove it"},
		{field: "serverTLSBootstrap", is: isFalse, why: "kubelets then sign their own certificates, which neither the API server nor Prometheus can verify", fix: "remove it: the cluster signs them, and paictl approves the requests", warns: true},
		{field: "tlsCertFile", why: "the kubelet shows the certificate that the cluster signs, not this one", fix: "remove it", warns: true},
		{field: "defaultPodSysctls", why: "the kubelet of Kubernetes 1.36 doesn't know it, and would not start", fix: "remove it"},
		{field: "readOnlyPort", is: func(v any) bool { return isInteger(v) && !isZero(v) }, why: "everyone on the network could read which pods run on the machine", fix: "remove it: authorized users can read metrics on the kubelet's own port", warns: true},
	}
}

func ownedKubeProxy() []owned {
	return []owned{
		setBy("apiVersion", "remove it"), setBy("kind", "remove it"),
		setBy("clusterCIDR", instead("pod-cidr")),
		setBy("clientConnection.kubeconfig", "remove it: kubeadm sets it"),
		setBy("hostnameOverride", "remove it: each machine has its own"),
	}
}

func ownedKubeadm() []owned {
	image := "remove it: the image is the bundle's"
	return []owned{
		setBy("apiVersion", "remove it"), setBy("kind", "remove it"),
		setBy("kubernetesVersion", instead("version")),
		setBy("controlPlaneEndpoint", instead("api-endpoint")+", and api-servers-port"),
		setBy("imageRepository", instead("docker-registry")),
		setBy("clusterName", instead("cluster-name")),
		setBy("networking", instead("service-cluster-ip-range, pod-cidr or dns-domain")),
		setBy("certificatesDir", "remove it: paictl expects the certificates in /etc/kubernetes/pki"),
		setBy("etcd.local.dataDir", instead("etcd-data-path")),
		{field: "etcd.external", why: "paictl runs etcd on the masters, and supports no other etcd", fix: "remove it"},
		setBy("etcd.local.imageRepository", image), setBy("etcd.local.imageTag", image),
		setBy("dns.imageRepository", image), setBy("dns.imageTag", image),
	}
}

// checkOwned reports settings that paictl sets itself, and values that would break the cluster.
func (k *checker) checkOwned(section string, settings map[string]any) {
	rules := map[string]func() []owned{extraKubelet: ownedKubelet, extraKubeProxy: ownedKubeProxy, extraKubeadm: ownedKubeadm}[section]()
	if section == extraKubelet && len(k.c.Kubernetes.Kubernetes.ClusterDNS) > 0 {
		rules = append(rules, setBy("resolvConf", instead("cluster-dns")))
	}
	for _, o := range rules {
		p := fieldPath{}
		for step := range strings.SplitSeq(o.field, ".") {
			p = p.With(step)
		}
		v, ok := lookUp(settings, o.field)
		if !ok || o.is != nil && !o.is(v) {
			continue
		}
		report := k.extra.fail
		if o.warns {
			report = k.extra.warn
		}
		report(k.extraAt.With(section).With(p...), "extra/owned", o.why, o.fix)
	}
}

// lookUp returns the value at a path whose keys are separated by dots, and whether the value exists.
func lookUp(settings map[string]any, field string) (any, bool) {
	name, rest, deeper := strings.Cut(field, ".")
	v, ok := settings[name]
	if !deeper || !ok {
		return v, ok
	}
	m, _ := v.(map[string]any)
	return lookUp(m, rest)
}

func isZero(v any) bool { return reflect.ValueOf(v).IsZero() }

func evictionSignals() []string {
	return []string{
		"memory.available", "allocatableMemory.available", "nodefs.available", "nodefs.inodesFree",
		"imagefs.available", "imagefs.inodesFree", "containerfs.available", "containerfs.inodesFree", "pid.available",
	}
}

var percentage = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?%$`)

// checkKubeletAmounts checks maps whose values have the type string but must be quantities. The kubelet checks them only when it starts.
func (k *checker) checkKubeletAmounts() {
	for field, percent := range map[string]bool{
		"evictionHard": true, "evictionSoft": true, "evictionMinimumReclaim": true, "systemReserved": false, "kubeReserved": false,
	} {
		m, _ := k.c.Kubernetes.Kubernetes.Extra.Kubelet[field].(map[string]any)
		known := []string{"cpu", "memory", "ephemeral-storage", "pid"}
		if percent {
			known = evictionSignals()
		}
		for _, name := range sortedKeys(m) {
			p := k.extraAt.With(extraKubelet, field, name)
			if !slices.Contains(known, name) {
				k.extra.fail(p, "extra/unknown-key", fmt.Sprintf("the kubelet has no %q here", name), "there are: "+strings.Join(known, ", "))
			}
			text, ok := m[name].(string)
			if !ok || percent && percentage.MatchString(text) {
				continue // a wrong type has its own finding
			}
			if q, err := resource.ParseQuantity(text); err != nil || q.Sign() < 0 {
				k.extra.fail(p, "extra/value", fmt.Sprintf("%q is not an amount", text), "write a quantity such as 500Mi"+map[bool]string{true: ", or a share such as 10%"}[percent])
			}
		}
	}
	if pods, ok := number(k.c.Kubernetes.Kubernetes.Extra.Kubelet["maxPods"]); ok && pods > podsPerBlock && k.c.Kubernetes.Kubernetes.NetworkPlugin == defaultNetwork {
		k.extra.warn(k.extraAt.With(extraKubelet, "maxPods"), "extra/value", fmt.Sprintf("a machine has %d addresses for pods; further pods would wait forever", podsPerBlock), fmt.Sprintf("write at most %d", podsPerBlock))
	}
}

// podsPerBlock is the number of pod addresses on a machine: a /24 without the addresses of the network, the bridge and the broadcast.
const podsPerBlock = 253

// number returns a decoded YAML value as an int. The second result is false if the value isn't a whole number.
func number(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case int64:
		return int(n), true
	}
	return 0, false
}

func (k *checker) checkFlags() {
	ours := map[string]map[string]string{
		"apiServer": {
			"secure-port": instead("api-servers-port"), "service-cluster-ip-range": instead("service-cluster-ip-range"),
			"advertise-address": "remove it: each machine has its own", "bind-address": "remove it: the API server is reached at the machine's address",
			"etcd-servers":               "remove it: paictl runs etcd on the masters",
			"encryption-provider-config": "remove it: without paictl's key the cluster's secrets could not be read",
			"audit-policy-file":          "remove it: only paictl's folder is mounted in the API server's pod",
		},
		"controllerManager": {
			"cluster-cidr": instead("pod-cidr"), "service-cluster-ip-range": instead("service-cluster-ip-range"), "cluster-name": instead("cluster-name"),
			"node-cidr-mask-size": "remove it: pod-cidr is counted in blocks of /24", "allocate-node-cidrs": "remove it: machines would get no addresses for pods",
		},
		"etcd.local": {"data-dir": instead("etcd-data-path"), "name": "remove it: it is the machine's", "initial-cluster": "remove it: kubeadm decides it"},
	}
	for _, component := range sortedKeys(ours) {
		v, _ := lookUp(k.c.Kubernetes.Kubernetes.Extra.Kubeadm, component+".extraArgs")
		list, _ := v.([]any)
		for i, x := range list {
			arg, _ := x.(map[string]any)
			name, _ := arg["name"].(string)
			p := k.extraAt.With(extraKubeadm)
			for step := range strings.SplitSeq(component, ".") {
				p = p.With(step)
			}
			p = p.With("extraArgs", i)
			switch fix := ours[component][name]; {
			case name == "" && arg != nil:
				k.extra.fail(p, "extra/value", "the argument has no name", "write {name: FLAG, value: \"VALUE\"}")
			case fix != "":
				k.extra.fail(p, "extra/owned", fmt.Sprintf("the flag %s is set by paictl", name), fix)
			case strings.HasPrefix(name, "-"):
				k.extra.fail(p.With("name"), "extra/value", fmt.Sprintf("%q begins with a dash; kubeadm adds them", name), "write "+strings.TrimLeft(name, "-"))
			case component == "apiServer" && name == "anonymous-auth" && arg["value"] == "false":
				k.extra.fail(p, "extra/owned", "the kubelet probes the API server's health anonymously, and would restart it forever", "remove it")
			}
		}
	}
}

func (k *checker) checkVolumes() {
	v, _ := lookUp(k.c.Kubernetes.Kubernetes.Extra.Kubeadm, "apiServer.extraVolumes")
	list, _ := v.([]any)
	for i, x := range list {
		volume, _ := x.(map[string]any)
		p := k.extraAt.With(extraKubeadm, "apiServer", "extraVolumes", i)
		switch volume["name"] {
		case "paictl", "audit-log":
			k.extra.fail(p, "extra/owned", fmt.Sprintf("the API server has a volume %v of paictl's", volume["name"]), "choose another name")
		case nil:
			k.extra.fail(p, "extra/value", "the volume has no name", "add name")
		}
	}
}

// addressPort returns the port in ADDRESS:PORT, the format of kube-proxy's settings. The second result is false for any other format.
func addressPort(v any) (int, bool) {
	s, _ := v.(string)
	if a, err := netip.ParseAddrPort(s); err == nil {
		return int(a.Port()), true
	}
	return 0, false
}

// checkPorts reports ports of the kubelet and of kube-proxy that another program on the machine uses.
func (k *checker) checkPorts() {
	e := k.c.Kubernetes.Kubernetes.Extra
	for _, field := range []string{"metricsBindAddress", "healthzBindAddress"} {
		v, set := e.KubeProxy[field]
		if s, isText := v.(string); set && isText && s != "" {
			if _, ok := addressPort(v); !ok {
				k.extra.fail(k.extraAt.With(extraKubeProxy, field), "extra/value", fmt.Sprintf("%q is not ADDRESS:PORT", s), "write an address and a port, such as 0.0.0.0:"+strconv.Itoa(defaultPorts()[extraKubeProxy+"."+field]))
			}
		}
	}
	seen := map[int]HostPort{}
	for _, p := range k.c.HostPorts() {
		first, taken := seen[p.Port]
		if !taken {
			seen[p.Port] = p
		}
		if len(p.extra) == 0 {
			continue
		}
		at := k.extraAt.With(p.extra...)
		switch {
		case p.Port < 1 || p.Port > 65535:
			k.extra.fail(at, "extra/value", badPort(p.Port), "remove it, or write another port")
		case taken:
			k.extra.fail(at, "extra/port", fmt.Sprintf("port %d is used by %s", p.Port, k.placed(first)), "write another port")
		case IsNodePort(p.Port):
			k.extra.fail(at, "extra/port", fmt.Sprintf("port %d is in the range of node ports (30000 to 32767)", p.Port), "write another port")
		}
	}
}

// placed describes the program that uses a port. If a line of the file sets the port, the description includes this line.
func (k *checker) placed(p HostPort) string {
	if len(p.extra) == 0 {
		return p.User
	}
	at := k.extraAt.With(p.extra...)
	return p.User + lineOf(k.extra.doc, at)
}
