package phases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// ContainerdEnv is the environment file for containerd's unit. It is a separate file because it contains the proxy's password. Every user on the
// machine can read the unit itself.
const ContainerdEnv = confDir + "/containerd.env"

// containerdEnvironment returns the content of ContainerdEnv. The file also exists without a proxy, so that the removal of a proxy is an ordinary
// change of the file.
func containerdEnvironment(s *engine.Spec) []byte {
	var b strings.Builder
	b.WriteString("# Written by paictl; change proxy in kubernetes-configuration.yaml instead.\n")
	p := s.Config.Kubernetes.Kubernetes.Proxy
	if p.HTTP.IsSet() {
		fmt.Fprintf(&b, "HTTP_PROXY=%s\n", p.HTTP.Reveal())
	}
	if p.HTTPS.IsSet() {
		fmt.Fprintf(&b, "HTTPS_PROXY=%s\n", p.HTTPS.Reveal())
	}
	if p.HTTP.IsSet() || p.HTTPS.IsSet() {
		fmt.Fprintf(&b, "NO_PROXY=%s\n", NoProxy(s))
	}
	return []byte(b.String())
}

// AptProxy returns shell code that sets the proxy variables for the shell function apt, or "" without a proxy.
func AptProxy(s *engine.Spec) string {
	p := s.Config.Kubernetes.Kubernetes.Proxy
	if !p.HTTP.IsSet() && !p.HTTPS.IsSet() {
		return ""
	}
	return fmt.Sprintf("APT_HTTP_PROXY=%s APT_HTTPS_PROXY=%s APT_NO_PROXY=%s\n", shell.Quote(p.HTTP.Reveal()), shell.Quote(p.HTTPS.Reveal()), shell.Quote(NoProxy(s)))
}

// NoProxy returns the addresses that bypass the proxy: the cluster's own addresses and names, and the addresses in the configuration.
func NoProxy(s *engine.Spec) string {
	k := s.Config.Kubernetes.Kubernetes
	out := []string{"localhost", "127.0.0.0/8", "kubernetes.default", ".svc", "." + k.DNSDomain, k.ServiceClusterIPRange, k.PodCIDR}
	if k.LoadBalanceIP != "" {
		out = append(out, k.LoadBalanceIP)
	}
	if k.APIVIP != "" {
		out = append(out, k.APIVIP)
	}
	for _, n := range s.Nodes {
		if !slices.Contains(out, n.HostIP) {
			out = append(out, n.HostIP)
		}
	}
	return strings.Join(append(out, k.Proxy.NoProxy...), ",")
}
