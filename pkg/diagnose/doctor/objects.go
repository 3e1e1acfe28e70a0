package doctor

import (
	"cmp"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
)

const mergePatch = types.MergePatchType

type machineOf = layout.Machine

func mark() string { return strings.ToLower(rand.Text()[:8]) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// clientCertificate returns the client certificate of a connection. It returns false if the connection doesn't use a client certificate.
func clientCertificate(k *kube.Cluster) (*x509.Certificate, bool) {
	data := k.Config.CertData
	if len(data) == 0 && k.Config.CertFile != "" {
		data, _ = os.ReadFile(k.Config.CertFile) // otherwise the API would not have responded
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return cert, err == nil
}

func (m *machine) api() (state, said string) {
	return m.API, m.APIMessage
}

type metaSet = appsv1.DaemonSet

// selects reports whether a node's labels allow pods of a DaemonSet on the node. It ignores taints.
func selects(spec *corev1.PodSpec, n *corev1.Node) bool {
	fits, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}).Match(n)
	return err == nil && fits
}
