package phases

import (
	"context"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
)

// tools installs programs that help an operator find faults. Currently this is crictl, which works without the kubelet and the API server.
type tools struct{ want *engine.Desired }

// Names and paths of the tools.
const (
	phaseTools = "tools"
	crictlConf = "/etc/crictl.yaml"
)

func (*tools) Name() string                                   { return phaseTools }
func (*tools) Traits() engine.Traits                          { return engine.Traits{Upgrade: engine.UpgradeAfter} }
func (*tools) Applies(*engine.Node) bool                      { return true }
func (*tools) Waits(*engine.Node, *engine.Plan) []engine.Step { return nil }
func (*tools) Verify(*engine.Node) string                     { return "" }

func (p *tools) resources(n *engine.Node) (engine.Resources, error) {
	if p.want.Bundle == nil {
		return engine.Resources{}, nil
	}
	if _, ok := p.want.Bundle.Lookup(bundle.KindBinary, "crictl"); !ok {
		return engine.Resources{}, nil // bundles of earlier releases don't contain crictl
	}
	bins, err := binaries(p.want.Spec, n, "crictl")
	return engine.Resources{
		Artifacts: bins,
		// Without this file, crictl also tries the sockets of other runtimes, and prints warnings.
		Files: []engine.File{{Path: crictlConf, Mode: 0o644, Body: []byte("runtime-endpoint: " + criSocket + "\nimage-endpoint: " + criSocket + "\n")}},
	}, err
}

func (p *tools) Detect(n *engine.Node) (string, error) {
	res, err := p.resources(n)
	return res.Detect(), err
}

func (p *tools) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	res, err := p.resources(n)
	return res.Diff(w.Of(n, phaseTools)), err
}

func (p *tools) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	res, err := p.resources(n)
	if err != nil {
		return err
	}
	return r.ApplyResources(ctx, n, phaseTools, res, cs)
}
