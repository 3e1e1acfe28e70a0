package session

import (
	"context"
	"net"
	"net/url"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/kube"
)

// kubeconfigWithin is how long a master may take to send the kubeconfig.
const kubeconfigWithin = time.Minute

// silent ignores events.
type silent struct{}

func (silent) Emit(engine.Event) {}

// MasterKubeconfig opens the API with the kubeconfig of a master of the cluster.
func MasterKubeconfig(ctx context.Context, s *engine.Spec, machines engine.Options) (*kube.Cluster, error) {
	machines.Sink, machines.StepTimeout = silent{}, kubeconfigWithin
	raw, err := cluster.MasterKubeconfig(ctx, s, machines)
	if err != nil {
		return nil, err
	}
	return kube.FromConfig(raw)
}

// LeadsTo reports whether an API server's address is one of the cluster's.
func LeadsTo(server string, s *engine.Spec) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	if host, _, err := net.SplitHostPort(s.Config.Endpoint()); err == nil && u.Hostname() == host && !s.Config.EndpointIsLocal() {
		return true
	}
	if vip := s.Config.Kubernetes.Kubernetes.APIVIP; vip != "" && u.Hostname() == vip {
		return true
	}
	for _, n := range s.ControlPlane() {
		if u.Hostname() == n.HostIP {
			return true
		}
	}
	return false
}
