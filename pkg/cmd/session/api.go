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

// kubeconfigWithin limits the time that a master takes to send the kubeconfig.
const kubeconfigWithin = time.Minute

// silent is a sink that ignores events.
type silent struct{}

func (silent) Emit(engine.Event) {}

// MasterKubeconfig connects to the API server with the kubeconfig of one of the cluster's masters.
func MasterKubeconfig(ctx context.Context, s *engine.Spec, machines engine.Options) (*kube.Cluster, error) {
	machines.Sink, machines.StepTimeout = silent{}, kubeconfigWithin
	raw, err := cluster.MasterKubeconfig(ctx, s, machines)
	if err != nil {
		return nil, err
	}
	return kube.FromConfig(raw)
}

// LeadsTo reports whether the address of an API server belongs to the given cluster.
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
