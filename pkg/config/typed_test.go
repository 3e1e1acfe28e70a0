package config

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
	"github.com/openpai/paictl/pkg/version"
)

func TestAMisspeltFieldIsNamedWithItsLineAndWhatWasMeant(t *testing.T) {
	files := goodFiles()
	files[KubernetesFile] += "  extra:\n    kubelet:\n      maxPods: 200\n      cgroupDrive: systemd\n"
	findings, err := ValidateDir(folder(t, files))
	require.NoError(t, err)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0].String(), KubernetesFile+`:8:20: kubernetes.extra.kubelet.cgroupDrive: KubeletConfiguration has no field "cgroupDrive"`)
	assert.Equal(t, `did you mean "cgroupDriver"?`, findings[0].Remedy)
}

func TestQuotesInExtraAreOnlyNamedWhereThereAreSome(t *testing.T) {
	for value, remedy := range map[string]string{"'200'": "remove the quotes, if that is what you meant", "many": "write a whole number there"} {
		files := goodFiles()
		files[KubernetesFile] += "  extra:\n    kubelet: {maxPods: " + value + "}\n"
		findings, err := ValidateDir(folder(t, files))
		require.NoError(t, err)
		require.Len(t, findings, 1)
		assert.Equal(t, remedy, findings[0].Remedy, value)
	}
}

func TestAllMistakesOfExtraComeTogether(t *testing.T) {
	files := goodFiles()
	files[KubernetesFile] += "  extra:\n    kubelet: {maxPod: 1, failSwapOn: 'no'}\n    kube-proxy: {mode: ebpf}\n    kubeadm: {dns: {enabled: true}}\n"
	findings, err := ValidateDir(folder(t, files))
	require.NoError(t, err)
	var got []string
	for _, f := range findings {
		got = append(got, f.Field)
	}
	assert.Equal(t, []string{
		"kubernetes.extra.kubelet.maxPod", "kubernetes.extra.kubelet.failSwapOn", "kubernetes.extra.kube-proxy.mode", "kubernetes.extra.kubeadm.dns.enabled",
	}, got)
}

func TestSettingsThatTheProgramsTakePass(t *testing.T) {
	files := goodFiles()
	files[KubernetesFile] += `  extra:
    kubelet:
      maxPods: 200
      cgroupDriver: cgroupfs
      failSwapOn: false
      featureGates: {NodeSwap: true}
      memorySwap: {swapBehavior: LimitedSwap}
      systemReserved: {cpu: 500m, memory: 1Gi}
      evictionHard: {memory.available: 500Mi, nodefs.available: 5%}
      shutdownGracePeriod: 60s
      memoryThrottlingFactor: 1
      reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]
      logging: {format: json, flushFrequency: 5s, verbosity: 2, vmodule: [{filePattern: a, verbosity: 4}]}
      podPidsLimit:
    kube-proxy:
      mode: ipvs
      metricsBindAddress: 0.0.0.0:10249
      conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 24h0m0s}
    kubeadm:
      certificateValidityPeriod: 8760h
      encryptionAlgorithm: ECDSA-P256
      proxy: {disabled: true}
      apiServer:
        certSANs: [api.example.org]
        extraArgs: [{name: oidc-issuer-url, value: "https://example.org"}]
        extraEnvs: [{name: A, value: b}]
        extraVolumes: [{name: a, hostPath: /a, mountPath: /a, readOnly: true, pathType: Directory}]
      etcd: {local: {extraArgs: [{name: quota-backend-bytes, value: "8589934592"}]}}
`
	findings, err := ValidateDir(folder(t, files))
	require.NoError(t, err)
	assert.Empty(t, findings)
}

func TestMistakesOfExtraInAQuickStartFileAreFoundThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quick-start.yaml")
	require.NoError(t, os.WriteFile(file, []byte("machines: [10.0.0.1]\nssh-username: pai\nssh-password: x\ndns: [10.0.0.53]\nextra:\n  kubelet: {maxPod: 1}\n"), 0o600))
	_, err := Generate(t.Context(), Generation{QuickStart: file, OutDir: filepath.Join(t.TempDir(), "out"), Offline: true})
	require.ErrorContains(t, err, "quick-start.yaml:6:21: extra.kubelet.maxPod: ")
}

// TestTheTypesOfKubeadmAreThoseOfTheBundle runs kubeadm with a file that contains every field of the copied types. kubeadm reports unknown fields
// as errors.
func TestTheTypesOfKubeadmAreThoseOfTheBundle(t *testing.T) {
	_, kubeadm := bundletest.Need(t, bundle.KindBinary, "kubeadm")
	full := fullValue(reflect.TypeFor[kubeadmCluster]()).(map[string]any)
	full["apiVersion"], full["kind"] = "kubeadm.k8s.io/v1beta4", "ClusterConfiguration"
	full["kubernetesVersion"] = version.Kubernetes
	require.Empty(t, strictErrors(t, kubeadm, full))

	full["apiServers"] = map[string]any{}
	require.Contains(t, strictErrors(t, kubeadm, full), `unknown field "apiServers"`, "the test itself: kubeadm says what it doesn't know")
	delete(full, "apiServers")

	// Conversely, the types must contain all fields in kubeadm's own output.
	out, err := exec.Command(kubeadm, "config", "print", "init-defaults").Output()
	require.NoError(t, err)
	for doc := range bytes.SplitSeq(out, []byte("\n---\n")) {
		m := map[string]any{}
		require.NoError(t, yaml.Unmarshal(doc, &m))
		if m["kind"] != "ClusterConfiguration" {
			continue
		}
		c := &typed{enums: kubeadmEnums(), fail: func(p fieldPath, rule, message, _ string) { t.Errorf("%s: %s [%s]", p, message, rule) }}
		c.value(m, reflect.TypeFor[kubeadmCluster](), nil, "")
	}
}

func strictErrors(t *testing.T, kubeadm string, conf map[string]any) string {
	t.Helper()
	b, err := yaml.Marshal(conf)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "kubeadm.yaml")
	require.NoError(t, os.WriteFile(file, b, 0o600))
	out, _ := exec.Command(kubeadm, "config", "validate", "--config", file).CombinedOutput()
	var lines []string
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.Contains(line, "unknown field") || strings.Contains(line, "strict decoding error") || strings.Contains(line, "cannot unmarshal") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func fullValue(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		return "1h0m0s"
	case reflect.TypeFor[corev1.EnvVar]():
		return map[string]any{"name": "A", "value": "b"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return fullValue(t.Elem())
	case reflect.Slice:
		return []any{fullValue(t.Elem())}
	case reflect.Map:
		return map[string]any{"A": fullValue(t.Elem())}
	case reflect.Bool:
		return true
	case reflect.Struct:
		out := map[string]any{}
		for name, ft := range jsonFields(t) {
			out[name] = fullValue(ft)
		}
		return out
	}
	return "a"
}
