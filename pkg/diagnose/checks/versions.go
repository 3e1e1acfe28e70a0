package checks

import "k8s.io/apimachinery/pkg/util/version"

// KubeletsBehind is the maximum number of minor releases between a kubelet and a newer API server.
// https://kubernetes.io/releases/version-skew-policy/
const KubeletsBehind = 3

// Kubelet compares a kubelet's version with the version of its API server. It returns nil for versions that can't be parsed, such as the empty
// version of a new node.
func Kubelet(node, kubelet, server string) *Finding {
	has, err1 := version.ParseGeneric(kubelet)
	api, err2 := version.ParseGeneric(server)
	if err1 != nil || err2 != nil {
		return nil
	}
	behind := int(api.Minor()) - int(has.Minor())
	f := problem("version", "paictl cluster up --limit "+node, "its kubelet %s is too old for the API server %s", kubelet, server)
	switch {
	case has.Major() == api.Major() && behind < 0:
		f = problem("version", "upgrade the control plane first: paictl cluster up", "its kubelet %s is newer than the API server %s", kubelet, server)
	case has.Major() == api.Major() && behind <= KubeletsBehind:
		return nil
	}
	f.Host = node
	return &f
}
