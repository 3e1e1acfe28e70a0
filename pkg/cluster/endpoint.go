package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"slices"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

//go:embed scripts/endpoint.sh
var endpointScript string

// anotherCluster returns a finding if another cluster already uses the address of the new API. Such an address may belong to a load balancer for that
// cluster's masters, and the machines would join the wrong cluster. anotherCluster sends a request only if an earlier check could connect to the
// address. The machine that would create the cluster sends the request.
func anotherCluster(ctx context.Context, r *engine.Run, w *engine.World) ([]preflight.Finding, error) {
	host, port, err := net.SplitHostPort(w.Want.Endpoint())
	if err != nil {
		return nil, fmt.Errorf("the API's address %q: %w", w.Want.Endpoint(), err)
	}
	if w.Want.Local() || slices.ContainsFunc(r.Spec.Nodes, func(n *engine.Node) bool { return n.HostIP == host }) {
		return nil, nil
	}
	for _, n := range r.Spec.ControlPlane() {
		if _, left := w.Of(n, engine.PhaseJoin).Row("left"); left {
			return nil, nil // an earlier attempt may have left the API that responds
		}
	}
	if w.Of(w.Leader, phasePreflight).Value("reach", w.Want.Endpoint()) != "open" {
		return nil, nil
	}
	a, err := engine.Answer(r.Read(ctx, w.Leader, engine.PhaseInit, "endpoint", endpointScript+fmt.Sprintf("p_endpoint %s %s\n", shell.Quote(host), shell.Quote(port))))
	if err != nil || a.Value("endpoint") != "tls" {
		return nil, err
	}
	return []preflight.Finding{{
		Host: w.Leader.Hostname, Check: "control-plane", Severity: preflight.SeverityError,
		Message: fmt.Sprintf("another cluster answers at %s, the configured address of this cluster's API, and no machine of layout.yaml is a member of it", w.Want.Endpoint()),
		Remedy:  "set api-endpoint (or load-balance-ip) in kubernetes-configuration.yaml to an address that only this cluster uses; to add the machines to the other cluster, also list its masters in layout.yaml",
	}}, nil
}
